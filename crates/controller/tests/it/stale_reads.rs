//! No reconcile acts on a cache that does not show what the previous one wrote.

use crate::support::{Log, NAMESPACE, Running, World, eventually, named, owner_ref, secs, settle};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{Object, ObjectKey, Scope, SharedInformer};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, FailureCause, ReconcileFailure, RunController,
};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

fn secret(name: &str, owner: &ConfigMap) -> Secret {
    let metadata = ObjectMeta { owner_references: Some(vec![owner_ref(owner)]), ..named(name) };
    Secret { metadata, ..Secret::default() }
}

fn causes(log: &Log) -> impl Fn(&ReconcileFailure) + use<> {
    let log = log.clone();
    move |failure| {
        log.note(match &failure.cause {
            FailureCause::StaleCache(stale) => format!("stale {}", stale.resource),
            FailureCause::Error(_) => "error".to_owned(),
            other => other.to_string(),
        });
    }
}

/// What [`one_child`] did.
#[derive(Clone, Default)]
struct Seen {
    /// `create` and `found`.
    log: Log,
    failures: Log,
}

/// A controller that creates a child with a new name if the cache shows none: with a stale cache it creates two.
fn one_child(
    world: &World,
    seen: &Seen,
    configure: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>,
) -> RunController {
    let secrets = world.secrets();
    let by_owner = secrets.index_controller().unwrap();
    let (lister, log, count) = (secrets.lister(), seen.log.clone(), Arc::new(AtomicUsize::new(0)));
    let controller = Controller::new(&world.configs(), world.client.clone()).owns(&secrets);
    configure(controller.on_error(causes(&seen.failures))).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (lister, by_owner, log) = (lister.clone(), by_owner, log.clone());
            let nth = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if !lister.by(&by_owner, &config.uid())?.is_empty() {
                    log.note("found");
                    return Ok::<_, BoxError>(Action::done());
                }
                log.note("create");
                context.create(&secret(&format!("child-{nth}"), &*config.decode()?)).await?;
                Ok(Action::done())
            }
        },
    )
}

