//! The guarantees of `Storage`, as documented on the trait.

use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, StreamExt};
use kube_embedded_apiserver::storage::{
    Change, Follower, MemoryStorage, Range, Storage, StorageError, Stored,
};

use super::world::{Spec, key, kind, number, v};

/// Runs tests on every backend.
macro_rules! on_every_backend {
    ($($name:ident),* $(,)?) => {
        mod memory {
            use std::sync::Arc;
            use kube_embedded_apiserver::storage::MemoryStorage;
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(Arc::new(MemoryStorage::new())).await;
                }
            )*
        }
        #[cfg(feature = "etcd")]
        mod etcd {
            use std::sync::Arc;
            $(
                #[tokio::test]
                async fn $name() {
                    let Some(etcd) = crate::etcd::shared().await else { return };
                    super::$name(Arc::new(etcd.store().await)).await;
                }
            )*
        }
    };
}

on_every_backend!(
    one_sequence_for_all_keys,
    a_failed_write_takes_no_revision,
    create_requires_an_absent_key,
    update_and_delete_require_the_expected_revision,
    one_of_several_concurrent_writes_succeeds,
    a_delete_returns_the_last_content_at_its_own_revision,
    a_read_shows_completed_writes,
    a_range_is_in_byte_order_and_ends_at_its_slash,
    pages_cover_the_whole_range,
    reads_at_older_revisions_are_exact,
    reads_at_future_revisions_fail,
    compaction_removes_only_older_versions,
    a_watch_yields_every_change_once_in_order,
    a_watch_from_a_future_revision_yields_only_later_changes,
    a_watch_from_a_compacted_revision_fails,
    a_watch_that_falls_behind_compaction_ends_with_an_error,
    a_follower_receives_a_write_before_it_completes,
    a_dropped_follower_is_removed,
);

type Backend = Arc<dyn Storage>;

async fn put(storage: &Backend, path: &str, spec: Spec) -> u64 {
    storage.create(&key(path), spec.document(path)).await.unwrap().revision
}

async fn names(storage: &Backend, prefix: &str, at: Option<u64>) -> Result<Vec<String>, StorageError> {
    let range = Range { prefix: prefix.to_owned(), at, ..Range::default() };
    Ok(storage.list(&range).await?.items.iter().map(|stored| stored.key.to_string()).collect())
}

async fn one_sequence_for_all_keys(storage: Backend) {
    let start = storage.current_revision().await.unwrap();
    assert!(start > 1, "revisions up to 1 are always compacted");
    let a = put(&storage, "a/x", v(0)).await;
    let b = storage.create("/others/y", v(0).document("y")).await.unwrap().revision;
    let c = storage.update(&key("a/x"), a, v(1).document("a/x")).await.unwrap().revision;
    let d = storage.delete(&key("a/x"), c).await.unwrap().revision;
    assert_eq!([a, b, c, d], [start + 1, start + 2, start + 3, start + 4]);
    assert_eq!(storage.current_revision().await.unwrap(), d);
}

async fn a_failed_write_takes_no_revision(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    storage.create(&key("a/x"), v(1).document("a/x")).await.unwrap_err();
    storage.update(&key("a/x"), a + 7, v(1).document("a/x")).await.unwrap_err();
    storage.delete(&key("a/none"), a).await.unwrap_err();
    assert_eq!(storage.current_revision().await.unwrap(), a);
}

async fn create_requires_an_absent_key(storage: Backend) {
    let a = put(&storage, "a/x", v(7)).await;
    match storage.create(&key("a/x"), v(8).document("a/x")).await {
        Err(StorageError::Exists(existing)) => assert_eq!((existing.revision, number(&existing)), (a, 7)),
        other => panic!("{other:?}"),
    }
    storage.delete(&key("a/x"), a).await.unwrap();
    put(&storage, "a/x", v(9)).await;
}

async fn update_and_delete_require_the_expected_revision(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    let b = storage.update(&key("a/x"), a, v(1).document("a/x")).await.unwrap().revision;
    let stale = storage.update(&key("a/x"), a, v(2).document("a/x")).await.unwrap_err();
    assert!(matches!(&stale, StorageError::Conflict(current) if current.revision == b), "{stale:?}");
    assert_eq!(kind(&storage.delete(&key("a/x"), a).await.unwrap_err()), "conflict");
    assert_eq!(kind(&storage.update(&key("a/y"), a, v(2).document("a/y")).await.unwrap_err()), "not found");
    assert_eq!(kind(&storage.delete(&key("a/y"), a).await.unwrap_err()), "not found");
    assert_eq!(number(&storage.get(&key("a/x")).await.unwrap().unwrap()), 1);
}

