//! The scripted server: answers LIST and WATCH from its world, fails when told to, and remembers what it was
//! asked.

mod answer;
mod streams;

use crate::{
    script::{Answer, Cut, Expired, Fault, Refusal, Request, Sent, ServerSetup},
    wire,
    world::{Change, World},
};
use answer::Asked;
use hyper_util::rt::TokioIo;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use streams::Streams;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// A server of pods that does what a script says. Dropping it ends it.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

/// What the requests share.
struct Shared {
    setup: ServerSetup,
    /// Held for one operation, never over an `.await`.
    state: Mutex<State>,
    held: watch::Sender<bool>,
    /// Counts what happened that somebody may wait for.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    world: World,
    streams: Streams,
    faults: VecDeque<Fault>,
    /// What the next streaming lists send.
    initial: VecDeque<Initial>,
    asked: Vec<Asked>,
    /// How many requests have been answered.
    answered: usize,
}

/// What a streaming list sends instead of the objects.
pub(crate) struct Initial {
    pub(crate) sent: Vec<Sent>,
    /// Whether it says that those were all, or just ends.
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

    /// Changes the world and tells the open watches.
    pub(crate) fn change(&self, change: impl FnOnce(&mut World) -> Option<Change>) -> bool {
        let mut state = self.shared.lock();
        let change = change(&mut state.world);
        if let Some(change) = &change {
            state.streams.change(change);
        }
        change.is_some()
    }

    pub(crate) fn bookmark(&self, version: u64) {
        let mut state = self.shared.lock();
        state.world.advance(Some(version));
        state.streams.send(&wire::bookmark(version, false));
    }

    pub(crate) fn hold(&self, hold: bool) {
        self.shared.held.send_replace(hold);
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.shared.lock().streams.cut(cut);
    }

    pub(crate) fn error(&self, refusal: &Refusal) {
        let mut state = self.shared.lock();
        state.streams.send(&wire::error(refusal));
        state.streams.cut(Cut::Clean);
    }

    pub(crate) fn send(&self, sent: &[Sent]) {
        let mut state = self.shared.lock();
        for sent in sent {
            state.streams.send(&wire::sent(sent));
        }
    }

    pub(crate) fn initial(&self, initial: Initial) {
        self.shared.lock().initial.push_back(initial);
    }

    pub(crate) fn refuse(&self, fault: Fault) {
        self.shared.lock().faults.push_back(fault);
    }

    /// The requests so far, in the words of a trace.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.lock().asked.iter().map(ToString::to_string).collect()
    }

    /// Resolves when each of `collections` is followed by a watch.
    pub(crate) async fn watched(&self, collections: usize) {
        self.wait(|state| state.streams.live() >= collections).await;
    }

    /// Resolves when this many requests have been answered.
    pub(crate) async fn answered(&self, requests: usize) {
        self.wait(|state| state.answered >= requests).await;
    }

    async fn wait(&self, mut until: impl FnMut(&mut State) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        while !until(&mut self.shared.lock()) {
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl State {
    /// How a request is to be answered instead, if it is.
    fn fault(&mut self, request: Request) -> Option<Answer> {
        let at = self.faults.iter().position(|fault| fault.to == request)?;
        let fault = &mut self.faults[at];
        let answer = fault.with.clone();
        fault.times -= 1;
        if fault.times == 0 {
            self.faults.remove(at);
        }
        Some(answer)
    }
}

/// What a server says about a version it does not remember.
fn expired() -> Refusal {
    Refusal { code: 410, reason: "Expired".into(), cause: None, retry_after: None }
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
        let service = hyper::service::service_fn(move |request| answer::answer(Arc::clone(&shared), request));
        connections.spawn(async move {
            // A connection that breaks, by script or because the client is done, is no error here.
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service);
            let _ = connection.await;
        });
        while connections.try_join_next().is_some() {}
    }
}
