//! The state of a cache, changed only by notifications from the store.

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
/// Invariants: `tree` holds the objects of this resource at `revision`; the newest event of `window` led to it; every watcher is idle,
/// closed or has a position in the window.
pub(super) struct State {
    pub(super) readiness: Readiness,
    pub(super) tree: Tree,
    /// The revision of the last change or reset.
    pub(super) revision: u64,
    pub(super) window: Window,
    pub(super) pages: Pages,
    pub(super) watchers: Watchers,
    /// The number of changes received.
    pub(super) received: u64,
    pub(super) resets: u64,
    /// Draws the durations of watches without a timeout.
    pub(super) rng: fastrand::Rng,
}

/// The wakers to call after the lock is released.
#[must_use = "watchers sleep until they are woken"]
pub(super) struct Wakers(pub(super) Vec<Waker>);

impl Wakers {
    pub(super) fn wake_all(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl State {
    pub(super) fn new(size: WindowSize, rng: fastrand::Rng) -> Self {
        Self {
            readiness: Readiness::initializing(None),
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

    /// Replaces the whole state. The window is emptied and every watch ends.
    pub(super) fn reset(&mut self, revision: u64, items: Vec<Arc<Stored>>) -> Wakers {
        self.tree = items.into_iter().map(|stored| (Arc::clone(&stored.key), stored)).collect();
        self.revision = revision;
        self.window.reset(revision, self.tree.clone());
        self.pages.clear();
        self.readiness = Readiness::Ready;
        self.resets += 1;
        self.watchers.close_all()
    }

    /// Applies one change to the tree, the window and the watchers, in this order.
    pub(super) fn change(&mut self, change: &Arc<Change>) -> Wakers {
        apply(&mut self.tree, change);
        self.revision = change.revision;
        self.received += 1;
        let event = Arc::new(Event::new(Arc::clone(change)));
        let number = self.window.end();
        let first = self.window.first();
        self.window.push(event, &self.tree, Instant::now());
        let mut wakers = self.watchers.notify(change, number);
        let dropped = self.window.first() - first;
        if dropped > 0 {
            self.pages.forget_before(self.window.oldest());
            self.watchers.close_slow(dropped, &self.window, &mut wakers);
        }
        wakers
    }

    /// Removes what the store has compacted: everything up to this revision.
    pub(super) fn compacted(&mut self, revision: u64) {
        self.window.compacted(revision);
        self.pages.forget_before(revision + 1);
    }

    /// Marks the cache as not ready after the connection to the store broke.
    pub(super) fn lost(&mut self, cause: &str) -> Wakers {
        self.readiness = Readiness::initializing(Some(cause.to_owned()));
        self.watchers.close_all()
    }

    pub(super) fn check_ready(&self) -> Result<(), ReadError> {
        self.readiness.check()
    }
}
