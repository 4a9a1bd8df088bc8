//! Informers that start with the state that an earlier process saved.

mod disk;
mod server;

use crate::support::{Errors, Recorder, cached, object, pass, secs, settle, source};
use kube_informer::{
    HeapSize, InformerBuilder, InformerFactory, InformerOptions, InformerStatus, PersistOptions, Scope,
    SharedInformer, Stop, Storage, Transform,
    testing::{FakeSource, Fault, Request},
};
use kube_informer_persist::MemoryDisk;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

type Configure<'a> = &'a dyn Fn(InformerBuilder) -> InformerBuilder;

/// A process with a disk, whose clock can be set.
#[derive(Clone)]
struct Machine {
    disk: MemoryDisk,
    now: Arc<Mutex<SystemTime>>,
}

impl Machine {
    fn new() -> Self {
        let start = SystemTime::UNIX_EPOCH + secs(1_000_000);
        Self { disk: MemoryDisk::new(), now: Arc::new(Mutex::new(start)) }
    }

    fn sleep(&self, seconds: u64) {
        *self.now.lock().unwrap() += secs(seconds);
    }

    fn options(&self) -> PersistOptions {
        let now = Arc::clone(&self.now);
        PersistOptions::on(self.disk.clone()).cluster_id("test").clock(move || *now.lock().unwrap()).inline()
    }

    fn informer(
        &self,
        source: &FakeSource,
        configure: impl FnOnce(InformerBuilder) -> InformerBuilder,
    ) -> SharedInformer<Value> {
        source.informer(|builder| configure(builder.persist(self.options()).unwrap()))
    }

    /// Starts an informer with a recorder, and waits until it is synced and its state is saved.
    async fn start(&self, source: &FakeSource) -> (SharedInformer<Value>, Recorder) {
        let informer = self.informer(source, |builder| builder);
        let recorder = Recorder::default();
        informer.add_handler(recorder.clone());
        informer.start();
        settle().await;
        (informer, recorder)
    }
}

/// Ends a process in good order.
async fn end(informer: SharedInformer<Value>) {
    informer.stop(Stop::Drop).await;
}

fn saved(informer: &SharedInformer<Value>) -> String {
    informer.persist_status().to_string()
}

fn is_restored(informer: &SharedInformer<Value>) -> bool {
    matches!(informer.status(), InformerStatus::Restored { .. })
}

/// Lists, streaming lists, and requests of the version.
fn lists(source: &FakeSource) -> (usize, usize, usize) {
    let requests = source.requests();
    let count = |is: fn(&Request) -> bool| requests.iter().filter(|request| is(request)).count();
    let is_query = |request: &Request| matches!(request, Request::List(options) if options.limit == Some(1));
    (
        count(|request| matches!(request, Request::List(options) if options.limit != Some(1))),
        count(|request| matches!(request, Request::Watch(options) if options.send_initial_events.is_some())),
        count(is_query),
    )
}

