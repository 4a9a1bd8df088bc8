//! The part of a cache that receives changes from the store and that open watches share.

use kube_informer_wire::sync::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::encodings::Encodings;
use super::error::ReadError;
use super::options::CacheOptions;
use super::request::Resource;
use super::state::State;
use crate::storage::{Change, Follower, Stored, Tree};

pub(super) struct Shared {
    pub(super) resource: Resource,
    pub(super) options: CacheOptions,
    /// Locked for one change of the state or to read one batch, never across an await or while waking a task.
    state: Mutex<State>,
    /// `state` includes every change of this resource up to this revision. Written after `state` and read before it: a reader that loads
    /// `r` and then locks finds at least `r`. Outside the lock because writes to all other resources advance it too.
    progress: AtomicU64,
    /// Wakes reads that wait for a revision.
    advanced: Notify,
    /// Encodings of large objects that are being sent.
    pub(super) encodings: Arc<Encodings>,
    /// Whether all streams are stalled (fault injection).
    stalled: AtomicBool,
    /// Whether `lag` is set; a cache that does not lag need not lock it.
    lagging: AtomicBool,
    lag: Mutex<Option<LagBuffer>>,
}

/// The changes that a lagging cache has received and not applied (fault injection). Bounded by the capacity of the window: a cache with
/// more pending changes reinitializes.
#[derive(Default)]
struct LagBuffer {
    changes: Vec<Arc<Change>>,
    progress: u64,
    overflowed: bool,
}

/// The state of a cache at one revision.
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
            encodings: Arc::default(),
            stalled: AtomicBool::new(false),
            lagging: AtomicBool::new(false),
            lag: Mutex::new(None),
        }
    }

    /// Ignores poisoning: a panic under this lock is a bug, and the next read of the state reveals it.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns the newest revision of the store that this cache has applied.
    pub(super) fn revision(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// Locks the state and returns its revision.
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

    /// Waits until the cache has reached a revision, up to the time in the options.
    pub(super) async fn wait_for_revision(&self, revision: u64) -> Result<(), ReadError> {
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

    /// Stalls or resumes all streams. Sets the flag under the lock, so that no stream parks after it was resumed.
    pub(super) fn stall(&self, stalled: bool) {
        let wakers = {
            let mut state = self.lock();
            self.stalled.store(stalled, Ordering::Release);
            state.watchers.wake_all()
        };
        wakers.wake_all();
    }

    /// Buffers changes from now on instead of applying them.
    pub(super) fn start_lagging(&self) {
        let mut lag = self.lag();
        lag.get_or_insert_default();
        self.lagging.store(true, Ordering::Release);
    }

    /// Applies the buffered changes. Returns false if the buffer overflowed and the cache must reinitialize.
    pub(super) fn catch_up(&self) -> bool {
        let mut lag = self.lag();
        let buffer = lag.take().unwrap_or_default();
        if !buffer.overflowed {
            buffer.changes.iter().for_each(|change| self.apply(change));
            self.advance(buffer.progress);
        }
        self.lagging.store(false, Ordering::Release);
        !buffer.overflowed
    }

    fn lag(&self) -> MutexGuard<'_, Option<LagBuffer>> {
        lock(&self.lag)
    }

    fn apply(&self, change: &Arc<Change>) {
        let wakers = self.lock().change(change);
        self.advance(change.revision);
        wakers.wake_all();
    }

    fn advance(&self, revision: u64) {
        self.progress.fetch_max(revision, Ordering::AcqRel);
        self.advanced.notify_waiters();
    }
}

impl Follower for Shared {
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        if let Some(buffer) = self.lag().as_mut() {
            *buffer = LagBuffer { progress: revision, ..LagBuffer::default() };
        }
        let wakers = self.lock().reset(revision, items);
        self.advance(revision);
        wakers.wake_all();
    }

    fn change(&self, change: &Arc<Change>) {
        if self.lagging.load(Ordering::Acquire)
            && let Some(buffer) = self.lag().as_mut()
        {
            buffer.overflowed |= buffer.changes.len() >= self.options.window_max;
            if !buffer.overflowed {
                buffer.changes.push(Arc::clone(change));
            }
            return;
        }
        self.apply(change);
    }

    fn progress(&self, revision: u64) {
        if self.lagging.load(Ordering::Acquire)
            && let Some(buffer) = self.lag().as_mut()
        {
            buffer.progress = buffer.progress.max(revision);
            return;
        }
        self.advance(revision);
    }

    fn compacted(&self, revision: u64) {
        self.lock().compacted(revision);
    }

    fn lost(&self, cause: &str) {
        let wakers = self.lock().lost(cause);
        wakers.wake_all();
    }
}