async fn one_of_several_concurrent_writes_succeeds(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    let writers = (1..=8).map(|n| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move { storage.update(&key("a/x"), a, v(n).document("a/x")).await.is_ok() })
    });
    let won = futures_util::future::join_all(writers)
        .await
        .into_iter()
        .filter(|won| *won.as_ref().unwrap())
        .count();
    assert_eq!((won, storage.current_revision().await.unwrap()), (1, a + 1));
}

async fn a_delete_returns_the_last_content_at_its_own_revision(storage: Backend) {
    let a = put(&storage, "a/x", v(5)).await;
    let deleted = storage.delete(&key("a/x"), a).await.unwrap();
    assert_eq!((deleted.revision, number(&deleted)), (a + 1, 5));
    assert!(storage.get(&key("a/x")).await.unwrap().is_none());
}

async fn a_read_shows_completed_writes(storage: Backend) {
    for n in 0..20 {
        let path = format!("a/x{n}");
        let revision = put(&storage, &path, v(n)).await;
        let read = storage.get(&key(&path)).await.unwrap().unwrap();
        assert_eq!((read.revision, number(&read), &*read.key), (revision, n, &*key(&path)));
        let range = Range { prefix: key("a/"), ..Range::default() };
        let page = storage.list(&range).await.unwrap();
        assert_eq!((page.revision, page.items.len() as u64), (revision, n + 1));
    }
}

async fn a_range_is_in_byte_order_and_ends_at_its_slash(storage: Backend) {
    for path in ["ab/x", "a/x", "a-b/x", "a/x.y", "a/x-y", "a/xy"] {
        put(&storage, path, v(0)).await;
    }
    let all = names(&storage, "/things/", None).await.unwrap();
    assert_eq!(
        all,
        ["a-b/x", "a/x", "a/x-y", "a/x.y", "a/xy", "ab/x"].map(key),
        "ordered by the bytes of the whole key"
    );
    assert_eq!(names(&storage, "/things/a/", None).await.unwrap().len(), 4);
    assert!(names(&storage, "/thing/", None).await.unwrap().is_empty());
}

async fn pages_cover_the_whole_range(storage: Backend) {
    for n in 0..10 {
        put(&storage, &format!("a/x{n}"), v(n)).await;
    }
    let mut range = Range { prefix: key(""), limit: 4, ..Range::default() };
    let mut sizes = Vec::new();
    loop {
        let page = storage.list(&range).await.unwrap();
        sizes.push((page.items.len(), page.remaining));
        if page.remaining == 0 {
            break;
        }
        range.start = Some(format!("{}\0", page.items.last().unwrap().key));
    }
    assert_eq!(sizes, [(4, 6), (4, 2), (2, 0)]);
}

async fn reads_at_older_revisions_are_exact(storage: Backend) {
    let mut states = Vec::new();
    for n in 0..600_u64 {
        let path = format!("a/x{}", n % 9);
        match storage.get(&key(&path)).await.unwrap() {
            Some(stored) if n % 4 == 0 => drop(storage.delete(&key(&path), stored.revision).await.unwrap()),
            Some(stored) => {
                drop(storage.update(&key(&path), stored.revision, v(n).document(&path)).await.unwrap())
            }
            None => drop(put(&storage, &path, v(n)).await),
        }
        let page = storage.list(&Range { prefix: key(""), ..Range::default() }).await.unwrap();
        states.push(page);
    }
    for expected in &states {
        let range = Range { prefix: key(""), at: Some(expected.revision), ..Range::default() };
        let past = storage.list(&range).await.unwrap();
        let same = |a: &[Arc<Stored>], b: &[Arc<Stored>]| {
            a.iter().map(|s| (&s.key, s.revision)).eq(b.iter().map(|s| (&s.key, s.revision)))
        };
        assert!(same(&past.items, &expected.items), "at {}", expected.revision);
        assert_eq!(past.revision, expected.revision);
    }
}

