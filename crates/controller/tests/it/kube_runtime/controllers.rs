//! Controllers: what reconciles an object, and what is reported.

use crate::support::{Log, NAMESPACE, World, eventually, named, owner_ref, secs, settle};
use futures_util::{StreamExt, stream};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer_controller::kube_runtime::{
    Config, Controller, WatchStreamExt,
    controller::{Action, Error},
    reflector::{self, ObjectRef},
    watcher,
};
use serde_json::json;
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{sync::oneshot, task::JoinHandle};

/// A controller of config maps whose reconciles and failures are noted.
fn controller(world: &World) -> Controller<ConfigMap> {
    Controller::new(world.config_api(), watcher::Config::default())
}

/// Runs a controller until it is stopped. Notes the names of objects that are reconciled.
struct Runs {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Runs {
    fn start(controller: Controller<ConfigMap>, log: &Log) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let log = log.clone();
        let controller = controller.graceful_shutdown_on(async { drop(stopped.await) });
        let task = tokio::spawn(async move {
            let reconcile = |config: Arc<ConfigMap>, log: Arc<Log>| async move {
                log.note(config.name_any());
                Ok::<_, Infallible>(Action::await_change())
            };
            let results = controller.run(reconcile, |_, _, _| Action::await_change(), Arc::new(log.clone()));
            results
                .for_each(async |result| {
                    if let Err(error) = result {
                        log.note(error.to_string());
                    }
                })
                .await;
        });
        Self { stop, task }
    }

    /// The stream ends when the controller is stopped.
    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_and_owners_of_children_are_reconciled() {
    let world = World::start().await;
    let owner = world.create("a").await;
    world.create("b").await;
    let log = Log::default();
    let runs = Runs::start(controller(&world).owns(world.secret_api(), watcher::Config::default()), &log);
    log.reaches(2).await;
    settle().await;
    let mut first = log.take();
    first.sort();
    assert_eq!(first, ["a", "b"]);
    world.set("b", "1").await;
    log.reaches(1).await;
    assert_eq!(log.take(), ["b"]);
    // An owner that is not the controller counts, as in `kube_runtime`.
    let mut reference = owner_ref(&owner);
    reference.controller = None;
    let metadata = ObjectMeta { owner_references: Some(vec![reference]), ..named("child") };
    let child = Secret { metadata, ..Secret::default() };
    world.secret_api().create(&PostParams::default(), &child).await.unwrap();
    log.reaches(1).await;
    assert_eq!(log.take(), ["a"], "the child was created");
    world.secret_api().delete("child", &Default::default()).await.unwrap();
    log.reaches(1).await;
    assert_eq!(log.take(), ["a"], "the child was deleted");
    world.delete("b").await;
    settle().await;
    assert_eq!(log.take(), [""; 0], "an object that does not exist is not reconciled");
    runs.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_refers_to_another_one_than_before_reconciles_both() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let log = Log::default();
    let target = |secret: Secret| {
        let name = secret.labels().get("target").cloned();
        name.map(|name| ObjectRef::<ConfigMap>::new(&name).within(NAMESPACE))
    };
    let watching = controller(&world).watches(world.secret_api(), watcher::Config::default(), target);
    let runs = Runs::start(watching, &log);
    log.reaches(2).await;
    let labels = |target: &str| Some([("target".to_owned(), target.to_owned())].into());
    let metadata = ObjectMeta { labels: labels("a"), ..named("s") };
    let secret = Secret { metadata, ..Secret::default() };
    settle().await;
    log.take();
    world.secret_api().create(&PostParams::default(), &secret).await.unwrap();
    log.reaches(1).await;
    assert_eq!(log.take(), ["a"]);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"target": "b"}}}));
    world.secret_api().patch("s", &PatchParams::default(), &patch).await.unwrap();
    log.reaches(2).await;
    let mut both = log.take();
    both.sort();
    assert_eq!(both, ["a", "b"]);
    runs.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_objects_are_reconciled_on_demand() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let log = Log::default();
    let (reload, reloads) = tokio::sync::mpsc::unbounded_channel::<()>();
    let reloads = stream::unfold(reloads, async |mut reloads| Some((reloads.recv().await?, reloads)));
    let (start, started) = oneshot::channel::<()>();
    let one = stream::once(async {
        drop(started.await);
        ObjectRef::<ConfigMap>::new("b").within(NAMESPACE)
    });
    let runs = Runs::start(controller(&world).reconcile_all_on(reloads).reconcile_on(one), &log);
    log.reaches(2).await;
    settle().await;
    log.take();
    reload.send(()).unwrap();
    log.reaches(2).await;
    settle().await;
    let mut all = log.take();
    all.sort();
    assert_eq!(all, ["a", "b"]);
    drop(start);
    log.reaches(1).await;
    assert_eq!(log.take(), ["b"]);
    runs.stop().await;
}

#[derive(Debug, thiserror::Error)]
#[error("no luck")]
struct NoLuck;

