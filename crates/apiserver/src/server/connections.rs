//! Connections: accept, limit, serve and close them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::EXPECT;
use http::{Method, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use kube_informer_wire::sync::lock;

use super::access::{AccessControl, Caller};
use super::activity::{Activity, TrackedBody};
use super::head_timer::HeadTimer;
use super::limits::ServerLimits;
use super::request_body::RequestBody;
use super::slots::{Slot, Slots};
use super::websocket::{Handshake, WebSocketWatch};
use super::write_timeout::WriteTimeout;
use crate::api::Api;
use crate::authentication::{User, user_of_certificate};
use crate::cpu_pool::ConnectionTurn;
use crate::http::{ConnectionWatches, ResponseBody, ResponseLost, handle, refuse};
use crate::work::Work;

/// The parts of a server that connections need.
pub(super) struct ConnectionContext {
    pub(super) api: Arc<Api>,
    pub(super) access_control: AccessControl,
    pub(super) limits: ServerLimits,
    pub(super) acceptor: Option<TlsAcceptor>,
}

/// The time that running requests get at a shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// The time that running requests get when their connection expires.
const EXPIRY_GRACE: Duration = Duration::from_secs(5);
/// The longest timeout that can be added to any point in time.
const LONGEST_TIMER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Pause after the system refused a connection, so that an exhausted descriptor table does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until stopped, then waits for the connections to finish. Dropped, it closes them all.
pub(super) async fn serve(
    listener: TcpListener,
    context: ConnectionContext,
    mut stopped: watch::Receiver<bool>,
) {
    let context = Arc::new(context);
    let slots = Slots::new(&context.limits, context.access_control.requires_credentials());
    let (mut connections, mut controllers) = (JoinSet::new(), JoinSet::new());
    let builder = http_builder(&context.limits);
    let running = Arc::clone(&context.api.controllers);
    controllers.spawn(async move { running.run().await });
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, peer)) = accepted else { continue };
        let slot = slots.take(peer);
        let (context, builder, stopped) = (Arc::clone(&context), builder.clone(), stopped.clone());
        connections.spawn(async move { context.receive(&builder, stream, slot, stopped).await });
    }
    drop(listener);
    // Watches have ended already; only responses that are being written remain.
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_GRACE, finished).await;
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener, slots: &Slots) -> Option<(TcpStream, IpAddr)> {
    slots.available().await;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Watch events are small and must not wait for each other.
            let _ = stream.set_nodelay(true);
            Some((stream, peer.ip()))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

fn http_builder(limits: &ServerLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Runs between two requests as well. `Activity` has the shorter deadline of a head that has begun.
        .header_read_timeout(limits.idle_timeout.min(LONGEST_TIMER))
        .max_buf_size(limits.head_bytes.max(8192)) // hyper refuses less
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams.max(1))
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    builder
}

