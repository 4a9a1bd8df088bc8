//! Sockets: accepting, limiting, and letting go of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::door::Door;
use super::limits::ServerLimits;
use crate::api::Api;
use crate::http::{AnswerBody, AnswerLost, ConnectionWatches, handle, refuse};

/// Everything a connection meets before its requests are answered.
pub(super) struct Reception {
    pub(super) api: Arc<Api>,
    pub(super) door: Door,
    pub(super) limits: ServerLimits,
    pub(super) acceptor: Option<TlsAcceptor>,
}

/// Requests under way get this long at a shutdown.
const LAST_ORDERS: Duration = Duration::from_secs(10);
/// Pause after the system refused a connection, so that an exhausted descriptor table does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until stopped, then waits for the connections to finish. Dropped, it closes them all.
pub(super) async fn serve(listener: TcpListener, reception: Reception, mut stopped: watch::Receiver<bool>) {
    let reception = Arc::new(reception);
    let slots = Arc::new(Semaphore::new(reception.limits.connections.max(1)));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let builder = http_builder(&reception.limits);
    let controllers = Arc::clone(&reception.api.controllers);
    connections.spawn(async move { controllers.run().await });
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, slot)) = accepted else { continue };
        let (reception, builder, watcher) = (Arc::clone(&reception), builder.clone(), graceful.watcher());
        connections.spawn(async move {
            reception.receive(&builder, stream, watcher).await;
            drop(slot);
        });
    }
    drop(listener);
    // Watches have ended already; what remains are answers being written.
    let _ = tokio::time::timeout(LAST_ORDERS, graceful.shutdown()).await;
    connections.shutdown().await;
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Watch events are small and must not wait for each other.
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
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
        .header_read_timeout(limits.header_timeout)
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

impl Reception {
    /// Serves one connection to its end.
    async fn receive(
        self: &Arc<Self>,
        builder: &auto::Builder<TokioExecutor>,
        stream: TcpStream,
        watcher: Watcher,
    ) {
        let Some(acceptor) = &self.acceptor else { return self.serve(builder, stream, watcher).await };
        match tokio::time::timeout(self.limits.header_timeout, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(builder, stream, watcher).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("closing a connection without a TLS handshake"),
        }
    }

    async fn serve<S>(self: &Arc<Self>, builder: &auto::Builder<TokioExecutor>, stream: S, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let heard = Arc::new(AtomicBool::new(false));
        let (reception, flag) = (Arc::clone(self), Arc::clone(&heard));
        let watches = ConnectionWatches::new(self.limits.watches_per_connection);
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            flag.store(true, Ordering::Relaxed);
            let reception = Arc::clone(&reception);
            request.extensions_mut().insert(watches.clone());
            async move { reception.answer(request).await }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let mut served = std::pin::pin!(watcher.watch(connection));
        // While the protocol is still being guessed no other timeout runs: a client that connects and falls silent must not stay.
        let silence = tokio::time::sleep(self.limits.header_timeout);
        let result = tokio::select! {
            biased;
            result = &mut served => result,
            () = silence => {
                if !heard.load(Ordering::Relaxed) {
                    tracing::debug!("closing a connection without a request");
                    return;
                }
                served.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(error, "connection ended");
        }
    }

    /// An error closes the connection, or the HTTP/2 stream, without an answer.
    async fn answer(
        &self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<AnswerBody>, AnswerLost> {
        if let Err(status) = self.door.admit(&request) {
            return Ok(refuse(&self.api, &request, &status));
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let answer = handle(Arc::clone(&self.api), request);
        if reads {
            return answer.await;
        }
        // A write may take several steps in the store (a definition and its objects, a namespace and what is in it).
        // In a task of its own it takes all of them, also when its client hangs up and the connection is dropped.
        match tokio::spawn(answer).await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(AnswerLost), // the runtime is shutting down
            },
        }
    }
}
