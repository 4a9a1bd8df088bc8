//! What controllers and kubelets do on a real cluster, as far as clients rely on it: garbage collection, and the end of deleted pods.
//!
//! Nothing has to run in the background. The store tells [`Controllers`] of every change, which notes what may have to be done; the request
//! that caused it does it before it is answered ([`Engine::tend`]): no delay, and the same run for the same seed. A server on a socket
//! also looks by itself, for changes that other servers made.

mod acts;
mod graph;
mod node;
mod plan;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use self::graph::Graph;
use crate::engine::Engine;
use crate::storage::{Change, Follower, Stored};

/// Pause after something could not be done.
const RETRY: Duration = Duration::from_secs(1);

/// Which of them are at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) garbage_collection: bool,
    pub(crate) finalize_pods: bool,
}

impl Switches {
    pub(crate) fn any(self) -> bool {
        self.garbage_collection || self.finalize_pods
    }
}

/// Who belongs to whom, and what may have to be done about it.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    pub(crate) switches: Switches,
    /// Held for one change or one look, never over an await.
    state: Mutex<State>,
    /// Held while something is done: one at a time, in order.
    at_work: tokio::sync::Mutex<()>,
    noted: Notify,
}

#[derive(Debug, Default)]
struct State {
    graph: Graph,
    /// Keys to look at, in order. Bounded by the objects there are.
    pending: BTreeSet<Arc<str>>,
}

impl Controllers {
    pub(crate) fn new(switches: Switches) -> Arc<Self> {
        Arc::new(Self { switches, ..Self::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Turn<'_>> {
        let key = self.lock().pending.pop_first()?;
        Some(Turn { controllers: self, key, done: false })
    }
}

/// A key that is being looked at. Given up halfway, it is pending again.
struct Turn<'c> {
    controllers: &'c Controllers,
    key: Arc<str>,
    done: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.controllers.lock().pending.insert(Arc::clone(&self.key));
        }
    }
}

impl Engine {
    /// Does everything that has to be done now. False if something could not be done and should be tried again later.
    ///
    /// # Cancel safety
    /// Dropped halfway, the rest stays noted.
    pub(crate) async fn tend(&self) -> bool {
        let controllers = &self.controllers;
        if !controllers.switches.any() || controllers.lock().pending.is_empty() {
            return true;
        }
        let _turn = controllers.at_work.lock().await;
        while let Some(mut turn) = controllers.next() {
            if let Err(status) = self.attend(&turn.key).await {
                tracing::warn!(
                    key = &*turn.key,
                    ?status,
                    "could not do what a controller would; trying again later"
                );
                return false;
            }
            turn.done = true;
        }
        true
    }

    /// Tends whenever something was noted, for as long as the server lives.
    pub(crate) async fn keep_tending(&self) {
        if !self.controllers.switches.any() {
            return;
        }
        loop {
            self.controllers.noted.notified().await;
            while !self.tend().await {
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

impl Follower for Controllers {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let mut state = self.lock();
        *state = State::default();
        let State { graph, pending } = &mut *state;
        items.iter().for_each(|stored| graph.put(stored));
        pending.extend(graph.interesting(self.switches));
        drop(state);
        self.noted.notify_one();
    }

    fn change(&self, change: &Arc<Change>) {
        let mut state = self.lock();
        let State { graph, pending } = &mut *state;
        let before = pending.len();
        pending.extend(graph.apply(change, self.switches));
        let more = pending.len() > before;
        drop(state);
        if more {
            self.noted.notify_one();
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// A reset follows; until then what was noted is still true enough, because every act looks at the stored object first.
    fn lost(&self, _cause: &str) {}
}
