//! Finalizers: in place before the first effect, removed after the cleanup, whatever fails in between.

use crate::support::{Log, NAMESPACE, Running, World, eventually, secs, settle};
use harness::CapturedLog;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{Object, ObjectKey};
use kube_informer_controller::{Action, BoxError, Controller, FailureCause, RunController};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tracing::Level;

const FINALIZER: &str = "example.com/cleanup";

/// A controller that notes `reconcile` and `cleanup`. The cleanup returns `outcome(nth call)`.
fn controller(
    world: &World,
    log: &Log,
    outcome: impl Fn(usize) -> Result<Action, BoxError> + Send + Sync + 'static,
) -> RunController {
    let (reconciled, cleaned) = (log.clone(), log.clone());
    let calls = AtomicUsize::new(0);
    Controller::new(&world.configs(), world.client.clone())
        .finalizer(FINALIZER, move |config: Object<ConfigMap>, _| {
            assert!(config.is_deleting());
            cleaned.note("cleanup");
            std::future::ready(outcome(calls.fetch_add(1, Ordering::SeqCst)))
        })
        .run(move |config: Object<ConfigMap>, _| {
            let finalizers = config.decode().unwrap().metadata.finalizers.clone().unwrap_or_default();
            let in_place = finalizers.iter().any(|name| name == FINALIZER);
            reconciled.note(if in_place { "reconcile" } else { "reconcile without the finalizer" });
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        })
}

