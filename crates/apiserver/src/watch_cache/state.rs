//! What the cache knows, changed only by what the store tells it.

use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use super::error::ReadError;
use super::event::Event;
use super::pages::Pages;
use super::readiness::Readiness;
use super::watchers::Watchers;
use super::window::{Window, WindowSize};
use crate::storage::{Change, Stored, Tree, apply};

/// The state behind the lock of a cache.
///
/// Invariants: `tree` is the state of the store at `revision`, as far as this resource goes; the newest event of `window` led to it; every
/// watcher is idle or holds a position in the window.
pub(super) struct State {
    pub(super) readiness: Readiness,
    pub(super) tree: Tree,
    /// The revision of the last change or full read that was told.
    pub(super) revision: u64,
    pub(super) window: Window,
    pub(super) pages: Pages,
    pub(super) watchers: Watchers,
    /// How many changes were told.
    pub(super) received: u64,
    /// How often everything was told anew.
    pub(super) resets: u64,
    /// Draws the length of watches that do not say theirs.
    pub(super) rng: fastrand::Rng,
}

/// Who must be woken after the lock is released.
#[must_use = "watchers sleep until they are woken"]
pub(super) struct Wake(pub(super) Vec<Waker>);

impl Wake {
    pub(super) fn all(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl State {
    pub(super) fn new(size: WindowSize, rng: fastrand::Rng) -> Self {
        Self {
            readiness: Readiness::filling(None),
            tree: Tree::new(),
            revision: 0,
            window: Window::new(size),
            pages: Pages::default(),
            watchers: Watchers::default(),
            received: 0,
            resets: 0,
            rng,
        }
    }

    /// The whole state anew: history is void and every watch ends.
    pub(super) fn reset(&mut self, revision: u64, items: Vec<Arc<Stored>>) -> Wake {
        self.tree = items.into_iter().map(|stored| (Arc::clone(&stored.key), stored)).collect();
        self.revision = revision;
        self.window.reset(revision, self.tree.clone());
        self.pages.clear();
        self.readiness = Readiness::Ready;
        self.resets += 1;
        self.watchers.close_all()
    }

    /// One change: state, window, watchers, in this order.
    pub(super) fn change(&mut self, change: &Arc<Change>) -> Wake {
        apply(&mut self.tree, change);
        self.revision = change.revision;
        self.received += 1;
        let event = Arc::new(Event::new(Arc::clone(change)));
        let number = self.window.end();
        let first = self.window.first();
        self.window.push(event, &self.tree, Instant::now());
        let mut wake = self.watchers.tell(change, number);
        let dropped = self.window.first() - first;
        if dropped > 0 {
            self.pages.forget_before(self.window.oldest());
            self.watchers.close_overtaken(dropped, &self.window, &mut wake);
        }
        wake
    }

    /// The store has compacted up to this revision.
    pub(super) fn compacted(&mut self, revision: u64) {
        self.window.compacted(revision);
        self.pages.forget_before(revision + 1);
    }

    pub(super) fn lost(&mut self, cause: &str) -> Wake {
        self.readiness = Readiness::filling(Some(cause.to_owned()));
        self.watchers.close_all()
    }

    pub(super) fn check_ready(&self) -> Result<(), ReadError> {
        self.readiness.check()
    }
}
