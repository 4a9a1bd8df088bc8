//! A model of a server: responds to lists and watches from an exact history, with injected faults.

mod connection;
mod list;
mod watch;

use crate::{
    faults::{Condition, FaultInjector, Rejection, RequestFault, RequestInfo, StreamFault},
    history::Write,
    log::Log,
    retry_after::RetryAfter,
    selection::Part,
    totals::Fault,
    truth::{ClientId, Truth},
    until::until,
};
use connection::Connection;
use kube_informer::{
    BoxFuture, Kind, ListOptions, ListStream, ListWatch, ListWatchError, Object, ObjectKey, Status,
    WatchOptions, WatchStream,
};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::Notify;

/// The server, shared by its clients and the world.
pub(crate) struct ModelServer {
    state: Mutex<ModelState>,
    /// Notified when anything changes that a connection may wait for. Unlike a watch channel, it wakes tasks in the
    /// order in which they wait, so that every run is the same.
    changed: Notify,
    pub(crate) truth: Arc<Truth>,
}

/// The state of the server.
pub(crate) struct ModelState {
    truth: Arc<Truth>,
    connections: BTreeMap<u64, Connection>,
    opened: u64,
    /// How often all connections were reset.
    resets: u64,
    faults: FaultInjector,
    rng: fastrand::Rng,
    log: Arc<Log>,
}

impl ModelServer {
    pub(crate) fn new(rng: fastrand::Rng, log: &Arc<Log>) -> Arc<Self> {
        Self::of_kind(Kind::namespaced("sim.example", "v1", "Thing", "things"), rng, log)
    }

    pub(crate) fn of_kind(kind: Kind, rng: fastrand::Rng, log: &Arc<Log>) -> Arc<Self> {
        let truth = Truth::new(kind, 100, log);
        let state = ModelState {
            truth: Arc::clone(&truth),
            connections: BTreeMap::new(),
            opened: 0,
            resets: 0,
            faults: FaultInjector::default(),
            rng,
            log: Arc::clone(log),
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), truth })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ModelState> {
        lock(&self.state)
    }

    /// Resolves when connections are reset.
    async fn until_reset(&self) {
        let before = self.lock().resets;
        until(&self.changed, || self.lock().resets > before).await;
    }

    /// Changes the server and notifies every connection.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut ModelState) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_waiters();
        result
    }

    /// A new client, for a part of the collection.
    pub(crate) fn client(self: &Arc<Self>, part: Part) -> (ClientId, Arc<dyn ListWatch>) {
        let id = self.truth.lock().new_client();
        (id, Arc::new(ModelClient { server: Arc::clone(self), id, part }))
    }

    /// Delays or rejects a request, or returns the fault of its response.
    async fn intercept(
        &self,
        client: ClientId,
        request: RequestInfo,
    ) -> Result<Option<RequestFault>, ListWatchError> {
        self.lock().check_retry_after(client, request);
        let delay = self.lock().rng.u64(0..6).saturating_sub(3);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let fault = self.lock().intercept(client, request)?;
        match fault {
            Some(RequestFault::NoResponse) => {
                self.until_reset().await;
                Err(broken())
            }
            Some(RequestFault::Delayed(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                self.lock().intercept(client, request)
            }
            fault => Ok(fault),
        }
    }
}

impl ModelState {
    /// Checks that a request is not earlier than the last `Retry-After` allows.
    fn check_retry_after(&self, client: ClientId, request: RequestInfo) {
        let early = if request.probe { None } else { self.truth.lock().requests(client) };
        if let Some(early) = early {
            self.log.fail(format_args!("client {client} sends a request {early:?} before Retry-After"));
        }
    }

