//! The in-memory backend, which is the default.

mod history;
mod watch;

use kube_informer_wire::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures_core::future::BoxFuture;
use tokio::time::Instant;

use self::history::History;
use super::document::Document;
use super::stored::{Change, Stored};
use super::{ChangeStream, Follower, Page, Range, Storage, StorageError};

/// The revision of an empty store. Everything before it counts as compacted, so that a small made-up resource version fails as it does
/// on a server with history.
const FIRST_REVISION: u64 = 1000;

/// The period of automatic compaction. Versions are kept for at least one period and at most two.
const COMPACTION_PERIOD: Duration = Duration::from_secs(300);

/// An in-memory store with multiple versions, compare-and-set, watches and compaction.
///
/// One lock serializes writes and the calls to followers, in commit order. The longest critical section is one insertion into the
/// tree plus one call per follower. Reads take the lock only to copy a snapshot pointer, never while they scan.
///
/// Bounds: a write compacts the history if the last compaction was five minutes ago, and compacts half of it if it has more than
/// [`MemoryStorage::MAX_HISTORY`] changes or [`MemoryStorage::MAX_HISTORY_BYTES`] bytes. There is no background task.
#[derive(Clone)]
pub struct MemoryStorage {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// The newest revision that all followers have received; wakes watches.
    published: tokio::sync::watch::Sender<u64>,
}

struct State {
    history: History,
    followers: Vec<Registered>,
    compaction: Compaction,
}

struct Registered {
    prefix: Box<str>,
    follower: Weak<dyn Follower>,
}

/// The state of automatic compaction.
struct Compaction {
    /// The revision at the last tick, to which the next tick compacts: a revision stays readable for at least one period.
    mark: u64,
    /// The time of the last tick.
    at: Instant,
}

impl MemoryStorage {
    /// The most changes kept for reads and watches at older revisions.
    pub const MAX_HISTORY: usize = 200_000;

    /// The most bytes of replaced versions kept for reads and watches at older revisions.
    pub const MAX_HISTORY_BYTES: usize = 256 << 20;

    /// Returns an empty store. Its first write gets a revision above 1000.
    pub fn new() -> Self {
        let state = State {
            history: History::new(FIRST_REVISION),
            followers: Vec::new(),
            compaction: Compaction { mark: FIRST_REVISION, at: Instant::now() },
        };
        let (published, _) = tokio::sync::watch::channel(FIRST_REVISION);
        Self { shared: Arc::new(Shared { state: Mutex::new(state), published }) }
    }

    /// Returns a copy of the current state without history or followers, like a store restored from a backup. Revisions continue from
    /// the same number in both stores, independently of each other.
    ///
    /// Replacing the store by an older copy simulates a cluster whose store was restored from a backup.
    pub fn backup(&self) -> Self {
        let history = self.shared.lock().history.backup();
        let revision = history.revision();
        let compaction = Compaction { mark: revision, at: Instant::now() };
        let state = Mutex::new(State { history, followers: Vec::new(), compaction });
        let (published, _) = tokio::sync::watch::channel(revision);
        Self { shared: Arc::new(Shared { state, published }) }
    }

    fn write(
        &self,
        key: &str,
        commit: impl FnOnce(&mut History) -> Result<Arc<Change>, StorageError>,
    ) -> Result<Arc<Change>, StorageError> {
        let mut state = self.shared.lock();
        let change = commit(&mut state.history)?;
        state.notify(key, &change);
        state.compact_when_due();
        self.shared.published.send_replace(change.revision);
        Ok(change)
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MemoryStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryStorage(at {})", *self.shared.published.borrow())
    }
}

impl Shared {
    /// Ignores poisoning: a commit changes the history in one step, after everything that can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn notify(&mut self, key: &str, change: &Arc<Change>) {
        self.followers.retain(|registered| {
            let Some(follower) = registered.follower.upgrade() else { return false };
            if key.starts_with(&*registered.prefix) {
                follower.change(change);
            } else {
                follower.progress(change.revision);
            }
            true
        });
    }

    fn compact_when_due(&mut self) {
        let (now, current) = (Instant::now(), self.history.revision());
        if now.duration_since(self.compaction.at) >= COMPACTION_PERIOD {
            self.compact(self.compaction.mark);
            self.compaction = Compaction { mark: current, at: now };
        }
        let changes = self.history.len();
        if changes > MemoryStorage::MAX_HISTORY || self.history.replaced() > MemoryStorage::MAX_HISTORY_BYTES
        {
            self.compact(current - changes as u64 / 2);
        }
    }

    fn compact(&mut self, revision: u64) {
        self.history.compact(revision);
        let oldest = self.history.oldest();
        for follower in self.followers.iter().filter_map(|registered| registered.follower.upgrade()) {
            follower.compacted(oldest.saturating_sub(1));
        }
    }
}

