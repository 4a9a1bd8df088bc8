//! The order of store and handlers, and the version of the store (promises 1 to 5 of docs/contract.md).

use crate::support::{
    Recorder, cached, encoded, object, pass, secs, settle, source, started, versioned, watched,
};
use futures_util::{StreamExt, stream};
use kube_informer::{
    BoxFuture, EventHandler, Index, InformerBuilder, ListMeta, ListOptions, ListPart, ListStream, ListWatch,
    ListWatchError, Lister, Object, WatchEvent, WatchOptions, WatchStream,
};
use serde_json::Value;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Compares each event with the store at that moment.
#[derive(Clone)]
struct Comparing {
    lister: Lister<Value>,
    by_name: Index<String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Comparing {
    fn compare(&self, object: &Object<Value>) {
        let stored = self.lister.get(object.key());
        let indexed = self.lister.by(&self.by_name, object.name()).unwrap();
        let newer = |stored: &Object<Value>| stored.resource_version() >= object.resource_version();
        assert!(stored.as_ref().is_some_and(newer), "told of {object:?}, stored {stored:?}");
        assert!(indexed.first().is_some_and(newer), "told of {object:?}, indexed {indexed:?}");
        self.seen.lock().unwrap().push(object.name().to_owned());
    }
}

impl EventHandler<Value> for Comparing {
    fn on_add(&mut self, object: &Object<Value>, _initial: bool) {
        self.compare(object);
    }

    fn on_update(&mut self, _old: &Object<Value>, new: &Object<Value>) {
        self.compare(new);
    }