async fn reads_at_future_revisions_fail(storage: Backend) {
    let current = put(&storage, "a/x", v(0)).await;
    let error = names(&storage, "/things/", Some(current + 1)).await.unwrap_err();
    assert!(matches!(error, StorageError::Future { current: c } if c == current), "{error:?}");
    assert_eq!(kind(&storage.compact(current + 1).await.unwrap_err()), "future");
}

async fn compaction_removes_only_older_versions(storage: Backend) {
    let first = put(&storage, "a/x", v(0)).await;
    let second = put(&storage, "a/y", v(0)).await;
    let third = storage.delete(&key("a/x"), first).await.unwrap().revision;
    storage.compact(second).await.unwrap();
    let error = names(&storage, "/things/", Some(first)).await.unwrap_err();
    assert!(matches!(error, StorageError::Compacted { oldest } if oldest == second), "{error:?}");
    assert_eq!(names(&storage, "/things/", Some(second)).await.unwrap(), [key("a/x"), key("a/y")]);
    assert_eq!(names(&storage, "/things/", Some(third)).await.unwrap(), [key("a/y")]);
    storage.compact(first).await.unwrap();
    assert_eq!(
        names(&storage, "/things/", None).await.unwrap(),
        [key("a/y")],
        "compacting again changes nothing"
    );
    assert_eq!(storage.current_revision().await.unwrap(), third);
}

/// The revision of a change, and whether it has a previous and a current version.
fn outline(change: &Change) -> (u64, bool, bool) {
    (change.revision, change.previous.is_some(), change.current.is_some())
}

async fn a_watch_yields_every_change_once_in_order(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    let mut from_start = storage.watch("/things/", a - 1).await.unwrap();
    let mut from_a = storage.watch("/things/", a).await.unwrap();
    storage.create("/others/x", v(0).document("x")).await.unwrap();
    storage.update(&key("a/x"), a, v(1).document("a/x")).await.unwrap();
    storage.delete(&key("a/x"), a + 2).await.unwrap();
    for expected in [(a, false, true), (a + 2, true, true), (a + 3, true, false)] {
        assert_eq!(outline(&from_start.next().await.unwrap().unwrap()), expected);
        if expected.0 > a {
            assert_eq!(outline(&from_a.next().await.unwrap().unwrap()), expected);
        }
    }
    assert!(from_a.next().now_or_never().is_none(), "nothing more");
}

async fn a_watch_from_a_future_revision_yields_only_later_changes(storage: Backend) {
    let current = storage.current_revision().await.unwrap();
    let mut watch = storage.watch("/things/", current + 2).await.unwrap();
    for n in 0..3 {
        put(&storage, &format!("a/{n}"), v(0)).await;
    }
    assert_eq!(watch.next().await.unwrap().unwrap().revision, current + 3);
}

async fn a_watch_from_a_compacted_revision_fails(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    let b = put(&storage, "a/y", v(0)).await;
    storage.compact(b).await.unwrap();
    assert_eq!(kind(&storage.watch("/things/", a).await.err().unwrap()), "compacted");
    assert!(storage.watch("/things/", b).await.is_ok());
    assert_eq!(kind(&storage.watch("/things/", 1).await.err().unwrap()), "compacted");
}

async fn a_watch_that_falls_behind_compaction_ends_with_an_error(storage: Backend) {
    let mut watch = storage.watch("/things/", storage.current_revision().await.unwrap()).await.unwrap();
    for n in 0..3 {
        put(&storage, &format!("a/{n}"), v(0)).await;
    }
    storage.compact(storage.current_revision().await.unwrap()).await.unwrap();
    assert_eq!(kind(&watch.next().await.unwrap().unwrap_err()), "compacted");
    assert!(watch.next().await.is_none());
}

/// Records the calls it receives.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Recorder {
    fn add(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Follower for Recorder {
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        self.add(format!("reset @{revision} {}", items.len()));
    }
    fn change(&self, change: &Arc<Change>) {
        self.add(format!("change @{}", change.revision));
    }
    fn progress(&self, revision: u64) {
        self.add(format!("progress @{revision}"));
    }
    fn compacted(&self, revision: u64) {
        self.add(format!("compacted @{revision}"));
    }
    fn lost(&self, cause: &str) {
        self.add(format!("lost {cause}"));
    }
}