/// Saves objects `a`, `b` and `c` (versions 101 to 103) and ends the process.
async fn save_three(machine: &Machine, source: &FakeSource) {
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let (informer, _) = machine.start(source).await;
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 103");
    end(informer).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_resumes_the_watch_without_a_list() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    assert_eq!(lists(&source), (0, 1, 0));
    machine.sleep(60);
    source.put(object("b", 2));
    source.delete("ns/a");
    source.put(object("d", 1));

    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(lists(&source), (0, 1, 1), "a request of the version, and no list");
    let initial = ["+a@101!", "+b@102!", "+c@103!"];
    assert_eq!(recorder.take(), [&initial[..], &["~b@102>104", "-a@105", "+d@106"]].concat());
    assert!(informer.is_synced() && informer.status().is_live());
    assert_eq!(cached(&informer), ["b@104", "c@103", "d@106"]);
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 106");
    end(informer).await;

    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+b@104!", "+c@103!", "+d@106!"], "what was appended");
    assert!(informer.is_synced() && lists(&source) == (0, 1, 2));
    source.put(object("e", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+e@107"]);
}

/// A view that is kept.
#[derive(serde::Deserialize, HeapSize)]
struct Data {
    data: std::collections::BTreeMap<String, String>,
}

#[tokio::test(start_paused = true)]
async fn objects_are_as_they_were() {
    let (machine, source) = (Machine::new(), source());
    source.put(json!({
        "metadata": {"namespace": "ns", "name": "a", "labels": {"app": "cart"}, "annotations": {"x": "y"}},
        "data": {"value": "v".repeat(500)},
    }));
    let (informer, _) = machine.start(&source).await;
    informer.index_field("data.value").unwrap();
    let before = informer.lister().get(&"ns/a".parse().unwrap()).unwrap().json().unwrap();
    end(informer).await;
    let informer = machine.informer(&source, |builder| builder);
    let by_value = informer.index_field("data.value").unwrap();
    informer.keep_view::<Data>();
    informer.start();
    settle().await;
    let object = informer.lister().get(&"ns/a".parse().unwrap()).unwrap();
    assert_eq!(object.json().unwrap(), before);
    pass(1).await;
    assert_eq!(
        (object.labels().get("app"), object.resource_version().to_string()),
        (Some("cart"), "101".into())
    );
    assert!(object.views_size() > 500, "kept in the background");
    assert_eq!(informer.lister().by(&by_value, &"v".repeat(500)).unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reads_are_served_before_the_server_responds() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    machine.sleep(60);
    source.fail_get(Fault::Refuse).fail_get(Fault::Silence);
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(cached(&informer), ["a@101", "b@102", "c@103"]);
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!"]);
    assert!(!informer.is_synced(), "{}", informer.status());
    let synced = informer.synced(secs(1)).await.unwrap_err();
    assert!(synced.to_string().contains("retrying"), "{synced}");
    source.heal();
    informer.synced(secs(60)).await.unwrap();
    assert!(informer.status().is_live() && lists(&source).0 == 0);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_restored_until_the_watch_reaches_the_version_of_the_server() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    machine.sleep(60);
    source.skip_versions(10);
    let (informer, recorder) = machine.start(&source).await;
    let InformerStatus::Restored { version, age } = informer.status() else {
        panic!("{}", informer.status())
    };
    assert_eq!((version.to_string(), age), ("103".into(), secs(60)));
    assert!(!informer.is_synced() && informer.ready(Duration::MAX).is_err());
    assert_eq!(saved(&informer), "saving", "nothing is saved before the history is known");
    source.bookmark();
    settle().await;
    assert!(informer.is_synced() && informer.status().is_live());
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!"]);
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 113");
}

#[tokio::test(start_paused = true)]
async fn without_proof_in_time_the_collection_is_listed_and_compared() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    source.skip_versions(10);
    let (informer, recorder) = machine.start(&source).await;
    recorder.take();
    assert!(is_restored(&informer));
    pass(29).await;
    assert!(!informer.is_synced(), "{}", informer.status());
    pass(3).await;
    assert!(informer.status().is_live() && informer.is_synced());
    assert_eq!((recorder.take(), lists(&source)), (vec![], (0, 2, 1)), "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_delivers_exactly_what_changed() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    machine.sleep(60);
    source.put(object("b", 2));
    source.delete("ns/a");
    source.put(object("d", 1));
    source.delete("ns/c");
    source.put(object("c", 1));
    source.expire_history();
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!"]);
    pass(3).await;
    let mut changes = recorder.take();
    changes.sort();
    assert_eq!(changes, ["+c@108", "+d@106", "-a@101?", "-c@103?", "~b@102>104"]);
    assert!(informer.is_synced());
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 108");
}

#[tokio::test(start_paused = true)]
async fn an_old_state_is_compared_with_a_list() {
    for (seconds, streaming_lists) in [(599, 1), (601, 2)] {
        let (machine, source) = (Machine::new(), source());
        save_three(&machine, &source).await;
        source.delete("ns/a");
        machine.sleep(seconds);
        let (informer, recorder) = machine.start(&source).await;
        assert_eq!(lists(&source).1, streaming_lists, "{seconds}");
        let delete = if seconds < 600 { "-a@104" } else { "-a@101?" };
        assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!", delete]);
        assert!(informer.is_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_from_the_future_is_compared_with_a_list() {
    let (machine, source) = (Machine::new(), source());
    machine.sleep(3600);
    save_three(&machine, &source).await;
    *machine.now.lock().unwrap() -= secs(3600);
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!((recorder.take().len(), lists(&source).1), (3, 2));
    assert!(informer.is_synced());
}

/// A server behind the saved version, with other objects at versions that were seen before.
#[tokio::test(start_paused = true)]
async fn a_server_restored_from_a_backup_is_compared_by_content() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let mut objects = source.objects();
    objects[2]["metadata"]["resourceVersion"] = "103".into();
    objects[0]["data"]["value"] = "other".into();
    source.restore(102, objects);
    let (informer, recorder) = machine.start(&source).await;
    pass(2).await;
    assert!(informer.is_synced());
    let mut calls = recorder.take();
    calls.sort();
    assert_eq!(calls, ["+a@101!", "+b@102!", "+c@103!", "~a@101>101"], "the same version with other content");
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 102");
}

/// The server has passed the saved version: the watch is accepted, and only the newest object shows the other history.
#[tokio::test(start_paused = true)]
async fn another_uid_of_the_newest_object_is_another_history() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let mut objects = source.objects();
    objects[2]["metadata"]["uid"] = "00000000-0000-4000-8000-00000000ffff".into();
    objects.remove(1);
    source.restore(103, objects);
    for name in ["x", "y"] {
        source.put(object(name, 1));
    }
    let (informer, recorder) = machine.start(&source).await;
    pass(2).await;
    assert!(informer.is_synced());
    assert_eq!(cached(&informer), ["a@101", "c@103", "x@104", "y@105"]);
    let mut calls = recorder.take();
    calls.sort();
    assert_eq!(calls, ["+a@101!", "+b@102!", "+c@103", "+c@103!", "+x@104", "+y@105", "-b@102?", "-c@103?"]);
}

#[tokio::test(start_paused = true)]
async fn the_newest_object_may_be_gone_if_the_watch_says_so() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    source.delete("ns/c");
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!", "-c@104"]);
    assert!(informer.is_synced() && lists(&source).1 == 1);
    end(informer).await;

    source.delete_unnoticed("ns/b");
    let (informer, recorder) = machine.start(&source).await;
    source.bookmark();
    pass(2).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "-b@102?"], "no delete: another history");
    assert!(informer.is_synced() && lists(&source).1 == 2);
}

#[tokio::test(start_paused = true)]
async fn trusted_state_is_synced_at_once_and_verified_all_the_same() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    source.skip_versions(5);
    let options = || machine.options().trust_restored();
    let informer = source.informer::<Value>(|builder| builder.persist(options()).unwrap());
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    informer.start();
    settle().await;
    assert!(informer.is_synced() && registration.is_synced());
    assert!(is_restored(&informer), "{}", informer.status());
    source.bookmark();
    settle().await;
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_state_of_something_else_is_not_used() {
    let transformed =
        |builder: InformerBuilder| builder.transform(Transform::new().drop_field("data").unwrap());
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let selected = |builder: InformerBuilder| builder.label_selector("app=cart".parse().unwrap());
    let other_cluster =
        |builder: InformerBuilder| builder.persist(machine.options().cluster_id("other")).unwrap();
    let others: [(Configure<'_>, Option<&str>); 3] = [
        (&selected, None),
        (&transformed, Some("the saved state is not used: the saved state belongs to another transform")),
        (&other_cluster, Some("the saved state is not used: the saved state belongs to another cluster")),
    ];
    for (configure, why) in others {
        let errors = Errors::default();
        // The options of the last call count, so that the directory is opened once.
        let persisted = |builder: InformerBuilder| builder.persist(machine.options()).unwrap();
        let informer = source.informer::<Value>(|builder| {
            let builder = errors.hook(builder);
            if why.is_some_and(|why| why.contains("cluster")) {
                configure(builder)
            } else {
                configure(persisted(builder))
            }
        });
        informer.start();
        settle().await;
        assert!(informer.is_synced());
        assert_eq!(errors.take().first().map(String::as_str), why);
        end(informer).await;
    }
    assert_eq!(lists(&source).1, 4, "each was a normal start");
}

/// The handler of a process that restarts sees the saved state, then what one that never stopped sees after it.
#[tokio::test(start_paused = true)]
async fn the_trace_is_the_replay_and_then_that_of_an_informer_that_never_stopped() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let steady = source.informer::<Value>(|builder| builder);
    let unbroken = Recorder::default();
    steady.add_handler(unbroken.clone());
    steady.start();
    settle().await;
    unbroken.take();
    let change = |n: u64| {
        source.put(object(&format!("n{}", n % 7), n));
        if n.is_multiple_of(3) {
            source.delete(&format!("ns/n{}", (n + 2) % 7));
        }
    };
    (0..40).for_each(change);
    let (_informer, recorder) = machine.start(&source).await;
    (40..80).for_each(change);
    settle().await;
    let replay: Vec<String> = ["+a@101!", "+b@102!", "+c@103!"].map(String::from).into();
    assert_eq!(recorder.take(), [replay, unbroken.take()].concat());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_killed_goes_on_at_the_last_commit() {
    let (machine, source) = (Machine::new(), source());
    source.put(object("a", 1));
    let (informer, _) = machine.start(&source).await;
    pass(1).await;
    source.put(object("b", 1));
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 102");
    source.put(object("c", 1));
    settle().await;
    assert_eq!(cached(&informer).len(), 3, "cached, but not saved within a tenth of a second");
    drop(informer); // aborts its tasks, as the end of a process does
    settle().await;
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103"]);
    assert!(informer.is_synced() && lists(&source).1 == 1);
}

#[tokio::test(start_paused = true)]
async fn namespaces_have_logs_of_their_own() {
    let (machine, source) = (Machine::new(), source());
    let put =
        |namespace: &str, name: &str| source.put(json!({"metadata": {"namespace": namespace, "name": name}}));
    put("one", "a");
    put("two", "b");
    put("three", "c");
    let scoped =
        |builder: InformerBuilder| builder.scope(kube_informer::Scope::namespaces(["one", "two"]).unwrap());
    for expected in [2, 2] {
        let informer = machine.informer(&source, scoped);
        informer.start();
        settle().await;
        pass(1).await;
        assert!(informer.is_synced() && informer.lister().len() == 2);
        assert_eq!(lists(&source).1, expected, "a list for each namespace, once");
        end(informer).await;
    }
}

/// Namespaces are restored one after the other, while the views of the one before are being filled in.
#[tokio::test(start_paused = true)]
async fn views_are_filled_in_whichever_namespace_was_restored_last() {
    let (machine, source) = (Machine::new(), source());
    for (number, namespace) in (0..600).zip(["one", "two", "three"].into_iter().cycle()) {
        let metadata = json!({"namespace": namespace, "name": format!("n{number}")});
        source.put(json!({"metadata": metadata, "data": {"value": "v".repeat(200)}}));
    }
    let scope = kube_informer::Scope::namespaces(["one", "two", "three"]).unwrap();
    for round in 0..2 {
        let informer = machine.informer(&source, |builder| builder.scope(scope.clone()));
        informer.keep_view::<Data>();
        informer.start();
        pass(5).await;
        assert!(informer.is_synced() && lists(&source).1 == 3, "round {round}");
        let without = informer.lister().list().iter().filter(|object| object.views_size() == 0).count();
        assert_eq!(without, 0, "round {round}");
        end(informer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn informers_of_one_resource_are_saved_side_by_side() {
    let namespaces =
        |names: &[&str]| InformerOptions::new().scope(Scope::namespaces(names.iter().copied()).unwrap());
    let whole = InformerOptions::new;
    let pairs = [
        (whole(), whole().transform(Transform::new().drop_field("data").unwrap())),
        (whole(), whole().json_only(true)),
        (whole(), whole().storage(Storage::disk())),
        (namespaces(&["ns"]), namespaces(&["ns", "other"])),
    ];
    for (first, second) in pairs {
        let (machine, source) = (Machine::new(), source());
        source.put(object("a", 1));
        let mut listed = None;
        for round in 0..4 {
            let of = source.clone();
            let factory = InformerFactory::from_sources(move |_, _, namespace| of.source(namespace));
            let factory = factory.persist(machine.options()).unwrap().build();
            let informer = |options: &InformerOptions| {
                let kind = source.origin().kind().clone();
                factory.of_kind::<Value>(kind, |_| options.clone())
            };
            // They are built, and their tasks run, in any order.
            let built = if round % 2 == 0 { [&first, &second] } else { [&second, &first] }.map(informer);
            built[round / 2].start();
            settle().await;
            factory.start();
            pass(2).await;
            for informer in &built {
                assert!(saved(informer).starts_with("sav"), "{first:?}, {second:?}: {}", saved(informer));
                assert_eq!(cached(informer), ["a@101"]);
            }
            assert_eq!(*listed.get_or_insert(lists(&source).1), lists(&source).1, "{first:?}, {second:?}");
            factory.shutdown().await;
        }
    }
}
