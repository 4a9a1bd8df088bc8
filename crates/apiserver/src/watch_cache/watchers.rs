//! Everybody who watches: found by scope, woken when there is something to read, closed when overtaken.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::filter::Filter;
use super::request::Scope;
use super::state::Wake;
use super::window::Window;
use crate::storage::Change;

/// Watchers of one cache.
///
/// A watcher has no queue: it reads the window it shares with all others, from its own position. So a change costs one wake per idle
/// watcher whom it concerns, nothing for one that is already behind, and a slow watcher costs nothing but itself.
///
/// **Bound and policy**: the backlog of a watcher is the window. A watcher that the window moves past is closed; it may resume with a new
/// watch if its version is still known, or is told that it is too old.
#[derive(Default)]
pub(super) struct Watchers {
    /// By narrowed scope, so that a change looks only at those it may concern; within a scope in order of arrival.
    by_scope: BTreeMap<Scope, BTreeMap<u64, Watcher>>,
    next_id: u64,
    /// Events dropped from the window since watchers were last checked for being overtaken.
    dropped: u64,
    /// How many watchers were closed because they were too slow.
    pub(super) overtaken: u64,
}

struct Watcher {
    filter: Arc<Filter>,
    position: Position,
    waker: Option<Waker>,
}

/// Where a watcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// It has read everything that concerns it.
    Idle,
    /// It has read the window up to this number.
    Reading(u64),
    /// Its stream must end.
    Closed,
}

impl Watchers {
    /// Registers a watcher that has read up to a number.
    pub(super) fn add(&mut self, filter: &Arc<Filter>, from: u64) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let watcher = Watcher { filter: Arc::clone(filter), position: Position::Reading(from), waker: None };
        self.by_scope.entry(filter.scope().clone()).or_default().insert(id, watcher);
        id
    }

    pub(super) fn remove(&mut self, scope: &Scope, id: u64) {
        if let Some(watchers) = self.by_scope.get_mut(scope) {
            watchers.remove(&id);
            if watchers.is_empty() {
                self.by_scope.remove(scope);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_scope.values().map(BTreeMap::len).sum()
    }

    pub(super) fn position(&self, scope: &Scope, id: u64) -> Position {
        self.by_scope.get(scope).and_then(|w| w.get(&id)).map_or(Position::Closed, |w| w.position)
    }

    /// Moves a watcher and keeps its waker for the next change.
    pub(super) fn park(&mut self, scope: &Scope, id: u64, position: Position, cx: &Context<'_>) {
        if let Some(watcher) = self.by_scope.get_mut(scope).and_then(|w| w.get_mut(&id)) {
            watcher.position = position;
            match &mut watcher.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
    }

    pub(super) fn advance(&mut self, scope: &Scope, id: u64, to: u64) {
        if let Some(watcher) = self.by_scope.get_mut(scope).and_then(|w| w.get_mut(&id)) {
            watcher.position = Position::Reading(to);
        }
    }

    /// Wakes the idle ones whom a change concerns; it has this number in the window.
    pub(super) fn tell(&mut self, change: &Change, number: u64) -> Wake {
        let mut wake = Vec::new();
        for scope in scopes(change) {
            for watcher in self.by_scope.get_mut(&scope).into_iter().flat_map(BTreeMap::values_mut) {
                if watcher.position == Position::Idle && watcher.concerns(change) {
                    watcher.position = Position::Reading(number);
                    wake.extend(watcher.waker.take());
                }
            }
        }
        Wake(wake)
    }

    /// Closes who is behind the window, checking only when a good part of it has gone since the last time.
    pub(super) fn close_overtaken(&mut self, dropped: u64, window: &Window, wake: &mut Wake) {
        self.dropped += dropped;
        if self.dropped < window.capacity() as u64 / 8 {
            return;
        }
        self.dropped = 0;
        let first = window.first();
        for watcher in self.by_scope.values_mut().flat_map(BTreeMap::values_mut) {
            if matches!(watcher.position, Position::Reading(at) if at < first) {
                self.overtaken += 1;
                watcher.close(wake);
            }
        }
    }

    pub(super) fn close_all(&mut self) -> Wake {
        let mut wake = Wake(Vec::new());
        for watcher in self.by_scope.values_mut().flat_map(BTreeMap::values_mut) {
            watcher.close(&mut wake);
        }
        wake
    }

    pub(super) fn wake_all(&mut self) -> Wake {
        let watchers = self.by_scope.values_mut().flat_map(BTreeMap::values_mut);
        Wake(watchers.filter_map(|watcher| watcher.waker.take()).collect())
    }
}

impl Watcher {
    fn concerns(&self, change: &Change) -> bool {
        [&change.previous, &change.current].into_iter().flatten().any(|stored| self.filter.selects(stored))
    }

    fn close(&mut self, wake: &mut Wake) {
        self.position = Position::Closed;
        wake.0.extend(self.waker.take());
    }
}

/// The scopes a change falls into: everything, its namespace, the object itself with and without a namespace.
fn scopes(change: &Change) -> [Scope; 4] {
    let key = change.key();
    let mut parts = key.rsplit('/');
    let name = parts.next().unwrap_or_default().to_owned();
    let namespace = parts.next().unwrap_or_default().to_owned();
    [
        Scope::All,
        Scope::Namespace(namespace.clone()),
        Scope::Object { namespace: Some(namespace), name: name.clone() },
        Scope::Object { namespace: None, name },
    ]
}
