//! A server in memory: answers lists and watches out of an exact history, and fails as told.

mod connection;
mod list;
mod watch;

use crate::{
    history::{Written, is_in},
    log::Log,
    totals::Fault,
    trouble::{Asked, Blow, Condition, Refusal, Trap, Trouble},
    truth::{ClientId, Truth},
};
use connection::Connection;
use kube_informer::{
    BoxFuture, Kind, ListOptions, ListStream, ListWatch, ListWatchError, ObjectKey, Status, WatchOptions,
    WatchStream,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// The server. Shared by its clients and by the world around it.
pub(crate) struct Source {
    state: Mutex<Server>,
    /// Told at each change of anything a connection may wait for. Wakes in the order of waiting, unlike a watch
    /// channel, which would make every run another one.
    changed: Notify,
    pub(crate) truth: Arc<Truth>,
}

/// What the server knows.
pub(crate) struct Server {
    truth: Arc<Truth>,
    connections: BTreeMap<u64, Connection>,
    opened: u64,
    trouble: Trouble,
    rng: fastrand::Rng,
    log: Arc<Log>,
}

impl Source {
    pub(crate) fn new(rng: fastrand::Rng, log: &Arc<Log>) -> Arc<Self> {
        let truth = Truth::new(Kind::namespaced("sim.example", "v1", "Thing", "things"), 100, log);
        let server = Server {
            truth: Arc::clone(&truth),
            connections: BTreeMap::new(),
            opened: 0,
            trouble: Trouble::default(),
            rng,
            log: Arc::clone(log),
        };
        Arc::new(Self { state: Mutex::new(server), changed: Notify::new(), truth })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Server> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the server and lets every connection know.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Server) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_waiters();
        result
    }

    /// A new client, for one namespace or for all.
    pub(crate) fn client(self: &Arc<Self>, namespace: Option<&str>) -> (ClientId, Arc<dyn ListWatch>) {
        let id = self.truth.lock().new_client();
        (id, Arc::new(Line { source: Arc::clone(self), id, namespace: namespace.map(str::to_owned) }))
    }

    /// A request arrives: it may take its time, and it may not get any further.
    async fn arrive(&self, asked: Asked) -> Result<Option<Trap>, ListWatchError> {
        let delay = self.lock().rng.u64(0..6).saturating_sub(3);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let trap = self.lock().receive(asked)?;
        match trap {
            Some(Trap::Unanswered) => std::future::pending().await,
            Some(Trap::Late(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                self.lock().receive(asked)
            }
            trap => Ok(trap),
        }
    }
}

impl Server {
    /// The answer to a request, if it is a refusal; otherwise what it is in for.
    fn receive(&mut self, asked: Asked) -> Result<Option<Trap>, ListWatchError> {
        self.trouble.receive(asked, &self.log).map_err(|refused| match refused {
            Refusal::Status { code, reason, retry_after } => refusal(code, reason, retry_after),
            Refusal::Connection => {
                ListWatchError::Connect { refused: true, message: "refused".into(), url: URL.into() }
            }
            Refusal::Lost => {
                ListWatchError::Connect { refused: false, message: "reset".into(), url: URL.into() }
            }
            Refusal::NotJson => ListWatchError::NotJson { content_type: "text/html".into(), url: URL.into() },
        })
    }

    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.trouble.has(condition)
    }

    /// What is in the way of requests.
    pub(crate) fn trouble(&mut self) -> &mut Trouble {
        &mut self.trouble
    }

    /// Something befalls a connection, or all of them.
    pub(crate) fn strike(&mut self, blow: Blow, pick: u64) {
        let all = pick.is_multiple_of(4);
        let chosen = (pick / 4) as usize % self.connections.len().max(1);
        for (i, connection) in self.connections.values_mut().enumerate() {
            if all || i == chosen {
                connection.strike(blow, &self.log);
            }
        }
    }

    /// Whether any connection of a client is watching.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        self.connections.values().any(|connection| connection.is_live(client))
    }

    /// A state for a client that wants one not older than `asked`.
    fn choose(&mut self, asked: Option<u64>, trap: Option<Trap>) -> Result<u64, ListWatchError> {
        let (current, floor) = {
            let known = self.truth.lock();
            (known.history.version, known.history.floor)
        };
        let asked_version = asked.unwrap_or(current);
        if asked_version > current {
            self.log.strike(Fault::TooLarge);
            let message = format!("Too large resource version: {asked_version}, current: {current}");
            return Err(ListWatchError::api(Status::failure(504, "Timeout", message), URL));
        }
        let oldest = asked_version.max(floor);
        Ok(match trap {
            Some(Trap::Stale(by)) if oldest < current => {
                self.log.strike(Fault::StaleList);
                current.saturating_sub(by).max(oldest)
            }
            _ => current,
        })
    }

    /// The objects of a namespace at a version of this epoch.
    fn objects(&self, version: u64, namespace: Option<&str>) -> Vec<Arc<Written>> {
        let known = self.truth.lock();
        let state = known.history.at(known.history.epoch(), version);
        let all = state.into_iter().flat_map(|state| state.values());
        all.filter(|write| is_in(&write.key, namespace)).cloned().collect()
    }
}

const URL: &str = "/simulated";

fn refusal(code: u16, reason: &str, retry_after: u32) -> ListWatchError {
    let mut status = Status::failure(code, reason, "simulated");
    status.details.retry_after_seconds = retry_after;
    ListWatchError::api(status, URL)
}

fn broken() -> ListWatchError {
    ListWatchError::Broken { message: "connection reset".into(), url: URL.into() }
}

fn version_asked(text: Option<&str>) -> Option<u64> {
    text.filter(|text| !text.is_empty())?.parse().ok()
}

/// One client's way to the server.
struct Line {
    source: Arc<Source>,
    id: ClientId,
    namespace: Option<String>,
}

impl ListWatch for Line {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(list::answer(Arc::clone(&self.source), self.id, self.namespace.clone(), options))
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(watch::answer(Arc::clone(&self.source), self.id, self.namespace.clone(), options))
    }

    fn supports_streaming_list(&self) -> bool {
        true
    }
}

/// What the world does to the collection.
impl Server {
    pub(crate) fn put(&mut self, key: &ObjectKey, color: u64, odd: bool) -> Option<Arc<Written>> {
        let mut known = self.truth.lock();
        if known.must_wait(1) {
            return None;
        }
        if odd {
            self.log.strike(Fault::Odd);
        }
        let write = known.history.put(key, color, odd);
        self.log.wrote(&write);
        Some(write)
    }

    pub(crate) fn delete(&mut self, key: &ObjectKey) -> Option<Arc<Written>> {
        let mut known = self.truth.lock();
        if known.must_wait(1) {
            return None;
        }
        let write = known.history.delete(key)?;
        self.log.wrote(&write);
        Some(write)
    }

    /// Something else was written.
    pub(crate) fn advance(&mut self, by: u64) {
        let mut known = self.truth.lock();
        if !known.must_wait(by) {
            let version = known.history.version + by;
            known.history.reach(version);
        }
    }

    pub(crate) fn compact(&mut self) {
        self.log.strike(Fault::Compacted);
        self.truth.lock().history.compact();
    }

    pub(crate) fn restore(&mut self, back: u64) {
        let mut known = self.truth.lock();
        let before = known.history.version;
        if before.checked_sub(back).is_some_and(|version| known.history.restore(version)) {
            self.log.strike(Fault::Restored);
            self.log.note(format_args!("restored from @{before} to @{}", known.history.version));
        }
    }
}