async fn a_follower_receives_a_write_before_it_completes(storage: Backend) {
    let a = put(&storage, "a/x", v(0)).await;
    let recorder = Arc::new(Recorder::default());
    let follower: Arc<dyn Follower> = Arc::clone(&recorder) as _;
    storage.follow("/things/", Arc::downgrade(&follower)).await.unwrap();
    assert_eq!(recorder.take(), [format!("reset @{a} 1")]);
    storage.update(&key("a/x"), a, v(1).document("a/x")).await.unwrap();
    assert_eq!(recorder.take(), [format!("change @{}", a + 1)]);
    storage.create("/others/x", v(0).document("x")).await.unwrap();
    assert_eq!(recorder.take(), [format!("progress @{}", a + 2)]);
    storage.delete(&key("a/x"), a + 1).await.unwrap();
    assert_eq!(recorder.take(), [format!("change @{}", a + 3)]);
    storage.compact(a + 3).await.unwrap();
    assert_eq!(recorder.take(), [format!("compacted @{}", a + 2)]);
    storage.follow("/things/", Arc::downgrade(&follower)).await.unwrap();
    put(&storage, "a/z", v(0)).await;
    assert_eq!(
        recorder.take(),
        [format!("reset @{} 0", a + 3), format!("change @{}", a + 4)],
        "each change is received once"
    );
}

async fn a_dropped_follower_is_removed(storage: Backend) {
    let recorder = Arc::new(Recorder::default());
    let follower: Arc<dyn Follower> = Arc::clone(&recorder) as _;
    storage.follow("/things/", Arc::downgrade(&follower)).await.unwrap();
    drop(follower);
    drop(recorder);
    put(&storage, "a/x", v(0)).await;
}

/// Writes compact versions older than two periods of five minutes, and keep those younger than one period.
#[tokio::test(start_paused = true)]
async fn memory_is_compacted_periodically() {
    let storage: Backend = Arc::new(MemoryStorage::new());
    let first = put(&storage, "a/0", v(0)).await;
    tokio::time::advance(std::time::Duration::from_secs(301)).await;
    let second = put(&storage, "a/1", v(0)).await;
    assert!(names(&storage, "/things/", Some(first)).await.is_ok());
    tokio::time::advance(std::time::Duration::from_secs(301)).await;
    put(&storage, "a/2", v(0)).await;
    assert_eq!(kind(&names(&storage, "/things/", Some(first)).await.unwrap_err()), "compacted");
    assert!(names(&storage, "/things/", Some(second)).await.is_ok());
}

/// The number of changes is bounded, independent of time.
#[tokio::test(start_paused = true)]
async fn memory_history_is_bounded() {
    let storage: Backend = Arc::new(MemoryStorage::new());
    let mut revision = put(&storage, "a/x", v(0)).await;
    let first = revision;
    let document = v(1).document("a/x");
    for _ in 0..=MemoryStorage::MAX_HISTORY {
        revision = storage.update(&key("a/x"), revision, document.clone()).await.unwrap().revision;
    }
    assert_eq!(kind(&names(&storage, "/things/", Some(first)).await.unwrap_err()), "compacted");
    let recent = revision - MemoryStorage::MAX_HISTORY as u64 / 4;
    assert!(names(&storage, "/things/", Some(recent)).await.is_ok());
}

/// The size of the history is bounded for large objects.
#[tokio::test(start_paused = true)]
async fn memory_history_is_bounded_in_bytes() {
    let storage: Backend = Arc::new(MemoryStorage::new());
    let large = |n: u64| {
        let object = serde_json::json!({"metadata": {}, "text": "x".repeat(1 << 20), "n": n});
        kube_embedded_apiserver::storage::Document::encode(&object, []).unwrap()
    };
    let first = storage.create(&key("a/x"), large(0)).await.unwrap().revision;
    let documents = [large(1), large(2)];
    let mut revision = first;
    let fits = MemoryStorage::MAX_HISTORY_BYTES >> 20;
    for n in 0..fits + 2 {
        let document = documents[n % 2].clone();
        revision = storage.update(&key("a/x"), revision, document).await.unwrap().revision;
        let kept = names(&storage, "/things/", Some(first)).await.is_ok();
        assert_eq!(kept, n < fits - 1, "after {n} updates");
    }
}
