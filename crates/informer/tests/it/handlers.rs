//! Handlers are added, removed, fall behind and panic (promises 10 to 12 of docs/contract.md).

use crate::support::{Errors, Recorder, encoded, object, pass, secs, settle, source, started, watched};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube_informer::{
    Event, EventHandler, FailPoint, HandlerFuncs, HandlerOptions, Object, ObjectKey, Registration, Stop,
    WatchEvent, WorkQueue, enqueue_owner, filter, testing::Fault,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;

/// Panics on every object of one name, passes the rest on.
struct Panicking(Recorder, &'static str);

impl EventHandler<Value> for Panicking {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        assert_ne!(object.name(), self.1);
        self.0.on_add(object, initial);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_is_reported_and_disturbs_nobody() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let (panicking, calm) = (Recorder::default(), Recorder::default());
    let options = HandlerOptions::new().name("fragile");
    let registration = informer.add_handler_with(Panicking(panicking.clone(), "b"), options);
    informer.add_handler(calm.clone());
    started(&informer).await;
    registration.synced().await.expect("the event counts as delivered");
    assert_eq!(panicking.take(), ["+a@101!", "+c@103!"]);
    assert_eq!(calm.take(), ["+a@101!", "+b@102!", "+c@103!"]);
    assert_eq!(errors.take(), ["handler fragile panicked on ns/b; the event counts as delivered"]);
    source.put(object("d", 1));
    settle().await;
    assert_eq!((panicking.take().len(), calm.take().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_hook_that_panics_is_survived() {
    let source = source();
    source.put(object("b", 1));
    source.fail_watch(Fault::internal()).fail_list(Fault::internal());
    let informer =
        source.informer::<Value>(|builder| builder.on_error(|_| panic!("the hook is not at its best")));
    let recorder = Recorder::default();
    informer.add_handler(Panicking(recorder.clone(), "b"));
    started(&informer).await;
    source.put(object("c", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+c@102"]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_gets_the_net_effect_against_what_it_saw() {
    let source = source();
    for name in ["seen", "gone", "replaced"] {
        source.put(object(name, 1));
    }
    let informer = source.informer::<Value>(|builder| builder.handler_bound(1));
    let mut events = informer.events();
    started(&informer).await;
    for _ in 0..3 {
        assert!(matches!(events.next().await, Some(Event::Added { initial: true, .. })));
    }
    assert!(events.next().now_or_never().is_none());
    source.put(object("filler", 1));
    source.put(object("seen", 2));
    source.put(object("seen", 3));
    source.delete("ns/gone");
    source.delete("ns/replaced");
    source.put(object("replaced", 9));
    source.put(object("unseen", 1));
    source.put(object("unseen", 2));
    source.put(object("never", 1));
    source.delete("ns/never");
    settle().await;
    let load = events.load();
    assert!(load.coalesced > 0, "visible");
    assert_eq!(load.waiting, 5, "one event as it is, and one entry for each object but `never`");
    informer.stop(Stop::Drain).await;
    let rest: Vec<_> = events.by_ref().map(|event| format!("{event:?}")).collect().await;
    let expected = [
        "Added(ConfigMap ns/filler@104)",
        "Updated(ConfigMap ns/seen@101 -> ConfigMap ns/seen@106)",
        "Deleted(Seen(ConfigMap ns/gone@107))",
        "Deleted(Seen(ConfigMap ns/replaced@108))",
        "Added(ConfigMap ns/replaced@109)",
        "Added(ConfigMap ns/unseen@111)",
    ];
    assert_eq!(rest, expected);
}

#[tokio::test(start_paused = true)]
async fn joining_in_the_middle_misses_doubles_and_reorders_nothing() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let mut late = Vec::new();
    for round in 0..20 {
        source.put(object(&format!("o{}", round % 5), round));
        let recorder = Recorder::default();
        informer.add_handler(recorder.clone());
        late.push(recorder);
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        if round % 4 == 1 {
            source.delete(&format!("ns/o{}", round % 5));
        }
    }
    settle().await;
    let truth: Vec<_> = source
        .objects()
        .iter()
        .map(|o| o["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
        .collect();
    for recorder in late {
        assert_eq!(replayed(&recorder.take()), truth);
    }
}

/// The versions of the objects that a handler believes in, in key order; panics if calls do not fit together.
fn replayed(calls: &[String]) -> Vec<String> {
    let mut view = std::collections::BTreeMap::new();
    for call in calls {
        let (name, version) = call[1..].split_once('@').unwrap();
        let version = version.trim_end_matches(['!', '?']).to_owned();
        match call.as_bytes()[0] {
            b'+' => assert!(view.insert(name.to_owned(), version).is_none(), "{call} of {calls:?}"),
            b'~' => {
                let (old, new) = version.split_once('>').unwrap();
                assert_eq!(
                    view.insert(name.to_owned(), new.to_owned()).as_deref(),
                    Some(old),
                    "{call} of {calls:?}"
                );
            }
            _ => assert!(view.remove(name).is_some(), "{call} of {calls:?}"),
        }
    }
    view.into_values().collect()
}

#[tokio::test(start_paused = true)]
async fn every_registration_is_its_own() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let first = informer.add_handler(recorder.clone());
    informer.add_handler(recorder.clone());
    started(&informer).await;
    assert_eq!(recorder.take(), ["+a@101!", "+a@101!"]);
    first.remove().await;
    source.put(object("a", 2));
    settle().await;
    assert_eq!(recorder.take(), ["~a@101>102"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_be_removed_before_the_start() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let (recorder, alive) = (Recorder::default(), Arc::new(()));
    let (inner, held) = (recorder.clone(), Arc::clone(&alive));
    let registration = informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |object, initial| {
        let _ = &held;
        inner.clone().on_add(object, initial);
    }));
    registration.remove().await;
    assert_eq!(Arc::strong_count(&alive), 1, "the handler is gone with it");
    started(&informer).await;
    assert!(recorder.calls().is_empty());
}

/// Ends itself at the first call.
#[tokio::test(start_paused = true)]
async fn a_handler_can_be_removed_in_its_own_call() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("b", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let own: Arc<Mutex<Option<Registration>>> = Arc::default();
    let calls = Arc::new(Mutex::new(0));
    let (slot, counter) = (Arc::clone(&own), Arc::clone(&calls));
    let registration = informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| {
        *counter.lock().unwrap() += 1;
        if let Some(registration) = slot.lock().unwrap().take() {
            drop(registration.scoped());
        }
    }));
    *own.lock().unwrap() = Some(registration);
    started(&informer).await;
    assert_eq!(*calls.lock().unwrap(), 1);
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_add_handlers_and_indexes_in_its_call() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let (inner, added) = (informer.clone(), recorder.clone());
    informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| {
        inner.index_label("app").unwrap();
        inner.add_handler(added.clone());
    }));
    started(&informer).await;
    assert_eq!(recorder.take(), ["+a@101!"]);
    informer.stop(Stop::Drop).await;
}

#[tokio::test(start_paused = true)]
async fn a_scope_ends_its_handler() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let recorder = Recorder::default();
    {
        let _guard = informer.add_handler(recorder.clone()).scoped();
        source.put(object("a", 1));
        settle().await;
    }
    source.put(object("b", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+a@101"]);
    // A plain registration does not.
    drop(informer.add_handler(recorder.clone()));
    settle().await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!"]);
}

#[tokio::test(start_paused = true)]
async fn synced_means_that_the_last_initial_call_has_returned() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    let mut events = informer.events();
    settle().await;
    assert!(events.synced_now().is_none(), "the object has not been received");
    let _first = events.next().await;
    assert!(events.synced_now().is_none(), "nor dealt with it");
    assert!(tokio::time::timeout(secs(1), events.next()).await.is_err());
    assert_eq!(events.synced_now(), Some(true));
}

trait SyncedNow {
    fn synced_now(&self) -> Option<bool>;
}

impl<T> SyncedNow for kube_informer::EventStream<T> {
    fn synced_now(&self) -> Option<bool> {
        self.synced().now_or_never().map(|result| result.is_ok())
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_leaves_nothing_behind() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("b", 1));
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let mut events = informer.events();
    let _half = events.next().await;
    drop(events);
    source.put(object("c", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+c@103"], "the others go on");
}

#[tokio::test(start_paused = true)]
async fn a_filter_turns_entering_and_leaving_into_add_and_delete() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let red = |object: &Object<Value>| object.labels().get("color") == Some("red");
    informer.add_handler(filter(red, recorder.clone()));
    started(&informer).await;
    let colored =
        |color: &str| json!({"metadata": {"namespace": "ns", "name": "a", "labels": {"color": color}}});
    for color in ["blue", "red", "red", "blue", "blue", "red"] {
        source.put(colored(color));
    }
    source.delete("ns/a");
    settle().await;
    let calls = recorder.take();
    let verbs: Vec<_> = calls.iter().map(|call| &call[..1]).collect();
    assert_eq!(verbs, ["+", "~", "-", "+", "-"], "{calls:?}");
    assert_eq!(calls[2], "-a@103", "the last state that was accepted");
}

#[tokio::test(start_paused = true)]
async fn a_resync_is_for_those_that_are_due() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder.resync(secs(10)));
    let [default, never, slower] = [(); 3].map(|()| Recorder::default());
    informer.add_handler(default.clone());
    let with = |resync: Duration| HandlerOptions::new().resync(resync);
    informer.add_handler_with(never.clone(), with(Duration::ZERO));
    informer.add_handler_with(slower.clone(), with(secs(25)));
    started(&informer).await;
    [&default, &never, &slower].into_iter().for_each(|recorder| drop(recorder.take()));
    pass(61).await;
    assert_eq!(default.take(), vec!["~a@101>101"; 6]);
    assert!(never.take().is_empty());
    assert_eq!(slower.take(), vec!["~a@101>101"; 2], "every 30 s: rounded up to whole ticks");
}

#[tokio::test(start_paused = true)]
async fn without_a_period_nothing_is_repeated() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let options = HandlerOptions::new().resync(secs(5));
    informer.add_handler_with(recorder.clone(), options);
    started(&informer).await;
    recorder.take();
    pass(100).await;
    assert!(recorder.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resync_while_the_first_list_is_on_its_way_tells_nothing_early() {
    let source = source();
    source.put(object("a", 1));
    source.fail_watch(Fault::Delay(secs(25)));
    let informer = source.informer::<Value>(|builder| builder.resync(secs(10)));
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    informer.start();
    pass(24).await;
    assert!(recorder.take().is_empty());
    pass(2).await;
    assert_eq!(recorder.take(), ["+a@101!"]);
    pass(5).await;
    assert_eq!(recorder.take(), ["~a@101>101"]);
}

/// A child moves from one owner to the next while the handler is busy, so that its changes are coalesced. Each of the owners may
/// have been reconciled with the child in the cache meanwhile, so each has to be reconciled again.
/// An object that a replica set controls.
fn child(owner: &str) -> Value {
    let reference = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true}]);
    json!({"metadata": {"namespace": "ns", "name": "child", "uid": "child", "ownerReferences": reference}})
}

