//! A server in memory: answers lists and watches out of an exact history, and fails as told.

mod connection;
mod list;
mod watch;

use crate::{
    history::{History, Written, is_in},
    log::Log,
    totals::Fault,
};
use bytes::Bytes;
use connection::Connection;
use kube_informer::{
    BoxFuture, Kind, Limits, ListOptions, ListStream, ListWatch, ListWatchError, Object, ObjectKey, Origin,
    Status, Unreadable, WatchOptions, WatchStream,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

pub(crate) use connection::Blow;

/// Names a client of the server: one namespace of one informer.
pub(crate) type ClientId = usize;

/// Something that befalls the next request it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Trap {
    Unanswered,
    Refused,
    Expired,
    Busy { retry_after: u32 },
    Internal,
    Late(u64),
    BreakAfter(usize),
    Duplicate(usize),
    Stale(u64),
    CompactAfterList,
}

/// Something that lasts until it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    Unauthorized,
    Forbidden,
    Absent,
    PagesExpire,
    NoEndBookmark,
    NoStreaming,
    /// 410 comes as an answer instead of in the stream.
    ExpiredOverHttp,
    /// Bookmarks come whenever there is nothing else to say.
    EagerBookmarks,
}

/// The server. Shared by its clients and by the world around it.
pub(crate) struct Source {
    state: Mutex<Server>,
    /// Told at each change of anything a connection may wait for. Wakes in the order of waiting, unlike a watch
    /// channel, which would make every run another one.
    changed: Notify,
    pub(crate) log: Arc<Log>,
    origin: Arc<Origin>,
}

/// What the server knows.
pub(crate) struct Server {
    pub(crate) history: History,
    clients: Vec<Client>,
    connections: BTreeMap<u64, Connection>,
    opened: u64,
    conditions: Vec<Condition>,
    traps: Vec<Trap>,
    rng: fastrand::Rng,
    log: Arc<Log>,
    origin: Arc<Origin>,
}

struct Client {
    /// How far it has been told, at most: an epoch and a version.
    told: Option<(u32, u64)>,
    gone: bool,
    blur: Blur,
}

/// Whether a client can know the collection exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blur {
    None,
    /// It got something garbled, first at this version.
    Open(u64),
    /// It got a list since, of this epoch and version.
    Until(u32, u64),
}

impl Source {
    pub(crate) fn new(rng: fastrand::Rng, log: Arc<Log>) -> Arc<Self> {
        let origin = Arc::new(Origin::new(Kind::namespaced("sim.example", "v1", "Thing", "things")));
        let server = Server {
            history: History::new(),
            clients: Vec::new(),
            connections: BTreeMap::new(),
            opened: 0,
            conditions: Vec::new(),
            traps: Vec::new(),
            rng,
            log: Arc::clone(&log),
            origin: Arc::clone(&origin),
        };
        Arc::new(Self { state: Mutex::new(server), changed: Notify::new(), log, origin })
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
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
        let mut server = self.lock();
        let id = server.clients.len();
        server.clients.push(Client { told: None, gone: false, blur: Blur::None });
        let client = Line { source: Arc::clone(self), id, namespace: namespace.map(str::to_owned) };
        (id, Arc::new(client))
    }

    /// A request arrives: it may take its time, and it may not get any further.
    async fn arrive(&self, request: Request<'_>) -> Result<Option<Trap>, ListWatchError> {
        let delay = self.lock().rng.u64(0..6).saturating_sub(3);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let trap = self.lock().receive(request)?;
        match trap {
            Some(Trap::Unanswered) => std::future::pending().await,
            Some(Trap::Late(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                self.lock().receive(request)
            }
            trap => Ok(trap),
        }
    }
}

#[derive(Clone, Copy)]
enum Request<'a> {
    List(&'a ListOptions),
    Watch(&'a WatchOptions),
}

impl Request<'_> {
    fn fits(self, trap: Trap) -> bool {
        match (trap, self) {
            (Trap::Duplicate(_), Self::Watch(options)) => {
                options.send_initial_events.is_none() && options.resource_version.is_some()
            }
            (Trap::Expired, Self::Watch(options)) => options.resource_version.is_some(),
            (Trap::Stale(_), Self::List(options)) => options.continue_token.is_none(),
            (Trap::Stale(_), Self::Watch(options)) => options.send_initial_events.is_some(),
            (Trap::CompactAfterList, Self::List(_)) => true,
            (Trap::CompactAfterList | Trap::Duplicate(_) | Trap::Expired, _) => false,
            _ => true,
        }
    }
}

impl Server {
    /// The answer to a request, if it is a refusal; otherwise what it is in for.
    fn receive(&mut self, request: Request<'_>) -> Result<Option<Trap>, ListWatchError> {
        let refusals = [
            (Condition::Unauthorized, Fault::Unauthorized, 401, "Unauthorized"),
            (Condition::Forbidden, Fault::Forbidden, 403, "Forbidden"),
            (Condition::Absent, Fault::Absent, 404, "NotFound"),
        ];
        for (condition, fault, code, reason) in refusals {
            if self.has(condition) {
                self.log.strike(fault);
                return Err(refusal(code, reason, 0));
            }
        }
        let Some(at) = self.traps.iter().position(|&trap| request.fits(trap)) else { return Ok(None) };
        let trap = self.traps.remove(at);
        let (fault, error) = match trap {
            Trap::Unanswered => (Fault::Unanswered, None),
            Trap::Refused => {
                let refused =
                    ListWatchError::Connect { refused: true, message: "refused".into(), url: URL.into() };
                (Fault::Refused, Some(refused))
            }
            Trap::Expired => (Fault::ExpiredAtOpen, Some(refusal(410, "Expired", 0))),
            Trap::Busy { retry_after: 0 } => (Fault::Busy, Some(refusal(429, "TooManyRequests", 0))),
            Trap::Busy { retry_after } => {
                (Fault::BusyWithDelay, Some(refusal(429, "TooManyRequests", retry_after)))
            }
            Trap::Internal => (Fault::Internal, Some(refusal(500, "InternalError", 0))),
            Trap::Late(_)
            | Trap::BreakAfter(_)
            | Trap::Duplicate(_)
            | Trap::Stale(_)
            | Trap::CompactAfterList => {
                return Ok(Some(trap));
            }
        };
        self.log.strike(fault);
        error.map_or(Ok(Some(trap)), Err)
    }

    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.conditions.contains(&condition)
    }

