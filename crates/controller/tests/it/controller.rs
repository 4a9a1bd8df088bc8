//! Which keys are reconciled, when, and in which order.

use crate::support::{Log, Running, World, eventually, owner_ref, secs, settle};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{Event, Object, ObjectKey, Stop};
use kube_informer_controller::{Action, BoxError, Context, Controller, FailureCause, RunError};
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{sync::Semaphore, time::Instant};

type Outcome = Result<Action, BoxError>;

/// A reconcile function that notes the names it is called with.
fn noting(log: &Log) -> impl Fn(Object<ConfigMap>, Context) -> std::future::Ready<Outcome> + use<> {
    let log = log.clone();
    move |config, context| {
        assert_eq!(config.key(), context.key());
        log.note(config.name());
        std::future::ready(Ok(Action::done()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_followed_by_a_reconcile_that_sees_it() {
    let world = World::start().await;
    let log = Log::default();
    let seen = log.clone();
    let run =
        Controller::new(&world.configs(), world.client.clone()).run(move |config: Object<ConfigMap>, _| {
            let data = config.decode().unwrap().data.clone().unwrap_or_default();
            seen.note(data.get("value").cloned().unwrap_or_default());
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        });
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    for value in ["1", "2", "3"] {
        world.set("a", value).await;
        eventually(|| log.lines().last().is_some_and(|last| last == value)).await;
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_of_children_reconcile_their_owners_and_a_moved_child_both() {
    let world = World::start().await;
    let (a, b) = (world.create("a").await, world.create("b").await);
    let log = Log::default();
    let run =
        Controller::new(&world.configs(), world.client.clone()).owns(&world.secrets()).run(noting(&log));
    let running = Running::start(run);
    log.reaches(2).await;
    settle().await;
    log.take();

    world.create_child("child", &a).await;
    log.reaches(1).await;
    assert_eq!(log.take(), ["a"]);
    let moved = Patch::Merge(json!({"metadata": {"ownerReferences": [owner_ref(&b)]}}));
    world.secret_api().patch("child", &PatchParams::default(), &moved).await.unwrap();
    log.reaches(2).await;
    assert_eq!(log.take(), ["a", "b"]);
    world.secret_api().delete("child", &Default::default()).await.unwrap();
    log.reaches(1).await;
    settle().await;
    assert_eq!(log.take(), ["b"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_sees_the_old_and_the_new_state() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let log = Log::default();
    let of_label =
        |secret: &Object<Secret>| Some(ObjectKey::namespaced("default", secret.labels().get("for")?));
    let events = Log::default();
    let seen = events.clone();
    let run = Controller::new(&world.configs(), world.client.clone())
        .watches(&world.secrets(), of_label)
        .watches_events(&world.secrets(), move |event| {
            if let Event::Updated { old, new } = event {
                seen.note(format!("{:?}>{:?}", old.labels().get("for"), new.labels().get("for")));
            }
            None
        })
        .run(noting(&log));
    let running = Running::start(run);
    log.reaches(2).await;
    settle().await;
    log.take();
    let secret = json!({"metadata": {"name": "s", "labels": {"for": "a"}}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    world.secret_api().create(&Default::default(), &secret).await.unwrap();
    log.reaches(1).await;
    assert_eq!(log.take(), ["a"]);
    let moved = Patch::Merge(json!({"metadata": {"labels": {"for": "b"}}}));
    world.secret_api().patch("s", &PatchParams::default(), &moved).await.unwrap();
    log.reaches(2).await;
    assert_eq!(log.take(), ["a", "b"]);
    assert_eq!(events.lines(), [r#"Some("a")>Some("b")"#]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn predicates_filter_updates_and_not_resyncs() {
    let world = World::start().await;
    let owner = world.create("a").await;
    let log = Log::default();
    let run = Controller::new(&world.configs(), world.client.clone())
        .when(|_, new| new.labels().get("interesting").is_some())
        .owns_when(&world.secrets(), |_, new| new.labels().get("interesting").is_some())
        .resync(secs(300))
        .run(noting(&log));
    let running = Running::start(run);
    log.reaches(1).await;
    world.create_child("child", &owner).await;
    log.reaches(2).await;
    log.take();
    world.set("a", "1").await;
    let dull = Patch::Merge(json!({"metadata": {"annotations": {"x": "y"}}}));
    world.secret_api().patch("child", &PatchParams::default(), &dull).await.unwrap();
    settle().await;
    assert_eq!(log.take(), [""; 0], "neither update is of interest");
    let interesting = Patch::Merge(json!({"metadata": {"labels": {"interesting": "yes"}}}));
    world.secret_api().patch("child", &PatchParams::default(), &interesting).await.unwrap();
    log.reaches(1).await;
    world.config_api().patch("a", &PatchParams::default(), &interesting).await.unwrap();
    log.reaches(2).await;
    log.take();
    let before = Instant::now();
    log.reaches(1).await;
    assert!(before.elapsed() > secs(200), "only the resync reconciled it again");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn user_changes_go_before_the_initial_list() {
    let world = World::start().await;
    for i in 0..50 {
        world.create(&format!("c-{i:02}")).await;
    }
    let log = Log::default();
    let gate = Arc::new(Semaphore::new(0));
    let (seen, entered) = (log.clone(), Arc::clone(&gate));
    let run =
        Controller::new(&world.configs(), world.client.clone()).run(move |config: Object<ConfigMap>, _| {
            let (seen, gate) = (seen.clone(), Arc::clone(&entered));
            async move {
                seen.note(config.name());
                gate.acquire().await.unwrap().forget();
                Ok::<_, BoxError>(Action::done())
            }
        });
    let running = Running::start(run);
    log.reaches(1).await;
    world.set("c-40", "changed").await;
    settle().await;
    gate.add_permits(1000);
    log.reaches(50).await;
    assert_eq!(log.lines()[1], "c-40", "49 keys of the initial list were queued before it");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_reconciled_twice_at_once_and_keys_are_up_to_the_limit() {
    let world = World::start().await;
    let names: Vec<_> = (0..8).map(|i| format!("c-{i}")).collect();
    for name in &names {
        world.create(name).await;
    }
    let (active, most, calls) =
        (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (keys, peak, count) = (Arc::clone(&active), Arc::clone(&most), Arc::clone(&calls));
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone())
        .concurrency(3)
        .deadline(secs(3))
        .on_error(move |failure| match &failure.cause {
            FailureCause::Deadline(_) => {}
            cause => noted.note(cause.to_string()),
        })
        .run_by_key(move |key: ObjectKey, _, _| {
            let (keys, peak, count) = (Arc::clone(&keys), Arc::clone(&peak), Arc::clone(&count));
            async move {
                /// Leaves the set also when the reconcile is cancelled.
                struct Leave(Arc<Mutex<BTreeSet<ObjectKey>>>, ObjectKey);
                impl Drop for Leave {
                    fn drop(&mut self) {
                        self.0.lock().unwrap().remove(&self.1);
                    }
                }
                assert!(keys.lock().unwrap().insert(key.clone()), "{key} is reconciled twice at once");
                let _leave = Leave(Arc::clone(&keys), key);
                peak.fetch_max(keys.lock().unwrap().len(), Ordering::SeqCst);
                let nth = count.fetch_add(1, Ordering::SeqCst);
                // Every fifth is cancelled by its deadline.
                tokio::time::sleep(secs(if nth % 5 == 4 { 60 } else { 1 })).await;
                Ok::<_, BoxError>(Action::done())
            }
        });
    let running = Running::start(run);
    for round in 0..10 {
        for name in &names {
            world.set(name, &round.to_string()).await;
        }
        tokio::time::sleep(secs(1)).await;
    }
    eventually(|| calls.load(Ordering::SeqCst) >= 25).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(log.lines(), [""; 0], "only deadlines failed");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_are_reconciled_by_key_only() {
    let world = World::start().await;
    let (log, by_key) = (Log::default(), Log::default());
    let noted = by_key.clone();
    let objects = Controller::new(&world.configs(), world.client.clone()).named("objects").run(noting(&log));
    let keys = Controller::new(&world.configs(), world.client.clone()).named("keys").run_by_key(
        move |key, object, _| {
            noted.note(format!("{key} {}", if object.is_some() { "exists" } else { "is gone" }));
            std::future::ready(Ok::<_, BoxError>(Action::await_change()))
        },
    );
    let (objects, keys) = (Running::start(objects), Running::start(keys));
    world.create("a").await;
    by_key.reaches(1).await;
    log.reaches(1).await;
    world.delete("a").await;
    by_key.reaches(2).await;
    settle().await;
    assert_eq!(by_key.lines(), ["default/a exists", "default/a is gone"]);
    assert_eq!(log.lines(), ["a"]);
    objects.stop().await;
    keys.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requeue_after_reconciles_again_after_the_delay() {
    let world = World::start().await;
    world.create("a").await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let run = Controller::new(&world.configs(), world.client.clone()).run(move |_: Object<ConfigMap>, _| {
        noted.lock().unwrap().push(Instant::now());
        std::future::ready(Ok::<_, BoxError>(Action::requeue_after(secs(60))))
    });
    let running = Running::start(run);
    eventually(|| times.lock().unwrap().len() == 3).await;
    let times = times.lock().unwrap().clone();
    for pair in times.windows(2) {
        let delay = pair[1] - pair[0];
        assert!(delay >= secs(60) && delay < secs(61), "{delay:?}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_starts_before_all_caches_are_synced() {
    let world = World::start().await;
    world.create("a").await;
    let faults = world.server.faults();
    for verb in [Verb::List, Verb::Watch] {
        faults.add(FaultRule::new(Fault::Forbidden).verb(verb).resource("secrets").times(1_000_000));
    }
    let log = Log::default();
    let secrets = world.secrets();
    let controller = Controller::new(&world.configs(), world.client.clone());
    let running = Running::start(controller.reads(&secrets).run(noting(&log)));
    tokio::time::sleep(secs(60)).await;
    assert!(world.configs().is_synced() && !secrets.is_synced());
    assert_eq!(log.len(), 0);
    faults.clear();
    log.reaches(1).await;
    assert!(secrets.is_synced());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_informer_is_stopped_ends_with_an_error() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let running = Running::start(Controller::new(&world.configs(), world.client.clone()).run(noting(&log)));
    log.reaches(1).await;
    world.configs().stop(Stop::Drop).await;
    let ended = running.ended().await.unwrap_err();
    assert!(matches!(ended, RunError::InformerEnded { .. }), "{ended}");

    let stopped = world.configs();
    world.factory.shutdown().await;
    let run = Controller::new(&stopped, world.client.clone()).run(noting(&log));
    let ended = run.await.unwrap_err();
    assert!(matches!(ended, RunError::Sync { .. }), "{ended}");
}