/// The names on a queue, which are taken from it.
fn queued(queue: &WorkQueue<ObjectKey>) -> Vec<String> {
    let mut names: Vec<_> = std::iter::from_fn(|| {
        let item = queue.try_get()?;
        let name = item.name().to_owned();
        item.forget();
        Some(name)
    })
    .collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn every_owner_of_a_child_is_enqueued_although_changes_coalesce() {
    let source = source();
    source.put(child("first"));
    let informer = source.informer::<Value>(|builder| builder.handler_bound(1));
    let mut events = informer.events();
    started(&informer).await;
    assert!(events.next().await.is_some());
    for n in 0..3 {
        source.put(object(&format!("filler{n}"), 1));
    }
    for owner in ["second", "third", "fourth"] {
        source.put(child(owner));
        settle().await;
    }
    let queue = WorkQueue::builder().build();
    let mut handler = enqueue_owner::<ReplicaSet>(&queue);
    while let Some(Some(event)) = events.next().now_or_never() {
        match &event {
            Event::Added { object, initial } => handler.on_add(object, *initial),
            Event::Updated { old, new } => handler.on_update(old, new),
            Event::Deleted(deleted) => handler.on_delete(deleted),
        }
    }
    assert_eq!(queued(&queue), ["first", "fourth", "second", "third"]);
}

/// The final state of a deleted object may name an owner that no event before has named.
#[tokio::test(start_paused = true)]
async fn a_delete_that_names_a_new_owner_reaches_the_previous_one_too() {
    for bound in [1, 1024] {
        let source = source();
        source.put(child("first"));
        let queue = WorkQueue::builder().build();
        let informer = source.informer::<Value>(|builder| builder.handler_bound(bound));
        let recorder = Recorder::default();
        informer.add_handler(recorder.clone());
        informer.add_handler(enqueue_owner::<ReplicaSet>(&queue));
        started(&informer).await;
        assert_eq!(queued(&queue), ["first"]);
        let mut last = child("second");
        last["metadata"]["resourceVersion"] = "500".into();
        source.send(|| WatchEvent::Deleted(encoded(&source, &last)));
        settle().await;
        assert_eq!(queued(&queue), ["first", "second"]);
        assert_eq!(recorder.take(), ["+child@101!", "~child@101>500", "-child@500"]);
    }
}

/// The pipeline is not held up for as long as a relist is: others may join and leave between two steps.
#[tokio::test(start_paused = true)]
async fn a_long_relist_is_handed_out_in_steps() {
    const OBJECTS: usize = 10_000;
    let source = source();
    let put = |value| (0..OBJECTS).for_each(|n| _ = source.put_unnoticed(object(&format!("o{n:05}"), value)));
    put(1);
    let (steps, step) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let hook = (Arc::clone(&steps), Arc::clone(&step));
    let (informer, recorder) = watched(&source, |builder| {
        builder.handler_bound(OBJECTS).fail_points(move |point| {
            if point == FailPoint::BatchQueued {
                hook.0.fetch_add(1, Ordering::SeqCst);
                hook.1.notify_one();
            }
        })
    })
    .await;
    settle().await;
    assert!(recorder.take().len() <= OBJECTS && steps.swap(0, Ordering::SeqCst) == 1);
    step.notified().await;
    put(2);
    source.expire_history().cut();
    let late = Recorder::default();
    let joining = async {
        step.notified().await;
        let joined_after = steps.load(Ordering::SeqCst);
        informer.add_handler(late.clone());
        joined_after
    };
    let (joined_after, ()) = tokio::join!(joining, pass(120));
    let (seen, replayed) = (recorder.take(), late.take());
    assert_eq!(seen.iter().filter(|call| call.starts_with('~')).count(), OBJECTS);
    assert!(replayed.len() == OBJECTS && replayed.iter().all(|call| call.starts_with('+')), "nothing twice");
    assert_eq!(steps.load(Ordering::SeqCst), 3, "4,096 events in each");
    assert_eq!(joined_after, 1);
}