#[tokio::test(start_paused = true)]
async fn the_error_policy_decides_when_a_failed_reconcile_is_retried() {
    let world = World::start().await;
    world.create("a").await;
    let (calls, start) = (AtomicUsize::new(0), tokio::time::Instant::now());
    // The functions borrow: they need not be `'static`.
    let reconcile = |_, _| {
        let nth = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match nth {
                0 => Err(NoLuck),
                1 => panic!("a bug"),
                _ => Ok(Action::requeue(secs(7))),
            }
        }
    };
    let policy = |object: Arc<ConfigMap>, _: &NoLuck, _| {
        assert_eq!(object.name_any(), "a");
        Action::requeue(secs(40))
    };
    let results = controller(&world).run(reconcile, policy, Arc::new(()));
    let results: Vec<_> =
        results.take(3).map(|result| result.map_err(|error| error.to_string())).collect().await;
    assert_eq!(results[0].as_ref().unwrap_err(), "reconcile of ConfigMap.v1./a.default failed: no luck");
    assert_eq!(results[1].as_ref().unwrap().1, Action::requeue(secs(7)), "the panic was retried");
    assert_eq!(results[2].as_ref().unwrap().0, ObjectRef::new("a").within(NAMESPACE));
    assert!(start.elapsed() >= secs(47), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn no_more_objects_than_configured_are_reconciled_at_once() {
    let world = World::start().await;
    for name in ["a", "b", "c", "d"] {
        world.create(name).await;
    }
    let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (limit, expected) in [(2, 2), (0, 4)] {
        most.store(0, Ordering::SeqCst);
        let (active, most) = (Arc::clone(&active), Arc::clone(&most));
        let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| {
            let (active, most) = (Arc::clone(&active), Arc::clone(&most));
            async move {
                most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(secs(1)).await;
                active.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Infallible>(Action::await_change())
            }
        };
        let limited = controller(&world).with_config(Config::default().concurrency(limit));
        let results = limited.run(reconcile, |_, _, _| Action::await_change(), Arc::new(()));
        assert_eq!(results.take(4).filter(|result| std::future::ready(result.is_ok())).count().await, 4);
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_in_quick_succession_are_one_reconcile() {
    let world = World::start().await;
    let log = Log::default();
    let runs = Runs::start(controller(&world).with_config(Config::default().debounce(secs(10))), &log);
    world.create("a").await;
    for value in ["1", "2", "3"] {
        tokio::time::sleep(secs(2)).await;
        world.set("a", value).await;
    }
    settle().await;
    assert_eq!(log.len(), 0, "within the period");
    log.reaches(1).await;
    tokio::time::sleep(secs(60)).await;
    assert_eq!(log.lines(), ["a"]);
    runs.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failures_of_lists_and_watches_are_reported() {
    let world = World::start().await;
    world.create("a").await;
    world.server.faults().add(FaultRule::new(Fault::InternalError).verb(Verb::List).times(1));
    world.server.faults().add(FaultRule::new(Fault::InternalError).verb(Verb::Watch).times(1));
    let log = Log::default();
    let runs = Runs::start(controller(&world), &log);
    log.reaches(2).await;
    assert!(log.lines()[0].contains("ApiError"), "{:?}", log.lines());
    eventually(|| log.lines().contains(&"a".to_owned())).await;
    runs.stop().await;
    // No server would accept the selector.
    let invalid = Controller::new(world.config_api(), watcher::Config::default().labels("a b c"));
    let mut results = std::pin::pin!(invalid.run(
        |_, _| async { Ok::<_, Infallible>(Action::await_change()) },
        |_, _, _| Action::await_change(),
        Arc::new(())
    ));
    let first = results.next().await.unwrap().unwrap_err();
    assert!(matches!(&first, Error::QueueError(watcher::Error::InitialListFailed(_))), "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_stops_completes_its_reconciles() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let (log, (stop, stopped)) = (Log::default(), oneshot::channel::<()>());
    let reconcile = |config: Arc<ConfigMap>, log: Arc<Log>| async move {
        tokio::time::sleep(secs(100)).await;
        log.note(config.name_any());
        Ok::<_, Infallible>(Action::await_change())
    };
    let one = controller(&world)
        .with_config(Config::default().concurrency(1))
        .graceful_shutdown_on(async { drop(stopped.await) });
    let results = one.run(reconcile, |_, _, _| Action::await_change(), Arc::new(log.clone()));
    let stop = async {
        tokio::time::sleep(secs(50)).await;
        drop(stop);
    };
    let (results, ()) = tokio::join!(results.count(), stop);
    assert_eq!((results, log.len()), (1, 1), "the other one does not start");
}

#[tokio::test(start_paused = true)]
async fn controllers_share_a_stream() {
    let world = World::start().await;
    let owner = world.create("a").await;
    let (reader, writer) = reflector::store_shared(16);
    let subscriber = writer.subscribe().unwrap();
    let secrets: Api<Secret> = world.secret_api();
    let reflected = watcher(secrets, watcher::Config::default()).reflect_shared(writer);
    let reflecting = tokio::spawn(reflected.for_each(async |event| drop(event.unwrap())));
    let log = Log::default();
    let noting = |log: &Log| {
        let log = log.clone();
        move |name: String| {
            log.note(name);
            std::future::ready(Ok::<_, Infallible>(Action::await_change()))
        }
    };
    let (owners, children) = (noting(&log), noting(&log));
    let of_secrets = Controller::for_shared_stream(subscriber.clone(), reader).run(
        move |secret: Arc<Secret>, _| children(format!("secret {}", secret.name_any())),
        |_, _, _| Action::await_change(),
        Arc::new(()),
    );
    let of_configs = controller(&world).owns_shared_stream(subscriber).run(
        move |config: Arc<ConfigMap>, _| owners(format!("config {}", config.name_any())),
        |_, _, _| Action::await_change(),
        Arc::new(()),
    );
    let both = tokio::spawn(async move { tokio::join!(of_secrets.count(), of_configs.count()) });
    log.reaches(1).await;
    assert_eq!(log.take(), ["config a"]);
    world.create_child("c", &owner).await;
    log.reaches(2).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["config a", "secret c"]);
    both.abort();
    reflecting.abort();
}
