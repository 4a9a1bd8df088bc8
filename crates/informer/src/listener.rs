//! One handler and its own backlog.

use crate::{
    backlog::Backlog,
    delta::AnyObject,
    fail_point::{FailPoint, FailPoints},
    handler::{Deliver, Event},
    indexer::Contents,
    scope::Partition,
    supervision::{Restarts, Supervision, TaskId, panic_message},
    telemetry::{ListenerMeters, Task, Telemetry},
};
use futures_util::FutureExt;
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// A call that takes longer is reported.
const SLOW_CALL: Duration = Duration::from_secs(1);
/// Calls between two chances for other tasks.
const CALLS_A_TURN: usize = 64;

/// One handler of an informer, with its pending events.
pub(crate) struct Listener {
    /// Held while an event is put in or taken out, never while the handler runs.
    state: Mutex<State>,
    wake: Notify,
    synced: watch::Sender<SyncState>,
    ended: watch::Sender<bool>,
    meters: ListenerMeters,
}

struct State {
    backlog: Backlog,
    end: End,
    /// The handler, until its task takes it. A stream has none: its reader takes the events.
    handler: Option<Deliver>,
    /// Whether events are taken by a stream.
    pulled: bool,
    /// Whether the informer has its first complete list, and with it the last walk.
    upstream_synced: bool,
    /// When the backlog last became non-empty.
    behind_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum End {
    Open,
    /// Queued events are still delivered.
    Draining,
    /// Nothing more is delivered.
    Closed,
}

/// Whether a handler has received every object that existed before it was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncState {
    Pending,
    Done,
    /// It ended before it was synced and never will be.
    Never,
}

/// The next step of a handler.
pub(crate) enum Next {
    Event(Event<Value>),
    Wait,
    End,
}

impl Listener {
    pub(crate) fn new(bound: usize, meters: ListenerMeters) -> Self {
        let state = State {
            backlog: Backlog::new(bound),
            end: End::Open,
            handler: None,
            pulled: false,
            upstream_synced: false,
            behind_since: None,
        };
        let (synced, ended) = (watch::Sender::new(SyncState::Pending), watch::Sender::new(false));
        Self { state: Mutex::new(state), wake: Notify::new(), synced, ended, meters }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.meters.name
    }