    /// A condition begins or ends.
    pub(crate) fn set(&mut self, condition: Condition, on: bool) {
        self.conditions.retain(|&other| other != condition);
        if on {
            self.conditions.push(condition);
        }
    }

    /// Lays a trap. There are never many.
    pub(crate) fn lay(&mut self, trap: Trap) {
        if self.traps.len() < 6 {
            self.traps.push(trap);
        }
    }

    /// Ends every condition and removes every trap. Connections that are dead stay dead.
    pub(crate) fn heal(&mut self) {
        self.conditions.clear();
        self.traps.clear();
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

    /// Whether a write would hide from a client that the history it knows is no longer the server's. Nobody
    /// could find out then: versions would go on as if nothing had happened.
    pub(crate) fn must_wait(&self) -> bool {
        let epoch = self.history.epoch();
        self.clients.iter().filter(|client| !client.gone).filter_map(|client| client.told).any(
            |(known, version)| {
                let parted = (known + 1..=epoch).any(|later| self.history.beginning(later) < version);
                parted && self.history.version + 1 >= version
            },
        )
    }

    /// The informer behind a client is no more.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.clients[client].gone = true;
    }

    /// Whether any connection of these clients is watching.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        self.connections.values().any(|connection| connection.is_live(client))
    }

    /// A client got a garbled change.
    fn blurred(&mut self, client: ClientId, version: u64) {
        let blur = &mut self.clients[client].blur;
        if !matches!(blur, Blur::Open(_)) {
            *blur = Blur::Open(version);
        }
    }

    pub(crate) fn blur(&self, client: ClientId) -> Blur {
        self.clients[client].blur
    }

    /// A client shows the list that it got after something garbled.
    pub(crate) fn focus(&mut self, client: ClientId) {
        self.clients[client].blur = Blur::None;
    }

    /// A client got a whole list.
    fn listed(&mut self, client: ClientId, epoch: u32, version: u64) {
        self.told(client, epoch, version);
        if self.clients[client].blur != Blur::None {
            self.clients[client].blur = Blur::Until(epoch, version);
        }
    }

    fn told(&mut self, client: ClientId, epoch: u32, version: u64) {
        self.clients[client].told = Some((epoch, version));
    }

    /// A state for a client that wants one not older than `asked`.
    fn choose(&mut self, asked: Option<u64>, trap: Option<Trap>) -> Result<u64, ListWatchError> {
        let current = self.history.version;
        let asked_version = asked.unwrap_or(current);
        if asked_version > current {
            self.log.strike(Fault::TooLarge);
            let message = format!("Too large resource version: {asked_version}, current: {current}");
            return Err(ListWatchError::api(Status::failure(504, "Timeout", message), URL));
        }
        let oldest = asked_version.max(self.history.floor);
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
        let state = self.history.at(self.history.epoch(), version);
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

/// An object as a list shows it.
fn listed(origin: &Arc<Origin>, write: &Written) -> Result<Object<Value>, Unreadable> {
    Object::parse(origin, write.json.clone(), &Limits::default())
}

/// An object as a watch shows it: with kind and apiVersion.
pub(crate) fn watched(origin: &Arc<Origin>, write: &Written) -> Result<Object<Value>, Unreadable> {
    let kind = origin.kind();
    let mut json = format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version()).into_bytes();
    json.extend_from_slice(&write.json[1..]);
    Object::parse(origin, Bytes::from(json), &Limits::default())
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
}

/// What the world does to the collection.
impl Server {
    pub(crate) fn put(&mut self, key: &ObjectKey, color: u64, odd: bool) -> Option<Arc<Written>> {
        if self.must_wait() {
            return None;
        }
        if odd {
            self.log.strike(Fault::Odd);
        }
        let write = self.history.put(key, color, odd);
        self.wrote(&write);
        Some(write)
    }

    pub(crate) fn delete(&mut self, key: &ObjectKey) -> Option<Arc<Written>> {
        if self.must_wait() {
            return None;
        }
        let write = self.history.delete(key)?;
        self.wrote(&write);
        Some(write)
    }

    fn wrote(&self, write: &Written) {
        self.log.count(|totals| totals.writes += 1);
        let what = if write.gone { "delete" } else { "put" };
        self.log.note(format_args!("{what} {} n={} @{}", write.key, write.n, write.version));
    }

    /// Something else was written.
    pub(crate) fn advance(&mut self, by: u64) {
        for _ in 0..by {
            if !self.must_wait() {
                self.history.advance(1);
            }
        }
    }

    pub(crate) fn restore(&mut self, back: u64) {
        let before = self.history.version;
        if self.history.restore(back) {
            self.log.strike(Fault::Restored);
            self.log.note(format_args!("restored from @{before} to @{}", self.history.version));
        }
    }
}