impl ConnectionContext {
    /// Serves one connection to its end.
    async fn receive(
        self: &Arc<Self>,
        builder: &auto::Builder<TokioExecutor>,
        stream: TcpStream,
        slot: Slot,
        mut stopped: watch::Receiver<bool>,
    ) {
        let stream = WriteTimeout::new(stream, self.limits.write_timeout);
        let activity = |slot| Activity::new(slot, stream.pending());
        let Some(acceptor) = &self.acceptor else {
            let activity = activity(slot);
            return self.serve(builder, stream, None, activity, stopped).await;
        };
        let activity = activity(slot);
        let handshake = tokio::select! {
            biased;
            () = activity.slot().evicted() => return,
            _ = stopped.wait_for(|stop| *stop) => return,
            handshake = tokio::time::timeout(self.limits.header_timeout, acceptor.accept(stream)) => handshake,
        };
        match handshake {
            Ok(Ok(stream)) => {
                let certificates = stream.get_ref().1.peer_certificates();
                let user = certificates.and_then(|chain| user_of_certificate(chain.first()?));
                self.serve(builder, stream, user, activity, stopped).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("closing a connection without a TLS handshake"),
        }
    }

    /// Serves requests. `certified` is the user of the client certificate.
    async fn serve<S>(
        self: &Arc<Self>,
        builder: &auto::Builder<TokioExecutor>,
        stream: S,
        certified: Option<User>,
        activity: Arc<Activity>,
        mut stopped: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (context, used) = (Arc::clone(self), Arc::clone(&activity));
        let stream = HeadTimer::new(stream, Arc::clone(&activity));
        let upgraded: Arc<Mutex<Option<WebSocketWatch>>> = Arc::default();
        let upgrade = Arc::clone(&upgraded);
        let watches = ConnectionWatches::new(self.limits.watches_per_connection);
        let turn = ConnectionTurn::new();
        let certified = certified.map(Arc::new);
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            let (context, used, upgrade) = (Arc::clone(&context), Arc::clone(&used), Arc::clone(&upgrade));
            let certified = certified.clone();
            request.extensions_mut().insert(watches.clone());
            request.extensions_mut().insert(turn.clone());
            async move { context.track(&used, request, certified.as_deref(), &upgrade).await }
        });
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        let mut connection = std::pin::pin!(connection);
        let grace = tokio::select! {
            biased;
            result = &mut connection => {
                note_end(result);
                None
            }
            () = activity.slot().evicted() => return tracing::debug!("closing a connection to make room"),
            _ = stopped.wait_for(|stop| *stop) => Some(SHUTDOWN_GRACE),
            () = activity.expired(&self.limits) => Some(EXPIRY_GRACE),
        };
        let Some(grace) = grace else {
            let watch = lock(&upgraded).take();
            if let Some(watch) = watch {
                watch.run().await;
            }
            return;
        };
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            biased;
            result = connection => note_end(result),
            // A client that sends nothing cannot delay the shutdown.
            () = activity.quiet() => tracing::debug!("closing a quiet connection"),
            () = tokio::time::sleep(grace) => tracing::debug!("closing a connection that did not end in time"),
        }
    }

    /// Serves a request, and records whether it authenticates its connection.
    async fn track(
        &self,
        activity: &Arc<Activity>,
        mut request: http::Request<Incoming>,
        certified: Option<&User>,
        upgraded: &Mutex<Option<WebSocketWatch>>,
    ) -> Result<http::Response<TrackedBody>, ResponseLost> {
        let handshake =
            Handshake::of(&request).map(|handshake| (handshake, hyper::upgrade::on(&mut request)));
        let busy = activity.request();
        let multiplexed = request.version() == Version::HTTP_2;
        let response = match self.access_control.admit(&request, certified) {
            Ok(Caller::Authenticated(user)) => {
                request.extensions_mut().insert(user);
                activity.slot().authenticate();
                self.respond(request).await?
            }
            Ok(Caller::Anonymous) => {
                activity.slot().responded();
                self.respond(request).await?
            }
            Err(error) => {
                activity.slot().responded();
                refuse(&self.api, &request, &error)
            }
        };
        // Only watches have a WebSocket form. Other responses, errors among them, are those of a request without an upgrade.
        let (head, body) = response.into_parts();
        let response = match (handshake, body) {
            (Some((handshake, upgrade)), ResponseBody::Watch(watch)) => {
                let response = handshake.respond(&head.headers);
                if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                    *lock(upgraded) = Some(WebSocketWatch { upgrade, watch, busy: activity.request() });
                }
                response
            }
            (_, body) => http::Response::from_parts(head, body),
        };
        Ok(response.map(|body| TrackedBody::new(body, busy, multiplexed)))
    }

    /// An error closes the connection, or the HTTP/2 stream, without a response.
    async fn respond(
        &self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<ResponseBody>, ResponseLost> {
        let work = Work::default();
        let mut request = request.map(RequestBody::new);
        request.extensions_mut().insert(work.clone());
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let response = execute(Arc::clone(&self.api), request);
        if reads {
            return response.await;
        }
        // A write may take several steps in the store (a CRD and its objects, a namespace and its content).
        // In its own task it takes all of them, even if its client disconnects. Only work in the CPU pool that has not reached the first
        // of these steps is abandoned then.
        let _awaited = work.awaited();
        match tokio::spawn(response).await {
            Ok(response) => response,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ResponseLost), // the runtime is shutting down
            },
        }
    }
}

/// Executes a request. On HTTP/1 the rest of its body is read before the response is sent.
async fn execute(
    api: Arc<Api>,
    request: http::Request<RequestBody<Incoming>>,
) -> Result<http::Response<ResponseBody>, ResponseLost> {
    let one_by_one = request.version() < Version::HTTP_2;
    let expects_continue = request.headers().contains_key(EXPECT);
    let (parts, mut body) = request.into_parts();
    let limit = api.limits.body_bytes;
    let response = handle(api, http::Request::from_parts(parts, &mut body)).await;
    if one_by_one {
        body.discard(limit, expects_continue).await;
    }
    response
}

fn note_end(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = result {
        tracing::debug!(error, "connection ended");
    }
}

#[cfg(test)]
mod tests;
