//! A watch as the server sees it.

use super::{Server, broken, refusal};
use crate::{
    history::Written,
    log::Log,
    totals::Fault,
    trouble::{Blow, Condition},
    truth::ClientId,
};
use kube_informer::{Bookmark, ListWatchError, Object, Status, Unreadable, WatchEvent};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::Instant;

/// A watch.
#[derive(Debug, Default)]
pub(super) struct Connection {
    client: ClientId,
    pub(super) namespace: Option<String>,
    epoch: u32,
    /// Changes up to here have been sent.
    pub(super) cursor: u64,
    /// The state it begins with, as far as it has not been sent.
    pub(super) initial: VecDeque<Arc<Written>>,
    /// The version that the end of the initial state announces, until it is announced.
    pub(super) complete: Option<u64>,
    /// It never is.
    pub(super) endless: bool,
    bookmarks: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) break_after: Option<usize>,
    fate: Option<Fate>,
    stalled: bool,
    garble: Option<bool>,
    pub(super) slow: Option<Duration>,
    bookmark_due: bool,
    /// What the client has taken when it reads on.
    pub(super) last: Option<(u32, u64)>,
}

#[derive(Debug)]
enum Fate {
    End,
    Break,
    Error(Box<Status>),
}

/// What a connection does next.
pub(super) enum Next {
    Event(Box<WatchEvent>),
    Fail(ListWatchError),
    End,
    /// Nothing until something changes.
    Wait,
    /// Nothing ever.
    Never,
}

impl Connection {
    pub(super) fn new(client: ClientId, epoch: u32, bookmarks: bool, deadline: Option<Instant>) -> Self {
        Self { client, epoch, bookmarks, deadline, ..Self::default() }
    }

    /// Whether it shows changes to a client, as far as anybody can tell.
    pub(super) fn is_live(&self, client: ClientId) -> bool {
        self.client == client && !self.stalled && self.fate.is_none() && self.complete.is_none()
    }

    pub(super) fn strike(&mut self, blow: Blow, log: &Log) {
        let error = |code, reason| Some(Fate::Error(Box::new(Status::failure(code, reason, "simulated"))));
        let fault = match blow {
            Blow::Cut => {
                self.fate = Some(Fate::End);
                Fault::Cut
            }
            // There are no words here to be in the middle of.
            Blow::Truncate => {
                self.fate = Some(Fate::End);
                Fault::Truncated
            }
            Blow::Break => {
                self.fate = Some(Fate::Break);
                Fault::Broken
            }
            Blow::Stall => {
                self.stalled = true;
                Fault::Stalled
            }
            Blow::Expire => {
                self.fate = error(410, "Expired");
                Fault::ExpiredInStream
            }
            Blow::Error => {
                self.fate = error(500, "InternalError");
                Fault::ErrorInStream
            }
            Blow::Slow(millis) => {
                self.slow = Some(Duration::from_millis(millis));
                Fault::SlowReader
            }
            Blow::Garble { version } => {
                // Counted when it strikes.
                self.garble = Some(version);
                return;
            }
            Blow::Bookmark => {
                self.bookmark_due = true;
                return;
            }
        };
        log.strike(fault);
    }
}

impl Server {
    /// The client reads on.
    pub(super) fn reads_on(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some(state) = connection.last.take() {
            self.truth.lock().took(connection.client, state);
        }
    }

