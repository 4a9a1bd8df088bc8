//! The part of a cache that the store tells of changes and that watches hold on to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::error::ReadError;
use super::options::CacheOptions;
use super::request::Resource;
use super::state::State;
use crate::storage::{Change, Follower, Stored, Tree};

pub(super) struct Shared {
    pub(super) resource: Resource,
    pub(super) options: CacheOptions,
    /// Held for one step of the state or one batch of reading, never over an await or a wake.
    state: Mutex<State>,
    /// Everything of this resource up to this revision is in `state`. Written after `state`, read before it: whoever reads `r` here and then
    /// locks finds at least `r`. Apart from the lock because every write to any other resource moves it.
    progress: AtomicU64,
    /// Wakes reads that wait for a revision.
    advanced: Notify,
    /// Whether streams are held still (a fault).
    stalled: AtomicBool,
    /// Whether `lag` holds something back; saves its lock on every other write.
    lagging: AtomicBool,
    lag: Mutex<Option<HeldBack>>,
}

/// What a lagging cache was told and has not looked at (a fault). At most as much as the window has room for: a cache that lags
/// further has lost its place and is filled anew.
#[derive(Default)]
struct HeldBack {
    changes: Vec<Arc<Change>>,
    progress: u64,
    overflowed: bool,
}

/// What a cache shows at one moment.
pub(super) struct Snapshot {
    pub(super) tree: Tree,
    pub(super) revision: u64,
}

impl Shared {
    pub(super) fn new(resource: Resource, options: CacheOptions) -> Self {
        let state = State::new(options.window(), options.rng(&resource.prefix));
        Self {
            resource,
            options,
            state: Mutex::new(state),
            progress: AtomicU64::new(0),
            advanced: Notify::new(),
            stalled: AtomicBool::new(false),
            lagging: AtomicBool::new(false),
            lag: Mutex::new(None),
        }
    }

    /// Poison is ignored: what panics under this lock is a bug that the next check of the state shows.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest revision of the store this cache is known to show.
    pub(super) fn revision(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// Locks, and says at which revision the state then is.
    pub(super) fn lock_at(&self) -> (MutexGuard<'_, State>, u64) {
        let progress = self.revision();
        let state = self.lock();
        let revision = progress.max(state.revision);
        (state, revision)
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot, ReadError> {
        let (state, revision) = self.lock_at();
        state.check_ready()?;
        Ok(Snapshot { tree: state.tree.clone(), revision })
    }

    /// Waits until the cache has reached a revision, for a while.
    pub(super) async fn reached(&self, revision: u64) -> Result<(), ReadError> {
        let deadline = Instant::now() + self.options.wait;
        loop {
            let mut advanced = std::pin::pin!(self.advanced.notified());
            advanced.as_mut().enable();
            let current = self.revision();
            if current >= revision {
                return Ok(());
            }
            if timeout_at(deadline, advanced).await.is_err() {
                return Err(ReadError::TooLarge { requested: revision, current, retry_after: Some(1) });
            }
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// Holds all streams still or lets them go on. Changed under the lock, so that no stream parks after it was let go.
    pub(super) fn stall(&self, stalled: bool) {
        let wake = {
            let mut state = self.lock();
            self.stalled.store(stalled, Ordering::Release);
            state.watchers.wake_all()
        };
        wake.all();
    }

    /// Stops looking at what the store tells.
    pub(super) fn hold_back(&self) {
        let mut lag = self.lag();
        lag.get_or_insert_default();
        self.lagging.store(true, Ordering::Release);
    }

    /// Catches up. False if too much was held back and the cache must be filled anew.
    pub(super) fn let_go(&self) -> bool {
        let mut lag = self.lag();
        let held = lag.take().unwrap_or_default();
        if !held.overflowed {
            held.changes.iter().for_each(|change| self.apply(change));
            self.advance(held.progress);
        }
        self.lagging.store(false, Ordering::Release);
        !held.overflowed
    }

    fn lag(&self) -> MutexGuard<'_, Option<HeldBack>> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, change: &Arc<Change>) {
        let wake = self.lock().change(change);
        self.advance(change.revision);
        wake.all();
    }

    fn advance(&self, revision: u64) {
        self.progress.fetch_max(revision, Ordering::AcqRel);
        self.advanced.notify_waiters();
    }
}

impl Follower for Shared {
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        if let Some(held) = self.lag().as_mut() {
            *held = HeldBack { progress: revision, ..HeldBack::default() };
        }
        let wake = self.lock().reset(revision, items);
        self.advance(revision);
        wake.all();
    }

    fn change(&self, change: &Arc<Change>) {
        if self.lagging.load(Ordering::Acquire)
            && let Some(held) = self.lag().as_mut()
        {
            held.overflowed |= held.changes.len() >= self.options.window_max;
            if !held.overflowed {
                held.changes.push(Arc::clone(change));
            }
            return;
        }
        self.apply(change);
    }

    fn progress(&self, revision: u64) {
        if self.lagging.load(Ordering::Acquire)
            && let Some(held) = self.lag().as_mut()
        {
            held.progress = held.progress.max(revision);
            return;
        }
        self.advance(revision);
    }

    fn compacted(&self, revision: u64) {
        self.lock().compacted(revision);
    }

    fn lost(&self, cause: &str) {
        let wake = self.lock().lost(cause);
        wake.all();
    }
}