async fn exists(world: &World) -> bool {
    world.config_api().get_opt("a").await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn it_is_in_place_before_the_first_reconcile_and_removed_after_the_cleanup() {
    let world = World::start().await;
    let log = Log::default();
    let running = Running::start(controller(&world, &log, |_| Ok(Action::done())));
    world.create("a").await;
    log.reaches(1).await;
    settle().await;
    assert!(log.take().iter().all(|line| line == "reconcile"));
    world.delete("a").await;
    log.reaches(1).await;
    eventually(|| world.configs().lister().is_empty()).await;
    assert_eq!(log.lines(), ["cleanup"]);
    assert!(!exists(&world).await);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn it_stays_until_the_cleanup_is_done() {
    let world = World::start().await;
    let log = Log::default();
    let run = controller(&world, &log, |nth| match nth {
        0 => Err("cannot clean up".into()),
        1 => Ok(Action::requeue_after(secs(10))),
        2 => Ok(Action::await_change()),
        _ => Ok(Action::done()),
    });
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    settle().await;
    log.take();
    world.delete("a").await;
    log.reaches(3).await;
    tokio::time::sleep(secs(60)).await;
    assert_eq!(log.lines(), ["cleanup"; 3]);
    assert!(exists(&world).await, "the cleanup is not done");
    world.set("a", "changed").await;
    eventually(|| world.configs().lister().is_empty()).await;
    assert_eq!(log.lines(), ["cleanup"; 4]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_responses_and_conflicts_neither_skip_nor_reorder_a_step() {
    for fault in [Fault::ResponseLost, Fault::Unavailable, Fault::Conflict, Fault::InternalError] {
        let world = World::start().await;
        let log = Log::default();
        let running = Running::start(controller(&world, &log, |_| Ok(Action::done())));
        eventually(|| world.configs().is_synced()).await;
        let faults = world.server.faults();
        let rule = || FaultRule::new(fault).verb(Verb::Patch).resource("configmaps");
        faults.add(rule().times(2));
        world.create("a").await;
        log.reaches(1).await;
        settle().await;
        assert!(log.take().iter().all(|line| line == "reconcile"), "{fault:?}");
        faults.clear();
        faults.add(rule().times(2));
        world.delete("a").await;
        eventually(|| world.configs().lister().is_empty()).await;
        assert!(log.len() >= 1 && log.lines().iter().all(|line| line == "cleanup"), "{fault:?} {log:?}");
        running.stop().await;
    }
}

/// Removes the finalizer while the cache is stale, and checks that the cleanup is not repeated for an object that is gone.
async fn cleanup_is_called_once(world: &World) {
    let (log, faults) = (Log::default(), world.server.faults());
    let stalled = faults.clone();
    let run = controller(world, &log, move |_| {
        stalled.stall_watches(Some("configmaps"), true);
        Ok(Action::done())
    });
    let queue = run.queue().clone();
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    settle().await;
    log.take();
    world.delete("a").await;
    log.reaches(1).await;
    settle().await;
    assert!(!exists(world).await);
    queue.add(ObjectKey::namespaced(NAMESPACE, "a"));
    tokio::time::sleep(secs(10)).await;
    assert_eq!(log.lines(), ["cleanup"], "the cache still shows the object");
    faults.stall_watches(Some("configmaps"), false);
    eventually(|| world.configs().lister().is_empty()).await;
    assert_eq!(log.lines(), ["cleanup"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_cleanup_is_not_repeated_before_the_cache_shows_that_the_object_is_gone() {
    let world = World::start().await;
    cleanup_is_called_once(&world).await;
}

#[tokio::test(start_paused = true)]
async fn the_cleanup_is_not_repeated_after_a_removal_whose_response_was_lost() {
    let world = World::start().await;
    // The first patch adds the finalizer.
    let faults = world.server.faults();
    faults.add(FaultRule::new(Fault::Delay(secs(0))).verb(Verb::Patch).resource("configmaps").times(1));
    faults.add(FaultRule::new(Fault::ResponseLost).verb(Verb::Patch).resource("configmaps").times(1));
    cleanup_is_called_once(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_controller_goes_on_with_the_cleanup() {
    let world = World::start().await;
    let log = Log::default();
    let first = Running::start(controller(&world, &log, |_| Err("crashes".into())));
    world.create("a").await;
    log.reaches(1).await;
    world.delete("a").await;
    eventually(|| log.lines().iter().any(|line| line == "cleanup")).await;
    first.stop().await;
    assert!(exists(&world).await);
    let second = Running::start(controller(&world, &log, |_| Ok(Action::done())));
    eventually(|| world.configs().lister().is_empty()).await;
    assert!(!exists(&world).await);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_without_it_is_left_alone() {
    let world = World::start().await;
    let mut config = ConfigMap::default();
    (config.metadata.name, config.metadata.finalizers) =
        (Some("a".to_owned()), Some(vec!["example.com/other".to_owned()]));
    world.config_api().create(&PostParams::default(), &config).await.unwrap();
    world.delete("a").await;
    let log = Log::default();
    let running = Running::start(controller(&world, &log, |_| Ok(Action::done())));
    eventually(|| world.configs().is_synced()).await;
    tokio::time::sleep(secs(10)).await;
    assert_eq!(log.lines(), [""; 0]);
    let finalizers = world.config_api().get("a").await.unwrap().metadata.finalizers.unwrap();
    assert_eq!(finalizers, ["example.com/other"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_others_stay() {
    let world = World::start().await;
    let mut config = ConfigMap::default();
    (config.metadata.name, config.metadata.finalizers) =
        (Some("a".to_owned()), Some(vec!["example.com/other".to_owned()]));
    world.config_api().create(&PostParams::default(), &config).await.unwrap();
    let log = Log::default();
    let running = Running::start(controller(&world, &log, |_| Ok(Action::done())));
    log.reaches(1).await;
    world.delete("a").await;
    eventually(|| log.lines().iter().any(|line| line == "cleanup")).await;
    let own = Arc::new(|config: &ConfigMap| config.metadata.finalizers.clone().unwrap_or_default());
    loop {
        let finalizers = own(&world.config_api().get("a").await.unwrap());
        if finalizers == ["example.com/other"] {
            break;
        }
        assert_eq!(finalizers, ["example.com/other", FINALIZER]);
        tokio::time::sleep(secs(1)).await;
    }
    let released = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    world.config_api().patch("a", &PatchParams::default(), &released).await.unwrap();
    assert!(!exists(&world).await);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_predicate_hides_neither_a_removed_finalizer_nor_the_deletion() {
    let world = World::start().await;
    let (log, cleaned) = (Log::default(), Log::default());
    let (reconciled, noted) = (log.clone(), cleaned.clone());
    let run = Controller::new(&world.configs(), world.client.clone())
        .when(|_, _| false)
        .finalizer(FINALIZER, move |_: Object<ConfigMap>, _| {
            noted.note("cleanup");
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        })
        .run(move |_: Object<ConfigMap>, _| {
            reconciled.note("reconcile");
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        });
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    settle().await;
    let removed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.config_api().patch("a", &PatchParams::default(), &removed).await.unwrap();
    tokio::time::sleep(secs(10)).await;
    let finalizers = world.config_api().get("a").await.unwrap().metadata.finalizers;
    assert_eq!(finalizers.as_deref(), Some(&[FINALIZER.to_owned()][..]), "it is put back");
    log.take();
    world.set("a", "changed").await;
    tokio::time::sleep(secs(10)).await;
    assert_eq!(log.lines(), [""; 0], "other updates are ignored");
    world.delete("a").await;
    eventually(|| world.configs().lister().is_empty()).await;
    assert_eq!(cleaned.lines(), ["cleanup"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_cleanup_is_reported_as_such() {
    #[derive(Debug, thiserror::Error)]
    #[error("no access")]
    struct NoAccess;
    let world = World::start().await;
    let (reported, captured) = (Log::default(), CapturedLog::capture(Level::WARN));
    let noted = reported.clone();
    let run = Controller::new(&world.configs(), world.client.clone())
        .on_error(move |failure| {
            let FailureCause::CleanUp { finalizer, source } = &failure.cause else { panic!("{failure}") };
            assert!(source.is::<NoAccess>() && **finalizer == *FINALIZER);
            noted.note(failure.to_string());
        })
        .finalizer(FINALIZER, |_: Object<ConfigMap>, _| std::future::ready(Err(NoAccess)))
        .run(|_: Object<ConfigMap>, _| std::future::ready(Ok::<_, BoxError>(Action::done())));
    let running = Running::start(run);
    world.create("a").await;
    tokio::time::sleep(secs(1)).await;
    world.delete("a").await;
    reported.reaches(1).await;
    let expected = "configmaps: cleanup of default/a failed: finalizer example.com/cleanup and the object stay: no access";
    assert_eq!(reported.lines()[0], expected);
    assert!(captured.text().contains("cleanup failed; next retry in "), "{}", captured.text());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_panics_is_reported_as_such_and_retried() {
    let world = World::start().await;
    let (reported, captured) = (Log::default(), CapturedLog::capture(Level::WARN));
    let (noted, calls) = (reported.clone(), AtomicUsize::new(0));
    let run = Controller::new(&world.configs(), world.client.clone())
        .on_error(move |failure| {
            assert!(matches!(failure.cause, FailureCause::CleanUp { .. }), "{failure}");
            noted.note(failure.to_string());
        })
        .finalizer(FINALIZER, move |_: Object<ConfigMap>, _| {
            let nth = calls.fetch_add(1, Ordering::SeqCst);
            assert!(nth != 0, "before the future is made");
            async move {
                assert!(nth != 1, "in the future");
                Ok::<_, BoxError>(Action::done())
            }
        })
        .run(|_: Object<ConfigMap>, _| std::future::ready(Ok::<_, BoxError>(Action::done())));
    let running = Running::start(run);
    world.create("a").await;
    tokio::time::sleep(secs(1)).await;
    world.delete("a").await;
    eventually(|| world.configs().lister().is_empty()).await;
    let expected = ["before the future is made", "in the future"].map(|message| {
        format!(
            "configmaps: cleanup of default/a failed: finalizer {FINALIZER} and the object stay: panicked: {message}"
        )
    });
    assert_eq!(reported.lines(), expected);
    assert!(captured.text().contains("cleanup panicked; next retry in "), "{}", captured.text());
    running.stop().await;
}