    fn intercept(
        &mut self,
        client: ClientId,
        request: RequestInfo,
    ) -> Result<Option<RequestFault>, ListWatchError> {
        self.faults.intercept(request, &self.log).map_err(|rejection| match rejection {
            Rejection::Status { code, reason, retry_after } => {
                if !request.probe {
                    self.truth.lock().rejected(client, retry_after);
                }
                error_response(code, reason, retry_after)
            }
            Rejection::ConnectionRefused => {
                ListWatchError::Connect { refused: true, message: "refused".into(), url: URL.into() }
            }
            Rejection::ResponseLost => {
                ListWatchError::Connect { refused: false, message: "reset".into(), url: URL.into() }
            }
            Rejection::NotJson => {
                ListWatchError::NotJson { content_type: "text/html".into(), url: URL.into() }
            }
        })
    }

    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.faults.has(condition)
    }

    pub(crate) fn faults(&mut self) -> &mut FaultInjector {
        &mut self.faults
    }

    /// Injects a fault into one connection, or into all of them.
    pub(crate) fn inject(&mut self, fault: StreamFault, pick: u64) {
        let all = pick.is_multiple_of(4);
        let chosen = (pick / 4) as usize % self.connections.len().max(1);
        for (i, connection) in self.connections.values_mut().enumerate() {
            if all || i == chosen {
                connection.faults.inject(fault, &self.log);
            }
        }
    }

    /// Resets all connections, also stalled ones and those of requests that got no response.
    pub(crate) fn reset_connections(&mut self) {
        self.resets += 1;
        self.connections.values_mut().for_each(|connection| connection.faults.reset());
    }

    /// Whether a client has a watch that delivers changes, as far as the server knows.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        self.connections.values().any(|connection| connection.is_live(client))
    }

    /// The version of a response that must not be older than `requested`.
    fn choose_version(
        &mut self,
        requested: Option<u64>,
        fault: Option<RequestFault>,
    ) -> Result<u64, ListWatchError> {
        let (current, compacted) = {
            let truth = self.truth.lock();
            (truth.history.version, truth.history.compacted)
        };
        let requested = requested.unwrap_or(current);
        if requested > current {
            self.log.record_fault(Fault::TooLarge);
            let message = format!("Too large resource version: {requested}, current: {current}");
            return Err(ListWatchError::api(Status::failure(504, "Timeout", message), URL));
        }
        let oldest = requested.max(compacted);
        Ok(match fault {
            Some(RequestFault::Stale(by)) if oldest < current => {
                self.log.record_fault(Fault::StaleList);
                current.saturating_sub(by).max(oldest)
            }
            _ => current,
        })
    }

    /// The objects of a part of the collection at a version of the current epoch.
    fn objects(&self, version: u64, part: &Part) -> Vec<Arc<Write>> {
        let truth = self.truth.lock();
        let state = truth.history.at(truth.history.epoch(), version);
        let all = state.into_iter().flat_map(|state| state.values());
        all.filter(|write| part.includes(write)).cloned().collect()
    }
}

const URL: &str = "/simulated";

fn error_response(code: u16, reason: &str, retry_after: RetryAfter) -> ListWatchError {
    let status = Box::new(Status::failure(code, reason, "simulated"));
    let retry_after = retry_after.seconds().map(Duration::from_secs);
    ListWatchError::Api { status, retry_after, url: URL.into() }
}

fn broken() -> ListWatchError {
    ListWatchError::Broken { message: "connection reset".into(), url: URL.into() }
}

fn requested_version(text: Option<&str>) -> Option<u64> {
    text.filter(|text| !text.is_empty())?.parse().ok()
}

/// The source of one partition of an informer.
struct ModelClient {
    server: Arc<ModelServer>,
    id: ClientId,
    part: Part,
}

impl ListWatch for ModelClient {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(list::respond(Arc::clone(&self.server), self.id, self.part.clone(), options))
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(watch::respond(Arc::clone(&self.server), self.id, self.part.clone(), options))
    }

    fn get(&self, key: &ObjectKey) -> BoxFuture<'_, Result<Option<Object<Value>>, ListWatchError>> {
        let key = key.clone();
        Box::pin(async move {
            let request = RequestInfo {
                write: false,
                watch: false,
                streaming: false,
                version: None,
                continued: false,
                probe: true,
            };
            self.server.intercept(self.id, request).await?;
            let current = self.server.truth.lock().history.current().get(&key).cloned();
            self.server.truth.log.note(format_args!("client {} gets {key}", self.id));
            Ok(current.and_then(|write| write.as_listed(self.server.truth.origin()).ok()))
        })
    }

    fn supports_streaming_list(&self) -> bool {
        true
    }
}

/// Writes and other changes of the collection.
impl ModelState {
    pub(crate) fn put(&mut self, key: &ObjectKey, color: u64, invalid: bool) -> Option<Arc<Write>> {
        let mut truth = self.truth.lock();
        if truth.would_hide_restore(1) {
            return None;
        }
        if invalid {
            self.log.record_fault(Fault::InvalidObject);
        }
        let write = truth.history.put(key, color, invalid);
        self.log.record_write(&write);
        Some(write)
    }

    pub(crate) fn delete(&mut self, key: &ObjectKey) -> Option<Arc<Write>> {
        let mut truth = self.truth.lock();
        if truth.would_hide_restore(1) {
            return None;
        }
        let write = truth.history.delete(key)?;
        self.log.record_write(&write);
        Some(write)
    }

    /// Advances the version, as writes of other resources do.
    pub(crate) fn advance(&mut self, by: u64) {
        let mut truth = self.truth.lock();
        if !truth.would_hide_restore(by) {
            let version = truth.history.version + by;
            truth.history.advance_to(version);
        }
    }

    pub(crate) fn compact(&mut self) {
        self.log.record_fault(Fault::Compacted);
        self.truth.lock().history.compact();
    }

    pub(crate) fn restore(&mut self, back: u64) {
        let mut truth = self.truth.lock();
        let before = truth.history.version;
        if before.checked_sub(back).is_some_and(|version| truth.history.restore(version)) {
            self.log.record_fault(Fault::Restored);
            self.log.note(format_args!("restored from @{before} to @{}", truth.history.version));
        }
    }
}
