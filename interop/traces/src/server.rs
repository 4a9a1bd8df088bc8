//! The scripted server: serves LIST and WATCH from its store, injects faults, and records the requests.

mod respond;
mod streams;

use crate::{
    encode,
    script::{Cut, ErrorStatus, Expired, Fault, FaultResponse, RawEvent, RequestClass, ServerSetup},
    store::{Change, Store},
};
use hyper_util::rt::TokioIo;
use kube_informer_wire::sync::lock;
use respond::ReceivedRequest;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};
use streams::Streams;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// A server of pods, controlled by a script. Dropping it stops it.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

/// The state that all requests share.
struct Shared {
    setup: ServerSetup,
    /// Locked for one operation, never over an `.await`.
    state: Mutex<State>,
    /// Whether requests wait for their responses.
    held: watch::Sender<bool>,
    /// Incremented when a condition of [`Server::wait`] may have changed.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    store: Store,
    streams: Streams,
    faults: VecDeque<Fault>,
    /// Initial events of the next streaming lists.
    initial: VecDeque<Initial>,
    requests: Vec<ReceivedRequest>,
    /// The number of responses so far.
    responses: usize,
}

/// Initial events of a streaming list, instead of those of the objects.
pub(crate) struct Initial {
    pub(crate) events: Vec<RawEvent>,
    /// Whether the bookmark that ends the initial events follows. Otherwise the response ends.
    pub(crate) finished: bool,
}

impl Server {
    pub(crate) async fn start(setup: ServerSetup) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            setup,
            state: Mutex::default(),
            held: watch::Sender::new(false),
            changed: watch::Sender::new(0),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, serving })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes the store and sends the change to the open watches.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Store) -> Option<Change>) -> bool {
        let mut state = self.shared.lock();
        let change = change(&mut state.store);
        if let Some(change) = &change {
            state.streams.change(change);
        }
        change.is_some()
    }

    pub(crate) fn bookmark(&self, version: u64) {
        let mut state = self.shared.lock();
        state.store.advance(Some(version));
        state.streams.send(&encode::bookmark(version, false));
    }

    pub(crate) fn hold(&self, hold: bool) {
        self.shared.held.send_replace(hold);
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.shared.lock().streams.cut(cut);
    }

    pub(crate) fn error(&self, error: &ErrorStatus) {
        let mut state = self.shared.lock();
        state.streams.send(&encode::error(error));
        state.streams.cut(Cut::Clean);
    }

    pub(crate) fn send(&self, events: &[RawEvent]) {
        let mut state = self.shared.lock();
        for event in events {
            state.streams.send(&encode::raw_event(event));
        }
    }

    pub(crate) fn initial(&self, initial: Initial) {
        self.shared.lock().initial.push_back(initial);
    }

    pub(crate) fn refuse(&self, fault: Fault) {
        self.shared.lock().faults.push_back(fault);
    }

    /// The requests so far, as lines of a trace.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.lock().requests.iter().map(ToString::to_string).collect()
    }

    /// Waits until this many watches are past their initial events.
    pub(crate) async fn wait_for_watches(&self, watches: usize) {
        self.wait(|state| state.streams.live() >= watches).await;
    }

    /// Waits until this many requests have got a response.
    pub(crate) async fn wait_for_responses(&self, responses: usize) {
        self.wait(|state| state.responses >= responses).await;
    }

    async fn wait(&self, mut condition: impl FnMut(&mut State) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        while !condition(&mut self.shared.lock()) {
            // The sender lives as long as the server.
            let _ = changed.changed().await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl State {
    /// Returns the response of the next fault for this class of requests, if there is one.
    fn fault(&mut self, request: RequestClass) -> Option<FaultResponse> {
        let at = self.faults.iter().position(|fault| fault.to == request)?;
        let fault = &mut self.faults[at];
        let response = fault.with.clone();
        fault.times -= 1;
        if fault.times == 0 {
            self.faults.remove(at);
        }
        Some(response)
    }
}

/// The error for a resource version that was compacted.
fn expired() -> ErrorStatus {
    ErrorStatus { code: 410, reason: "Expired".into(), cause: None, retry_after: None }
}

impl Expired {
    fn is_http(self) -> bool {
        self == Self::Http
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((connection, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        let service =
            hyper::service::service_fn(move |request| respond::handle(Arc::clone(&shared), request));
        connections.spawn(async move {
            // Connections are broken by scripts, and closed by clients: both are expected.
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service);
            let _ = connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
}