    /// What a connection does next.
    pub(super) fn next(&mut self, id: u64) -> Next {
        let (epoch, floor, current) = {
            let known = self.truth.lock();
            (known.history.epoch(), known.history.floor, known.history.version)
        };
        let eager = self.has(Condition::EagerBookmarks);
        let Some(connection) = self.connections.get_mut(&id) else { return Next::End };
        if connection.stalled {
            return Next::Never;
        }
        if connection.epoch != epoch || connection.break_after == Some(0) {
            self.log.strike(Fault::Broken);
            return Next::Fail(broken());
        }
        match connection.fate.take() {
            Some(Fate::End) => return Next::End,
            Some(Fate::Break) => return Next::Fail(broken()),
            Some(Fate::Error(status)) => return self.last_word(id, *status),
            None => {}
        }
        connection.break_after = connection.break_after.map(|left| left - 1);
        if let Some(write) = connection.initial.pop_front() {
            return event(write.as_watched(self.truth.origin()), WatchEvent::Added);
        }
        let client = connection.client;
        if let Some(version) = connection.complete.take_if(|_| !connection.endless) {
            connection.last = Some((epoch, version));
            self.truth.lock().listed(client, epoch, version);
            return bookmark(version, true);
        }
        let namespace = connection.namespace.as_deref();
        let next = self.truth.lock().history.next_change(connection.cursor, namespace).cloned();
        if let Some(write) = next {
            if write.version <= floor {
                self.log.strike(Fault::ExpiredInStream);
                return self.last_word(id, Status::failure(410, "Expired", "the watch is too slow"));
            }
            return self.send(id, &write);
        }
        let caught_up = connection.complete.is_none() && connection.bookmarks;
        if caught_up && (connection.bookmark_due || eager && connection.cursor < current) {
            connection.bookmark_due = false;
            connection.cursor = current;
            if self.truth.lock().told(client, epoch, current) {
                connection.last = Some((epoch, current));
            }
            return bookmark(current, false);
        }
        if connection.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Next::End;
        }
        Next::Wait
    }

    fn send(&mut self, id: u64, write: &Written) -> Next {
        let Some(connection) = self.connections.get_mut(&id) else { return Next::End };
        let mut known = self.truth.lock();
        let before = known.history.at(connection.epoch, write.version - 1);
        let added = before.is_some_and(|before| !before.contains_key(&write.key));
        connection.cursor = write.version;
        let client = connection.client;
        if let Some(with_version) = connection.garble.take_if(|_| connection.complete.is_none()) {
            self.log.strike(Fault::Unreadable);
            known.blurred(client, write.version);
            let resource_version = with_version.then(|| write.version.into());
            let garbage = Unreadable::new("garbled").at(resource_version);
            return Next::Event(Box::new(WatchEvent::Unreadable(garbage)));
        }
        if connection.complete.is_none() {
            let epoch = connection.epoch;
            if known.told(client, epoch, write.version) {
                connection.last = Some((epoch, write.version));
            }
            known.watched(client, &write.key, (epoch, write.version));
        }
        self.log.note(format_args!("client {client} gets n={}", write.n));
        let variant = match (write.gone, added) {
            (true, _) => WatchEvent::Deleted,
            (false, true) => WatchEvent::Added,
            (false, false) => WatchEvent::Modified,
        };
        event(write.as_watched(self.truth.origin()), variant)
    }

    /// The server gives up a watch and says why.
    fn last_word(&mut self, id: u64, status: Status) -> Next {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.fate = Some(Fate::End);
        }
        Next::Event(Box::new(WatchEvent::Error(status)))
    }

    /// A watch whose past is forgotten: refused, or opened to say so.
    pub(super) fn expired(&mut self, connection: &mut Connection) -> Result<(), ListWatchError> {
        if self.has(Condition::ExpiredOverHttp) {
            self.log.strike(Fault::ExpiredAtOpen);
            return Err(refusal(410, "Expired", 0));
        }
        self.log.strike(Fault::ExpiredInStream);
        connection.fate =
            Some(Fate::Error(Box::new(Status::failure(410, "Expired", "too old resource version"))));
        Ok(())
    }
}

fn event(
    object: Result<Object<Value>, Unreadable>,
    variant: impl FnOnce(Object<Value>) -> WatchEvent,
) -> Next {
    Next::Event(Box::new(object.map_or_else(WatchEvent::Unreadable, variant)))
}

fn bookmark(version: u64, initial_events_end: bool) -> Next {
    let bookmark = Bookmark { resource_version: version.into(), initial_events_end };
    Next::Event(Box::new(WatchEvent::Bookmark(bookmark)))
}