/// Boxes a value that is available at once as a future.
fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Storage for MemoryStorage {
    fn current_revision(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        ready(Ok(self.shared.lock().history.revision()))
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Stored>>, StorageError>> {
        ready(Ok(self.shared.lock().history.get(key).cloned()))
    }

    fn list<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<Page, StorageError>> {
        let view = self.shared.lock().history.view(range.at);
        ready(view.map(|view| view.read(range)))
    }

    fn create<'a>(
        &'a self,
        key: &'a str,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        let change = self.write(key, |history| match history.get(key) {
            Some(existing) => Err(StorageError::Exists(Arc::clone(existing))),
            None => Ok(history.put(key, document)),
        });
        ready(change.map(current_version))
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        expected: u64,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        let change = self.write(key, |history| {
            history.check(key, expected)?;
            Ok(history.put(key, document))
        });
        ready(change.map(current_version))
    }

    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        let change = self.write(key, |history| {
            history.check(key, expected)?;
            history.remove(key).ok_or(StorageError::NotFound)
        });
        ready(change.map(|change| {
            let last = change.previous.as_ref().expect("a delete has a previous version");
            Arc::new(last.at(change.revision))
        }))
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: u64) -> BoxFuture<'a, Result<ChangeStream, StorageError>> {
        ready(watch::open(&self.shared, prefix, after))
    }

    fn follow<'a>(
        &'a self,
        prefix: &'a str,
        follower: Weak<dyn Follower>,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        let mut state = self.shared.lock();
        if let Some(target) = follower.upgrade() {
            let everything = Range { prefix: prefix.to_owned(), ..Range::default() };
            let page = state.history.view(None).map(|view| view.read(&everything));
            match page {
                Ok(page) => target.reset(page.revision, page.items),
                Err(error) => return ready(Err(error)),
            }
            state.followers.retain(|known| !Weak::ptr_eq(&known.follower, &follower));
            state.followers.push(Registered { prefix: prefix.into(), follower });
        }
        ready(Ok(()))
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>> {
        let mut state = self.shared.lock();
        let current = state.history.revision();
        if revision > current {
            return ready(Err(StorageError::Future { current }));
        }
        state.compact(revision);
        drop(state);
        self.shared.published.send_modify(|_| ());
        ready(Ok(()))
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        let (view, replaced) = {
            let history = &self.shared.lock().history;
            (history.view(None), history.replaced())
        };
        ready(view.map(|view| view.bytes() + replaced as u64))
    }
}

fn current_version(change: Arc<Change>) -> Arc<Stored> {
    Arc::clone(change.current.as_ref().expect("a create or update has a current version"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document(n: u64) -> Document {
        Document::encode(&json!({"metadata": {"name": "a"}, "data": n}), []).unwrap()
    }

    #[tokio::test]
    async fn a_backup_is_independent_of_the_original() {
        let store = MemoryStorage::new();
        let first = store.create("/things/ns/a", document(1)).await.unwrap();
        let backup = store.backup();
        let second = store.update("/things/ns/a", first.revision, document(2)).await.unwrap();

        let range = Range { prefix: "/things/".into(), ..Range::default() };
        let page = backup.list(&range).await.unwrap();
        assert_eq!((page.revision, page.items[0].revision), (first.revision, first.revision));
        let past = backup.list(&Range { at: Some(first.revision - 1), ..range }).await;
        assert!(matches!(past, Err(StorageError::Compacted { oldest }) if oldest == first.revision));

        let other = backup.update("/things/ns/a", first.revision, document(3)).await.unwrap();
        assert_eq!(other.revision, second.revision, "the same revision for different content");
        assert_eq!(store.get("/things/ns/a").await.unwrap().unwrap().revision, second.revision);
    }
}
