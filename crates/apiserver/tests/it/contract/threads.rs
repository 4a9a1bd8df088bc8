//! The same guarantees with concurrent writers, readers and watchers.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_embedded_apiserver::watch_cache::{
    EventType, ListRequest, RevisionMatch, RevisionOption, WatchItem, WatchRequest,
};

use super::world::{Reader, World, at, head, v};

const WRITERS: u64 = 4;
const WRITES: u64 = 400;
const WATCHERS: usize = 6;
const OBJECTS: u64 = 25;

/// The last object written: a watcher that sees it has seen all changes.
const LAST: &str = "zz/last";

type Trace = Vec<(EventType, Arc<str>, u64)>;

async fn write(world: Arc<World>, writer: u64) {
    let mut rng = fastrand::Rng::with_seed(writer);
    for n in 0..WRITES {
        world.write_at_random(&mut rng, OBJECTS, n).await;
        if n % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Lists and watches, and returns the version of the list, the events and the resulting state.
async fn watch(world: Arc<World>) -> (u64, Trace, BTreeMap<Arc<str>, u64>) {
    let list = world.list(ListRequest::default()).await;
    let mut state: BTreeMap<_, _> = list.items.iter().map(|s| (Arc::clone(&s.key), s.revision)).collect();
    let mut stream =
        world.watch(WatchRequest { revision: at(list.revision), ..WatchRequest::default() }).await;
    let mut trace = Trace::new();
    loop {
        let Some(WatchItem::Event(event)) = stream.next().await else { panic!("the watch ended early") };
        let frame: serde_json::Value = serde_json::from_slice(&event.frame(&head())).unwrap();
        assert_eq!(frame["object"]["metadata"]["resourceVersion"], event.revision().to_string());
        let (key, revision) = (Arc::clone(&event.object().key), event.revision());
        match event.event_type() {
            EventType::Deleted => assert!(state.remove(&key).is_some()),
            EventType::Added => assert!(state.insert(Arc::clone(&key), revision).is_none()),
            EventType::Modified => assert!(state.insert(Arc::clone(&key), revision).is_some()),
        }
        let last = key.ends_with(LAST);
        trace.push((event.event_type(), key, revision));
        if last {
            return (list.revision, trace, state);
        }
    }
}

/// Checks that a list is never older than the store before it began, and that an exact list reproduces it.
async fn read(world: Arc<World>) {
    for _ in 0..100 {
        let before = world.current().await;
        let list = world.list(ListRequest { limit: 7, ..ListRequest::default() }).await;
        assert!(list.revision >= before);
        assert!(list.items.iter().all(|stored| stored.revision <= list.revision));
        let exact = ListRequest {
            revision: at(list.revision),
            revision_match: Some(RevisionMatch::Exact),
            limit: 7,
            ..ListRequest::default()
        };
        let again = world.list(exact).await;
        let versions = |items: &[Arc<_>]| -> Vec<u64> {
            items
                .iter()
                .map(|stored: &Arc<kube_embedded_apiserver::storage::Stored>| stored.revision)
                .collect()
        };
        assert_eq!(versions(&list.items), versions(&again.items));
        assert_eq!(list.remaining, again.remaining);
        tokio::task::yield_now().await;
    }
}

async fn concurrent_writers_readers_and_watchers_agree(reader: Reader) {
    let world = Arc::new(World::new(reader).await);
    let watchers: Vec<_> = (0..WATCHERS).map(|_| tokio::spawn(watch(Arc::clone(&world)))).collect();
    let readers: Vec<_> = (0..2).map(|_| tokio::spawn(read(Arc::clone(&world)))).collect();
    let writers: Vec<_> = (0..WRITERS).map(|n| tokio::spawn(write(Arc::clone(&world), n))).collect();
    for task in writers.into_iter().chain(readers) {
        task.await.unwrap();
    }
    // Watchers that start last must see the last object as well.
    while world.cache.watch_count() < WATCHERS && !watchers.iter().any(tokio::task::JoinHandle::is_finished) {
        tokio::task::yield_now().await;
    }
    world.create(LAST, v(0)).await;
    let mut longest: Option<Trace> = None;
    let listed = world.list(ListRequest { revision: RevisionOption::Any, ..ListRequest::default() }).await;
    let listed: BTreeMap<_, _> = listed.items.iter().map(|s| (Arc::clone(&s.key), s.revision)).collect();
    for watcher in watchers {
        let (from, trace, state) = watcher.await.unwrap();
        assert_eq!(state, listed);
        let known = longest.get_or_insert_with(|| trace.clone());
        let common = known[0].2.max(trace[0].2).max(from + 1);
        let tail =
            |trace: &Trace| -> Trace { trace.iter().filter(|(.., r)| *r >= common).cloned().collect() };
        assert_eq!(tail(known), tail(&trace), "all watchers see the same order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_agree_through_the_cache() {
    concurrent_writers_readers_and_watchers_agree(Reader::Cached).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_agree_on_the_store() {
    concurrent_writers_readers_and_watchers_agree(Reader::Stored).await;
}
