//! Fan-out: queues every change for every listener.

use crate::{
    delta::AnyObject,
    handler::Event,
    indexer::Snapshot,
    listener::Listener,
    resync::{CheckPeriod, Due},
    scope::Partition,
};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Events that are queued for listeners while the lock of the processor is held; then others get a chance to take it.
const PUSH_AT_ONCE: usize = 4096;

/// Names one listener of a processor.
pub(crate) type ListenerId = u64;

/// The listeners of one informer.
///
/// Its lock stops the pipeline: listeners join and leave, resyncs begin and snapshots are swapped under it. A listener that joins
/// between two steps of a long fan-out has found the whole batch in the snapshot and is no part of the fan-out, as if it had joined
/// after it.
pub(crate) struct Processor {
    /// In the order in which they joined.
    listeners: Vec<Entry>,
    check: CheckPeriod,
    next_id: ListenerId,
}

struct Entry {
    id: ListenerId,
    listener: Arc<Listener>,
    due: Due,
    /// Whether the next resync is for this listener.
    pending: bool,
    /// Whether the current resync is for this listener.
    syncing: bool,
}

/// A change to be queued for the listeners.
#[derive(Debug, Clone)]
pub(crate) enum Notification {
    /// For all listeners. The state before it, if there was one.
    Change(Event<Value>, Option<AnyObject>),
    /// For those that a resync is due for.
    Sync(AnyObject),
}

impl Processor {
    pub(crate) fn new(resync: Duration) -> Self {
        Self { listeners: Vec::new(), check: CheckPeriod::new(resync), next_id: 0 }
    }

    /// The informer starts: resync periods are settled.
    pub(crate) fn start(&mut self) {
        self.check.start();
    }

    /// Period of checks whether a resync is due.
    pub(crate) fn check_period(&self) -> Option<Duration> {
        self.check.get()
    }

    /// A listener joins. It gets what the store holds now, and everything that happens from now on.
    pub(crate) fn join(
        &mut self,
        listener: Arc<Listener>,
        resync: Duration,
        snapshot: &Arc<Snapshot>,
        now: Instant,
    ) -> ListenerId {
        if snapshot.len() > 0 {
            listener.walk(snapshot.contents(), None);
        }
        // The store may show the initial list before its fan-out, which a panic interrupted and which skips this listener.
        if snapshot.is_listed() {
            listener.upstream_synced();
        }
        let asked = self.check.request(resync);
        let due = Due::new(asked, &self.check, now);
        let id = self.next_id;
        self.next_id += 1;
        self.listeners.push(Entry { id, listener, due, pending: false, syncing: false });
        id
    }