    /// Sets the handler that a task is to call.
    pub(crate) fn set_handler(&self, handler: Deliver) {
        let mut state = self.lock();
        let closed = state.end == End::Closed;
        let unused = if closed { Some(handler) } else { state.handler.replace(handler) };
        drop(state);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unused)));
        if closed {
            self.ended();
        }
    }

    /// The handler, for the task that calls it; `None` if the listener has ended before.
    pub(crate) fn take_handler(&self) -> Option<Deliver> {
        self.lock().handler.take()
    }

    /// A stream takes the events.
    pub(crate) fn set_pulled(&self) {
        self.lock().pulled = true;
    }

    /// Queues events, each with the state before it. Returns how many were coalesced, to
    /// [`announce`](Self::announce).
    pub(crate) fn push(&self, events: impl IntoIterator<Item = (Event<Value>, Option<AnyObject>)>) -> u64 {
        let mut state = self.lock();
        let before = state.backlog.coalesced();
        if state.end != End::Closed {
            events.into_iter().for_each(|(event, seen)| state.backlog.push(event, seen));
            state.behind_since.get_or_insert_with(Instant::now);
        }
        state.backlog.coalesced() - before
    }

    /// Events have been queued: wakes the task and updates the metrics, both of which may run code of the user. To be called
    /// without a lock.
    pub(crate) fn announce(&self, coalesced: u64) {
        let discarded = self.lock().backlog.take_discarded();
        drop(discarded);
        self.wake.notify_one();
        self.meters.coalesced.increment(coalesced);
    }

    /// Queues everything in a snapshot, or in one partition of it.
    pub(crate) fn walk(&self, objects: Arc<Contents>, partition: Option<Partition>) {
        let mut state = self.lock();
        if state.end != End::Closed {
            state.backlog.walk(objects, partition);
        }
    }

    /// The informer has its first complete list, and this listener has been given it.
    pub(crate) fn upstream_synced(&self) {
        self.lock().upstream_synced = true;
    }

    /// The next event. Asking for it says that the one before has been dealt with.
    pub(crate) fn next(&self) -> Next {
        let (next, behind) = self.take_next();
        self.meters.lag.set(behind.as_secs_f64());
        next
    }

    /// The next event, and how long the handler has been behind.
    fn take_next(&self) -> (Next, Duration) {
        let mut state = self.lock();
        if state.end == End::Closed {
            return (Next::End, Duration::ZERO);
        }
        let next = state.backlog.next();
        let synced = state.upstream_synced && state.backlog.is_walked();
        if next.is_none() {
            state.behind_since = None;
        }
        let behind = state.behind_since.map_or(Duration::ZERO, |since| since.elapsed());
        let next = match next {
            Some(event) => Next::Event(event),
            None if state.end == End::Draining => Next::End,
            None => Next::Wait,
        };
        let discarded = state.backlog.take_discarded();
        // Wakers and drops are code of the user.
        drop(state);
        drop(discarded);
        if synced {
            self.settle(SyncState::Done);
        }
        (next, behind)
    }

    /// Resolves when nothing more is delivered.
    async fn closed(&self) {
        while self.lock().end != End::Closed {
            self.wait().await;
        }
    }

    /// Resolves when there may be something next.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }

    /// Ends the listener. With `drain`, pending and later events are still delivered; otherwise pending events are
    /// dropped and later ones ignored.
    pub(crate) fn close(&self, drain: bool) {
        let mut state = self.lock();
        let end = if drain { End::Draining } else { End::Closed };
        if end > state.end {
            state.end = end;
        }
        let (mut undelivered, mut idle) = (None, None);
        if state.end == End::Closed {
            undelivered = Some(state.backlog.clear());
            idle = state.handler.take();
        }
        drop(state);
        drop(undelivered);
        self.wake.notify_one();
        if idle.is_some() {
            // No task will ever call it, nor say that it ended. Its drop is code of the user, which may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(idle)));
            self.mark_ended();
        }
    }

    /// The informer has stopped and its tasks have ended. What a stream has still to take, it may take.
    pub(crate) fn stopped(&self) {
        let state = self.lock();
        let left_to_take = state.pulled && state.end == End::Draining;
        drop(state);
        if !left_to_take {
            self.ended();
        }
    }

    /// The last call has returned.
    pub(crate) fn ended(&self) {
        self.close(false);
        self.mark_ended();
    }

    fn mark_ended(&self) {
        self.settle(SyncState::Never);
        self.meters.release_name();
        self.ended.send_replace(true);
    }

    /// Sets the sync state unless it is already set.
    fn settle(&self, state: SyncState) {
        self.synced.send_if_modified(|sync| {
            let pending = *sync == SyncState::Pending;
            if pending {
                *sync = state;
            }
            pending
        });
    }

    /// Becomes true once the handler is no longer running, nor will be.
    pub(crate) fn has_ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(crate) fn synced(&self) -> watch::Receiver<SyncState> {
        self.synced.subscribe()
    }

    /// Pending entries, and coalesced events.
    pub(crate) fn load(&self) -> (usize, u64) {
        let state = self.lock();
        (state.backlog.len(), state.backlog.coalesced())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Says that the listener ended, however its task did.
struct Ended(Arc<Listener>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// Calls a handler for every event until its listener ends.
pub(crate) fn run(
    listener: Arc<Listener>,
    deliver: Deliver,
    supervision: Arc<Supervision>,
    fail_points: FailPoints,
) -> impl Future<Output = ()> + Send {
    // Made before the future is: a task that is aborted before it ever ran has ended too.
    let ended = Ended(Arc::clone(&listener));
    let id = TaskId::Handler(Arc::clone(listener.name()), Arc::as_ptr(&listener).addr());
    let telemetry = Arc::clone(supervision.telemetry());
    let mut calls = Calls { listener, deliver, telemetry, fail_points, current_event: None };
    async move {
        let mut restarts = Restarts::new(0);
        loop {
            restarts.started();
            let Err(panic) = AssertUnwindSafe(calls.drive(&supervision, &id)).catch_unwind().await else {
                break;
            };
            let Some(restart) = supervision.panicked(&id, panic, &mut restarts) else { break };
            tokio::select! {
                biased;
                () = calls.listener.closed() => break,
                () = supervision.wait(restart) => {}
            }
        }
        supervision.recovered(&id);
        // The handler is dropped before its end is announced, so that callers who wait for the end can rely on it.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(calls))) {
            let why = format!("the drop of handler {} panicked: {}", ended.0.name(), panic_message(&*panic));
            supervision.telemetry().task_failed(Task::Handler, why);
        }
        drop(ended);
    }
}

/// The calls of one handler. What it holds outlives a panic.
struct Calls {
    listener: Arc<Listener>,
    deliver: Deliver,
    telemetry: Arc<Telemetry>,
    fail_points: FailPoints,
    /// The event that has been taken and not yet delivered.
    current_event: Option<Event<Value>>,
}

impl Calls {
    async fn drive(&mut self, supervision: &Supervision, id: &TaskId) {
        let mut calls = 0_usize;
        loop {
            if self.current_event.is_none() {
                let (next, behind) = self.listener.take_next();
                match next {
                    Next::End => return,
                    Next::Wait => {
                        supervision.recovered(id);
                        self.listener.meters.lag.set(0.0);
                        self.listener.wait().await;
                        continue;
                    }
                    Next::Event(event) => self.current_event = Some(event),
                }
                self.listener.meters.lag.set(behind.as_secs_f64());
            }
            self.fail_points.at(FailPoint::HandlerCall);
            if let Some(event) = self.current_event.take() {
                call(&self.listener, &mut self.deliver, event, &self.telemetry);
            }
            self.fail_points.at(FailPoint::HandlerReturned);
            calls += 1;
            if calls.is_multiple_of(CALLS_A_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }
}

fn call(listener: &Listener, deliver: &mut Deliver, event: Event<Value>, telemetry: &Telemetry) {
    let key = event.object().key().clone();
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| deliver(event)));
    let took = start.elapsed();
    if result.is_err() {
        telemetry.handler_panicked(listener.name(), &key);
    }
    if took >= SLOW_CALL {
        telemetry.handler_slow(listener.name(), &key, took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixtures::object, scope::Scope, shared_informer::Selection};
    use kube_informer_wire::Kind;

    fn listener() -> Listener {
        let kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
        let telemetry = Telemetry::new("listener", kind, &Scope::all(), &Selection::default(), None);
        Listener::new(10, telemetry.listener("test"))
    }

    fn push(listener: &Listener) {
        let added = Event::Added { object: object("ns/a", 1), initial: false };
        listener.push([(added, None)]);
    }

    #[test]
    fn a_draining_listener_delivers_everything_and_ends() {
        let listener = listener();
        push(&listener);
        listener.close(true);
        push(&listener);
        for _ in 0..2 {
            assert!(matches!(listener.next(), Next::Event(_)));
        }
        assert!(matches!(listener.next(), Next::End));
    }

    #[test]
    fn a_closed_listener_keeps_nothing() {
        let listener = listener();
        push(&listener);
        listener.close(false);
        push(&listener);
        let indexer = crate::indexer::Indexer::new(crate::scope::Partitions::of_scope(&Scope::all()));
        listener.walk(indexer.snapshot().contents(), None);
        assert_eq!(listener.load().0, 0);
        assert!(matches!(listener.next(), Next::End));
    }
}
