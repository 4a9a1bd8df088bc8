//! Sockets: accepting, limiting, and letting go of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::http::handle;

/// What one client, or many, may hold on to.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLimits {
    /// Open connections; further ones wait in the listener's backlog.
    pub(super) count: usize,
    /// Time for the head of a request.
    pub(super) header_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { count: 1000, header_timeout: Duration::from_secs(10) }
    }
}

/// Bytes of one request head.
const MAX_HEAD: usize = 64 * 1024;
/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 250;
/// Requests under way get this long at a shutdown.
const LAST_ORDERS: Duration = Duration::from_secs(10);
/// Pause after the system refused a connection, so that an exhausted descriptor table does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until stopped, then waits for the connections to finish. Dropped, it closes them all.
pub(super) async fn serve(
    listener: TcpListener,
    engine: Arc<Engine>,
    limits: ConnectionLimits,
    mut stopped: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.count));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let builder = http_builder(&limits);
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, slot)) = accepted else { continue };
        let connection = Connection { engine: Arc::clone(&engine), header_timeout: limits.header_timeout };
        let (builder, watcher) = (builder.clone(), graceful.watcher());
        connections.spawn(async move {
            connection.run(&builder, stream, watcher).await;
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

fn http_builder(limits: &ConnectionLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(MAX_HEAD)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    builder
}

struct Connection {
    engine: Arc<Engine>,
    header_timeout: Duration,
}

impl Connection {
    async fn run(
        self,
        builder: &auto::Builder<TokioExecutor>,
        stream: TcpStream,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let heard = Arc::new(AtomicBool::new(false));
        let (engine, flag) = (self.engine, Arc::clone(&heard));
        let service = service_fn(move |request: http::Request<Incoming>| {
            flag.store(true, Ordering::Relaxed);
            let engine = Arc::clone(&engine);
            async move { Ok::<_, Infallible>(handle(engine, request).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let mut served = std::pin::pin!(watcher.watch(connection));
        // While the protocol is still being guessed no other timeout runs: a client that connects and falls silent must not stay.
        let silence = tokio::time::sleep(self.header_timeout);
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
}
