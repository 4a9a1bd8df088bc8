//! A watch connection, as the model server sees it.

use super::{ModelState, broken, error_response};
use crate::{
    faults::{Condition, StreamFaults, Termination},
    history::Write,
    retry_after::RetryAfter,
    selection::Part,
    totals::Fault,
    truth::{ClientId, Received},
};
use kube_informer::{Bookmark, ListWatchError, Malformed, Object, Status, WatchEvent};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc};
use tokio::time::Instant;

/// A watch.
#[derive(Debug, Default)]
pub(super) struct Connection {
    client: ClientId,
    pub(super) part: Part,
    epoch: u32,
    /// Changes up to this version have been sent.
    pub(super) cursor: u64,
    /// The part of the initial state that has not been sent.
    pub(super) initial: VecDeque<Arc<Write>>,
    /// The version of the bookmark that ends the initial state, until it is sent.
    pub(super) initial_end: Option<u64>,
    /// That bookmark is never sent.
    pub(super) no_end_bookmark: bool,
    bookmarks: bool,
    pub(super) deadline: Option<Instant>,
    /// The connection is reset after this many events.
    pub(super) break_after: Option<usize>,
    pub(super) faults: StreamFaults,
    pub(super) last: Option<Received>,
}

/// The next step of a connection.
pub(super) enum Next {
    Event(Box<WatchEvent>),
    Fail(ListWatchError),
    End,
    /// Nothing until something changes.
    Wait,
    /// Nothing until the connection is reset.
    Stall,
}

impl Connection {
    pub(super) fn new(client: ClientId, epoch: u32, bookmarks: bool, deadline: Option<Instant>) -> Self {
        Self { client, epoch, bookmarks, deadline, ..Self::default() }
    }

    /// Whether it delivers changes to this client, as far as the server knows.
    pub(super) fn is_live(&self, client: ClientId) -> bool {
        self.client == client && self.faults.is_open() && self.initial_end.is_none()
    }
}

impl ModelState {
    /// The client polls its stream.
    pub(super) fn polled(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some(Received::List(state)) = connection.last {
            connection.last = None;
            self.truth.lock().applied(connection.client, state);
        }
    }

    /// The client has waited for its stream.
    pub(super) fn waited(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Some(Received::List(state) | Received::Events(state)) = connection.last.take() {
            self.truth.lock().applied(connection.client, state);
        }
    }

    /// The next step of a connection.
    pub(super) fn next(&mut self, id: u64) -> Next {
        let (epoch, compacted, current) = {
            let truth = self.truth.lock();
            (truth.history.epoch(), truth.history.compacted, truth.history.version)
        };
        let eager = self.has(Condition::EagerBookmarks);
        let Some(connection) = self.connections.get_mut(&id) else { return Next::End };
        if connection.faults.stalled {
            return Next::Stall;
        }
        if connection.epoch != epoch || connection.break_after == Some(0) {
            self.log.record_fault(Fault::Broken);
            return Next::Fail(broken());
        }
        match connection.faults.termination.take() {
            // The model sends whole events: there are none to truncate.
            Some(Termination::End | Termination::Truncate) => return Next::End,
            Some(Termination::Break) => return Next::Fail(broken()),
            Some(Termination::Error { code, reason }) => return self.send_error(id, code, reason),
            None => {}
        }
        connection.break_after = connection.break_after.map(|left| left - 1);
        if let Some(write) = connection.initial.pop_front() {
            return event(write.as_watched(self.truth.origin()), WatchEvent::Added);
        }
        let client = connection.client;
        if let Some(version) = connection.initial_end.take_if(|_| !connection.no_end_bookmark) {
            connection.last = Some(Received::List((epoch, version)));
            self.truth.lock().received_list(client, (epoch, version));
            return bookmark(version, true);
        }
        let next = self.truth.lock().history.next_change(connection.cursor, &connection.part).cloned();
        if let Some(write) = next {
            if write.version <= compacted {
                self.log.record_fault(Fault::ExpiredInStream);
                return self.send_error(id, 410, "Expired");
            }
            return self.send(id, &write);
        }
        let caught_up = connection.initial_end.is_none() && connection.bookmarks;
        if caught_up && (connection.faults.bookmark_due || eager && connection.cursor < current) {
            connection.faults.bookmark_due = false;
            connection.cursor = current;
            if self.truth.lock().received_event(client, (epoch, current)) {
                connection.last = Some(Received::Events((epoch, current)));
            }
            return bookmark(current, false);
        }
        if connection.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Next::End;
        }
        Next::Wait
    }

    fn send(&mut self, id: u64, write: &Write) -> Next {
        let Some(connection) = self.connections.get_mut(&id) else { return Next::End };
        let mut truth = self.truth.lock();
        let before = truth.history.before(write).filter(|before| connection.part.includes(before)).cloned();
        let selected = !write.deleted && connection.part.includes(write);
        connection.cursor = write.version;
        let client = connection.client;
        if let Some(with_version) = connection.faults.malformed.take_if(|_| connection.initial_end.is_none())
        {
            self.log.record_fault(Fault::MalformedEvent);
            truth.received_malformed(client, write.version);
            let resource_version = with_version.then(|| write.version.into());
            let malformed = Malformed::new("malformed").at(resource_version);
            return Next::Event(Box::new(WatchEvent::Malformed(malformed)));
        }
        if connection.initial_end.is_none() {
            let state = (connection.epoch, write.version);
            if truth.received_event(client, state) {
                connection.last = Some(Received::Events(state));
            }
            truth.watched(client, &write.key, state);
        }
        self.log.note(format_args!("client {client} receives n={}", write.n));
        let origin = self.truth.origin();
        match before {
            Some(_) if selected => event(write.as_watched(origin), WatchEvent::Modified),
            Some(before) if !write.deleted => {
                self.log.record_fault(Fault::Deselected);
                event(before.as_deselected(origin, write.version), WatchEvent::Deleted)
            }
            Some(_) => event(write.as_watched(origin), WatchEvent::Deleted),
            None => event(write.as_watched(origin), WatchEvent::Added),
        }
    }

    /// Sends an error event, after which the stream ends.
    fn send_error(&mut self, id: u64, code: u16, reason: &str) -> Next {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.faults.termination = Some(Termination::End);
        }
        Next::Event(Box::new(WatchEvent::Error(Status::failure(code, reason, "simulated"))))
    }

    /// Rejects a watch of a version that is compacted: with a 410 response, or a 410 event.
    pub(super) fn expire(&mut self, connection: &mut Connection) -> Result<(), ListWatchError> {
        if self.has(Condition::ExpiredOverHttp) {
            self.log.record_fault(Fault::ExpiredAtOpen);
            return Err(error_response(410, "Expired", RetryAfter::None));
        }
        self.log.record_fault(Fault::ExpiredInStream);
        connection.faults.termination = Some(Termination::Error { code: 410, reason: "Expired" });
        Ok(())
    }
}

fn event(
    object: Result<Object<Value>, Malformed>,
    variant: impl FnOnce(Object<Value>) -> WatchEvent,
) -> Next {
    Next::Event(Box::new(object.map_or_else(WatchEvent::Malformed, variant)))
}

fn bookmark(version: u64, initial_events_end: bool) -> Next {
    let bookmark = Bookmark { resource_version: version.into(), initial_events_end };
    Next::Event(Box::new(WatchEvent::Bookmark(bookmark)))
}