async fn children(world: &World) -> usize {
    world.secret_api().list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_waits_until_the_cache_shows_the_previous_write() {
    let world = World::start().await;
    let seen = Seen::default();
    world.factory.start();
    let running = Running::start(one_child(&world, &seen, |controller| controller));
    eventually(|| world.secrets().is_synced() && world.configs().is_synced()).await;
    let faults = world.server.faults();
    faults.stall_watches(Some("secrets"), true);
    world.create("a").await;
    seen.log.reaches(1).await;
    for value in ["1", "2", "3"] {
        world.set("a", value).await;
        tokio::time::sleep(secs(1)).await;
    }
    assert_eq!(seen.log.lines(), ["create"], "the cache does not show the child");
    tokio::time::sleep(secs(40)).await;
    assert_eq!(seen.failures.lines()[0], "stale secrets", "the wait is limited, and visible");
    assert_eq!((seen.log.lines(), children(&world).await), (vec!["create".to_owned()], 1));
    faults.stall_watches(Some("secrets"), false);
    seen.log.reaches(2).await;
    assert_eq!((seen.log.lines()[1].as_str(), children(&world).await), ("found", 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_barrier_the_same_controller_creates_two_children() {
    let world = World::start().await;
    let seen = Seen::default();
    world.factory.start();
    let stale = |controller: Controller<ConfigMap>| controller.allow_stale(true).barrier_timeout(secs(2));
    let running = Running::start(one_child(&world, &seen, stale));
    eventually(|| world.secrets().is_synced() && world.configs().is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    world.create("a").await;
    seen.log.reaches(1).await;
    world.set("a", "1").await;
    seen.log.reaches(2).await;
    settle().await;
    assert_eq!((seen.log.lines()[1].as_str(), children(&world).await), ("create", 2));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_response_is_lost_is_found_before_the_retry() {
    let world = World::start().await;
    let seen = Seen::default();
    let run = one_child(&world, &seen, |controller| controller);
    world.factory.start();
    eventually(|| world.secrets().is_synced()).await;
    let faults = world.server.faults();
    faults.stall_watches(Some("secrets"), true);
    faults.add(FaultRule::new(Fault::ResponseLost).verb(Verb::Create).resource("secrets").times(1));
    let running = Running::start(run);
    world.create("a").await;
    tokio::time::sleep(secs(20)).await;
    assert_eq!(seen.log.lines(), ["create"], "the cache does not show what became of it");
    faults.stall_watches(Some("secrets"), false);
    seen.log.reaches(2).await;
    assert_eq!(seen.log.lines()[..2], ["create", "found"]);
    assert_eq!((seen.failures.lines(), children(&world).await), (vec!["error".to_owned()], 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_did_not_reach_the_server_is_retried() {
    let world = World::start().await;
    let seen = Seen::default();
    let lost = FaultRule::new(Fault::Unavailable).verb(Verb::Create).resource("secrets").times(1);
    world.server.faults().add(lost);
    let running = Running::start(one_child(&world, &seen, |controller| controller));
    world.create("a").await;
    seen.log.reaches(3).await;
    assert_eq!(seen.log.lines()[..3], ["create", "create", "found"]);
    assert_eq!(children(&world).await, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_cancelled_reconcile_is_found_before_the_retry() {
    let world = World::start().await;
    let seen = Seen::default();
    let slow = FaultRule::new(Fault::Delay(secs(30))).verb(Verb::Create).resource("secrets").times(1);
    world.server.faults().add(slow);
    let configure = |controller: Controller<ConfigMap>| controller.deadline(secs(10)).write_timeout(secs(60));
    let running = Running::start(one_child(&world, &seen, configure));
    world.create("a").await;
    eventually(|| seen.log.lines().iter().any(|line| line == "found")).await;
    assert!(seen.failures.lines()[0].starts_with("did not return within 10s"), "{:?}", seen.failures);
    assert_eq!(children(&world).await, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_response_in_time_has_an_unknown_outcome() {
    let world = World::start().await;
    let log = Log::default();
    let slow = FaultRule::new(Fault::Delay(secs(30))).verb(Verb::Create).resource("secrets").times(1);
    world.server.faults().add(slow);
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).write_timeout(secs(2)).run(
        move |config: Object<ConfigMap>, context: Context| {
            let log = noted.clone();
            async move {
                let owner = config.decode()?;
                let error = context
                    .create(&secret("child", &owner))
                    .await
                    .map_or_else(|error| error, |_| panic!("the first request is delayed"));
                log.note(format!("{} {error}", error.is_outcome_unknown()));
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    assert_eq!(
        log.lines(),
        ["true create of secrets default/child has an unknown outcome: no response within 2s"]
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_conflict_the_retry_starts_with_the_newer_state() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).run(
        move |config: Object<ConfigMap>, context: Context| {
            let log = noted.clone();
            async move {
                let value = config.decode()?.data.clone().unwrap_or_default();
                if value.contains_key("patched") {
                    log.note("patched");
                    return Ok::<_, BoxError>(Action::done());
                }
                log.note(value.get("value").cloned().unwrap_or_default());
                let patched = context.patch(&config, |config| config["data"]["patched"] = "yes".into()).await;
                if let Err(error) = &patched {
                    log.note(if error.is_conflict() { "conflict" } else { "error" });
                }
                patched?;
                Ok(Action::done())
            }
        },
    );
    let queue = run.queue().clone();
    world.factory.start();
    eventually(|| world.configs().is_synced()).await;
    world.server.faults().stall_watches(Some("configmaps"), true);
    world.set("a", "new").await;
    let running = Running::start(run);
    log.reaches(2).await;
    queue.add(ObjectKey::namespaced(NAMESPACE, "a"));
    tokio::time::sleep(secs(20)).await;
    assert_eq!(log.lines(), ["", "conflict"], "no further attempt with the stale state");
    world.server.faults().stall_watches(Some("configmaps"), false);
    eventually(|| log.lines().last().is_some_and(|last| last == "patched")).await;
    assert_eq!(log.lines()[..4], ["", "conflict", "new", "patched"]);
    running.stop().await;
}

/// A controller that deletes the children of a config map, and notes how many its cache shows.
fn deleting(world: &World, log: &Log) -> RunController {
    let secrets = world.secrets();
    let by_owner = secrets.index_controller().unwrap();
    let (lister, log) = (secrets.lister(), log.clone());
    Controller::new(&world.configs(), world.client.clone()).owns(&secrets).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (lister, by_owner, log) = (lister.clone(), by_owner, log.clone());
            async move {
                let mut children = lister.by(&by_owner, &config.uid())?;
                children.retain(|child| !child.is_deleting());
                log.note(children.len().to_string());
                if let Some(child) = children.first() {
                    context.delete(child).await?;
                }
                Ok::<_, BoxError>(Action::done())
            }
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_waited_for() {
    let world = World::start().await;
    let owner = world.create("a").await;
    for name in ["one", "two"] {
        world.create_child(name, &owner).await;
    }
    let log = Log::default();
    let run = deleting(&world, &log);
    world.factory.start();
    eventually(|| world.secrets().is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    let running = Running::start(run);
    log.reaches(1).await;
    world.set("a", "1").await;
    tokio::time::sleep(secs(10)).await;
    assert_eq!(log.lines(), ["2"]);
    assert_eq!(children(&world).await, 1);
    world.server.faults().stall_watches(Some("secrets"), false);
    log.reaches(3).await;
    assert_eq!(log.lines()[..3], ["2", "1", "0"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_with_a_finalizer_is_waited_for_until_it_is_being_deleted() {
    let world = World::start().await;
    let owner = world.create("a").await;
    world.create_child("one", &owner).await;
    let kept = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/keep"]}}));
    world.secret_api().patch("one", &PatchParams::default(), &kept).await.unwrap();
    let log = Log::default();
    let running = Running::start(deleting(&world, &log));
    log.reaches(2).await;
    assert_eq!(log.lines()[..2], ["1", "0"]);
    assert_eq!(children(&world).await, 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_delete_of_a_recreated_object_is_a_conflict() {
    let world = World::start().await;
    let owner = world.create("a").await;
    world.create_child("one", &owner).await;
    let run = deleting(&world, &Log::default());
    world.factory.start();
    eventually(|| world.secrets().is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    world.secret_api().delete("one", &DeleteParams::default()).await.unwrap();
    let other = Secret { metadata: named("one"), ..Secret::default() };
    world.secret_api().create(&PostParams::default(), &other).await.unwrap();
    let running = Running::start(run);
    tokio::time::sleep(secs(5)).await;
    world.server.faults().stall_watches(Some("secrets"), false);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(children(&world).await, 1, "the recreated secret is not ours to delete");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_no_cache_of_the_controller_includes_are_not_waited_for() {
    let world = World::start().await;
    let selected: SharedInformer<Secret> = world.factory.of_with::<Secret, Secret>(|options| {
        options.label_selector("app=x".parse().unwrap()).field_selector("type=kind-x".parse().unwrap())
    });
    let elsewhere: SharedInformer<Secret> =
        world.factory.of_with::<Secret, Secret>(|options| options.scope(Scope::namespace("other").unwrap()));
    let (log, failures) = (Log::default(), Log::default());
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone())
        .reads(&selected)
        .reads(&elsewhere)
        .on_error(causes(&failures))
        .run(move |config: Object<ConfigMap>, context: Context| {
            let log = noted.clone();
            async move {
                if log.len() == 0 {
                    let owner = config.decode()?;
                    context.create(&secret("excluded-by-label", &owner)).await?;
                    let mut labelled = secret("excluded-by-field", &owner);
                    labelled.metadata.labels = Some([("app".to_owned(), "x".to_owned())].into());
                    context.create(&labelled).await?;
                    // No informer of this kind.
                    let account = ServiceAccount { metadata: named("a"), ..ServiceAccount::default() };
                    context.create(&account).await?;
                }
                log.note("reconciled");
                Ok::<_, BoxError>(Action::requeue_after(secs(1)))
            }
        });
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(3).await;
    assert_eq!(failures.lines(), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_write_excludes_is_waited_for_until_the_cache_loses_it() {
    let world = World::start().await;
    let select = || {
        world.factory.of_with::<Secret, Secret>(|options| options.label_selector("app=x".parse().unwrap()))
    };
    let selected = select();
    let owner = world.create("a").await;
    let mut child = secret("child", &owner);
    child.metadata.labels = Some([("app".to_owned(), "x".to_owned())].into());
    world.secret_api().create(&PostParams::default(), &child).await.unwrap();
    let (log, lister) = (Log::default(), selected.lister());
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).reads(&selected).run(
        move |_: Object<ConfigMap>, context: Context| {
            let (log, cached) = (noted.clone(), lister.get(&ObjectKey::namespaced(NAMESPACE, "child")));
            async move {
                log.note(if cached.is_some() { "selected" } else { "excluded" });
                if let Some(child) = cached {
                    context.patch(&child, |child| child["metadata"]["labels"]["app"] = "y".into()).await?;
                }
                Ok::<_, BoxError>(Action::requeue_after(secs(1)))
            }
        },
    );
    world.factory.start();
    eventually(|| selected.is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    let running = Running::start(run);
    log.reaches(1).await;
    tokio::time::sleep(secs(10)).await;
    assert_eq!(log.lines(), ["selected"]);
    world.server.faults().stall_watches(Some("secrets"), false);
    log.reaches(2).await;
    assert_eq!(log.lines()[..2], ["selected", "excluded"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_written_object_that_others_delete_and_recreate_ends_the_wait() {
    let world = World::start().await;
    let seen = Seen::default();
    let run = one_child(&world, &seen, |controller| controller);
    world.factory.start();
    eventually(|| world.secrets().is_synced() && world.configs().is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    let running = Running::start(run);
    let owner = world.create("a").await;
    seen.log.reaches(1).await;
    settle().await;
    world.secret_api().delete("child-0", &DeleteParams::default()).await.unwrap();
    world.secret_api().create(&PostParams::default(), &secret("child-0", &owner)).await.unwrap();
    world.server.faults().stall_watches(Some("secrets"), false);
    seen.log.reaches(2).await;
    assert_eq!(seen.log.lines()[1], "found");
    assert_eq!(seen.failures.lines(), [""; 0]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_its_cache_does_not_hold_up_others() {
    let world = World::start().await;
    let seen = Seen::default();
    let run = one_child(&world, &seen, |controller| controller.concurrency(1));
    world.factory.start();
    eventually(|| world.secrets().is_synced() && world.configs().is_synced()).await;
    world.server.faults().stall_watches(Some("secrets"), true);
    let running = Running::start(run);
    world.create("a").await;
    seen.log.reaches(1).await;
    world.set("a", "1").await;
    settle().await;
    world.create("b").await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!(seen.log.lines(), ["create", "create"], "one child for a, one for b");
    assert_eq!(children(&world).await, 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn caught_up_waits_within_a_reconcile() {
    let world = World::start().await;
    let secrets = world.secrets();
    let (log, lister) = (Log::default(), secrets.lister());
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).reads(&secrets).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (log, lister) = (noted.clone(), lister.clone());
            async move {
                let made = context.apply(&secret("child", &*config.decode()?)).await?;
                context.caught_up().await?;
                let key = ObjectKey::namespaced(NAMESPACE, "child");
                let shown = lister.get(&key).map(|child| child.resource_version().to_string());
                log.note((shown == made.metadata.resource_version).to_string());
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    assert_eq!(log.lines(), ["true"]);
    running.stop().await;
}