    /// A listener leaves: it receives no further event.
    pub(crate) fn leave(&mut self, id: ListenerId) -> Option<Arc<Listener>> {
        let at = self.listeners.iter().position(|entry| entry.id == id)?;
        Some(self.listeners.remove(at).listener)
    }

    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.listeners.iter().map(|entry| &entry.listener)
    }

    /// Marks the listeners for which a resync is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        for entry in &mut self.listeners {
            entry.pending |= entry.due.take(&self.check, now);
        }
    }

    /// Begins the resync for the marked listeners; the one before must be complete. Returns whether there are any.
    pub(crate) fn begin_resync(&mut self) -> bool {
        for entry in &mut self.listeners {
            entry.syncing = std::mem::take(&mut entry.pending);
        }
        self.listeners.iter().any(|entry| entry.syncing)
    }

    /// Begins to hand out a batch to those that are there now.
    pub(crate) fn fan_out(&self) -> FanOut {
        // The same for all steps, also if a listener joins or leaves in between.
        let at_once = PUSH_AT_ONCE.checked_div(self.listeners.len()).unwrap_or(PUSH_AT_ONCE).max(1);
        FanOut {
            at_once,
            from: 0,
            next: 0,
            end: self.next_id,
            current: None,
            unannounced: VecDeque::new(),
            interrupted: Vec::new(),
        }
    }

    /// Hands out the next changes of one batch to those that have not got them, and calls `queued` after each listener. Returns
    /// whether changes are left for another call.
    ///
    /// A listener that joins between two calls has found all changes in the store.
    pub(crate) fn distribute(
        &mut self,
        notifications: &[Notification],
        fan_out: &mut FanOut,
        queued: impl Fn(),
    ) -> bool {
        let rest = notifications.get(fan_out.from..).unwrap_or_default();
        if rest.is_empty() {
            return false;
        }
        self.leave_interrupted(fan_out);
        let (next, rest) = rest.split_at(fan_out.at_once.min(rest.len()));
        for entry in &self.listeners {
            if !fan_out.begin(entry.id) {
                continue;
            }
            let coalesced = entry.listener.push(next.iter().filter_map(|notification| match notification {
                Notification::Change(event, seen) => Some((event.clone(), seen.clone())),
                Notification::Sync(object) => entry.syncing.then(|| {
                    (Event::Updated { old: object.clone(), new: object.clone() }, Some(object.clone()))
                }),
            }));
            fan_out.done(entry.id, Some((Arc::clone(&entry.listener), coalesced)));
            queued();
        }
        fan_out.step(next.len());
        !rest.is_empty()
    }

    /// The initial list of a partition is complete: every listener that lacks it gets it.
    pub(crate) fn distribute_initial_list(
        &mut self,
        partition: Partition,
        snapshot: &Arc<Snapshot>,
        fan_out: &mut FanOut,
        queued: impl Fn(),
    ) {
        let listed = snapshot.is_listed();
        let objects = snapshot.contents();
        self.leave_interrupted(fan_out);
        for entry in &self.listeners {
            if !fan_out.begin(entry.id) {
                continue;
            }
            entry.listener.walk(Arc::clone(&objects), Some(partition));
            if listed {
                entry.listener.upstream_synced();
            }
            fan_out.done(entry.id, Some((Arc::clone(&entry.listener), 0)));
            queued();
        }
    }

    /// The store is synced: listeners that have received everything before this are, too.
    pub(crate) fn mark_synced(&self, fan_out: &mut FanOut) {
        for entry in &self.listeners {
            entry.listener.upstream_synced();
            fan_out.unannounced.push_back((Arc::clone(&entry.listener), 0));
        }
    }

    /// A listener whose turn ended with a panic may have got a part of the batch: neither the whole of it nor nothing
    /// is right for it, so it leaves.
    fn leave_interrupted(&mut self, fan_out: &mut FanOut) {
        if let Some(id) = fan_out.current {
            fan_out.done(id, None);
            fan_out.interrupted.extend(self.leave(id));
        }
    }
}

/// How far a batch has been handed out. It outlives a panic.
pub(crate) struct FanOut {
    /// Changes that are handed out in one step.
    at_once: usize,
    /// All listeners have the changes before this one.
    from: usize,
    /// Those before this one have the changes of the current step.
    next: ListenerId,
    /// Those from this one on joined later and found it in the store.
    end: ListenerId,
    /// The listener whose turn it is.
    current: Option<ListenerId>,
    /// Listeners with new events whose task is not woken yet, and how many events were coalesced.
    unannounced: VecDeque<(Arc<Listener>, u64)>,
    /// Those that left because a panic ended their turn.
    interrupted: Vec<Arc<Listener>>,
}

impl FanOut {
    /// Begins the turn of a listener; false if it needs none.
    fn begin(&mut self, id: ListenerId) -> bool {
        let lacks = (self.next..self.end).contains(&id);
        if lacks {
            self.current = Some(id);
        }
        lacks
    }

    fn done(&mut self, id: ListenerId, queued: Option<(Arc<Listener>, u64)>) {
        (self.next, self.current) = (id + 1, None);
        self.unannounced.extend(queued);
    }

    /// All listeners have the next `changes`.
    fn step(&mut self, changes: usize) {
        (self.from, self.next) = (self.from.saturating_add(changes), 0);
    }

    /// Wakes the tasks of listeners with new events. To be called without the processor's lock.
    pub(crate) fn announce(&mut self) {
        while let Some((listener, coalesced)) = self.unannounced.pop_front() {
            listener.announce(coalesced);
        }
    }

    /// The listeners that left because a panic ended their turn.
    pub(crate) fn into_interrupted(self) -> Vec<Arc<Listener>> {
        self.interrupted
    }
}