    fn on_delete(&mut self, deleted: &kube_informer::Deleted<Value>) {
        let found = self.lister.get(deleted.key());
        assert!(
            found.is_none_or(|found| found.uid() != deleted.object().uid()),
            "told of the end, still there"
        );
        self.seen.lock().unwrap().push(deleted.key().name().to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn store_and_indexes_show_a_change_before_a_handler_hears_of_it() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let by_name = informer.index(|object: &Object<Value>| Some(object.name().to_owned())).unwrap();
    let comparing = Comparing { lister: informer.lister(), by_name, seen: Arc::default() };
    informer.add_handler(comparing.clone());
    started(&informer).await;
    source.put(object("a", 2));
    source.put(object("b", 1));
    source.delete("ns/a");
    source.put(object("a", 3));
    settle().await;
    // A handler that panics skips its note: all of them must be here.
    assert_eq!(*comparing.seen.lock().unwrap(), ["a", "a", "b", "a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_applied_whole_before_the_first_call_it_causes() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let informer = source.informer::<Value>(|builder| builder);
    let (lister, seen) = (informer.lister(), Arc::new(Mutex::new(Vec::new())));
    let note = {
        let seen = Arc::clone(&seen);
        move || {
            let names: Vec<_> = lister.list().iter().map(|object| object.name().to_owned()).collect();
            seen.lock().unwrap().push(names.join(""));
        }
    };
    let (on_add, on_update, on_delete) = (note.clone(), note.clone(), note);
    informer.add_handler(
        kube_informer::HandlerFuncs::<Value>::new()
            .on_add(move |_, _| on_add())
            .on_update(move |_, _| on_update())
            .on_delete(move |_| on_delete()),
    );
    started(&informer).await;
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), ["abc", "abc", "abc"], "the first one too");
    source.delete_unnoticed("ns/a");
    source.put_unnoticed(object("b", 2));
    source.put_unnoticed(object("d", 1));
    source.expire_history().cut();
    pass(5).await;
    assert_eq!(*seen.lock().unwrap(), ["bcd", "bcd", "bcd"]);
}

#[tokio::test(start_paused = true)]
async fn changes_are_heard_in_the_order_of_the_watch() {
    let source = source();
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    for (name, value) in [("b", 1), ("a", 1), ("b", 2), ("c", 1), ("a", 2)] {
        source.put(object(name, value));
    }
    source.delete("ns/b");
    settle().await;
    assert_eq!(recorder.take(), ["+b@101", "+a@102", "~b@101>103", "+c@104", "~a@102>105", "-b@106"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_collection_is_synced_too() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let registration = informer.add_handler(Recorder::default());
    assert!(!informer.is_synced() && !registration.is_synced());
    started(&informer).await;
    assert!(informer.is_synced() && registration.is_synced());
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_is_complete_nothing_is_synced_or_shown() {
    let source = source();
    source.put(object("a", 1));
    source.skip_end_bookmark(true);
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    settle().await;
    source.put(object("b", 1));
    pass(5).await;
    assert!(!informer.is_synced() && informer.lister().is_empty());
    pass(30).await;
    assert!(informer.is_synced(), "by list, once the stream was given up");
    assert_eq!(cached(&informer), ["a@101", "b@102"]);
}

#[tokio::test(start_paused = true)]
async fn the_position_of_the_stream_is_the_version_of_the_store() {
    let source = source();
    source.put(object("a", 1));
    source.skip_versions(50);
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let version = || informer.lister().snapshot().resource_version().unwrap().to_string();
    assert_eq!(version(), "151", "that of the list, not that of the object");
    source.put(object("a", 2));
    settle().await;
    assert_eq!(version(), "152");
    recorder.take();
    source.skip_versions(100);
    source.bookmark();
    settle().await;
    assert_eq!(version(), "252", "bookmarks move it");
    assert!(recorder.take().is_empty(), "and no handler is called");
    informer.reached_version(&"ns/other".parse().unwrap(), &250.into(), secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_repeats_is_told_once() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let version = source.put(object("a", 1));
    settle().await;
    source.repeat_event(version);
    settle().await;
    assert_eq!(recorder.take(), ["+a@101"]);
    source.delete("ns/unknown");
    source.delete("ns/a");
    settle().await;
    source.repeat_event(102);
    settle().await;
    assert_eq!(recorder.take(), ["-a@102"]);
    assert_eq!((cached(&informer).len(), source.requests().len()), (0, 1), "and costs no list");
}

#[tokio::test(start_paused = true)]
async fn a_modification_of_an_unknown_object_is_an_add() {
    let source = source();
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.drop_next_event();
    source.put(object("a", 1));
    source.put(object("a", 2));
    settle().await;
    assert_eq!(recorder.take(), ["+a@102"]);
}

/// Design §4: handlers and listers of different types share one pipeline.
#[tokio::test(start_paused = true)]
async fn one_pipeline_for_all_types() {
    use k8s_openapi::api::core::v1::ConfigMap;
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    let typed = informer.cast::<ConfigMap>();
    let map = typed.lister().get(&"ns/a".parse().unwrap()).unwrap().decode().unwrap();
    assert_eq!(map.data.as_ref().unwrap()["value"], "1");
    assert_eq!(source.requests().len(), 1);
}

/// An empty list, then as many events as anybody wants to read.
struct Torrent {
    source: kube_informer::testing::FakeSource,
    read: Arc<AtomicUsize>,
}

impl ListWatch for Torrent {
    fn list(&self, _options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        let meta = ListMeta { resource_version: Some(100.into()), ..ListMeta::default() };
        Box::pin(async move { Ok(stream::iter([Ok(ListPart::Meta(meta))]).boxed()) })
    }

    fn watch(&self, _options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        let (source, read) = (self.source.clone(), Arc::clone(&self.read));
        let events = stream::iter(0..500).map(move |i| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok(WatchEvent::Added(encoded(&source, &versioned(&format!("o{i}"), "u", 101 + i))))
        });
        Box::pin(async move { Ok(events.chain(stream::pending()).boxed()) })
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_the_reflector_stops_reading() {
    let (read, stored, ahead) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let torrent = Arc::new(Torrent { source: source(), read: Arc::clone(&read) });
    let informer = InformerBuilder::new(Arc::clone(torrent.source.origin()))
        .queue_bound(4)
        .build::<Value>(move |_| Arc::clone(&torrent) as Arc<dyn ListWatch>);
    // An index is asked for each object when it is stored.
    let counters = (Arc::clone(&read), Arc::clone(&stored), Arc::clone(&ahead));
    let index = move |_: &Object<Value>| {
        let stored = counters.1.fetch_add(1, Ordering::Relaxed);
        counters.2.fetch_max(counters.0.load(Ordering::Relaxed) - stored, Ordering::Relaxed);
        None::<()>
    };
    informer.index(index).unwrap();
    started(&informer).await;
    pass(1).await;
    assert_eq!(
        (stored.load(Ordering::Relaxed), informer.lister().len()),
        (500, 500),
        "all of them in the end"
    );
    // At most the bound in the queue, and at most as many in the batch in flight.
    assert!(
        ahead.load(Ordering::Relaxed) <= 2 * 4,
        "{} read ahead of the store",
        ahead.load(Ordering::Relaxed)
    );
}
