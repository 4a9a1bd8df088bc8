//! Status and conditions, events, owner references, apply.

use crate::support::{Log, NAMESPACE, Running, World, eventually, named, secs, settle};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Secret},
        events::v1::Event,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::Object;
use kube_informer_controller::{
    Action, BoxError, Conditions, Context, Controller, EventType, WriteError, child_name, controlled_by,
};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

fn budgets(world: &World) -> Api<PodDisruptionBudget> {
    Api::namespaced(world.client.clone(), NAMESPACE)
}

async fn create_budget(world: &World) -> PodDisruptionBudget {
    let budget = PodDisruptionBudget { metadata: named("a"), ..PodDisruptionBudget::default() };
    budgets(world).create(&PostParams::default(), &budget).await.unwrap()
}

/// Sets the status of a budget, with a condition that is true if `minAvailable` is set.
async fn reconcile(budget: Object<PodDisruptionBudget>, context: Context) -> Result<bool, BoxError> {
    let decoded = budget.decode()?;
    let ready = decoded.spec.as_ref().is_some_and(|spec| spec.min_available.is_some());
    let mut conditions: Vec<Condition> =
        decoded.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    conditions.set(context.condition(&budget, "Ready", ready, "Checked", "checked by the test"));
    let status = PodDisruptionBudgetStatus {
        observed_generation: budget.generation(),
        conditions: Some(conditions),
        ..PodDisruptionBudgetStatus::default()
    };
    Ok(context.update_status(&budget, &status).await?)
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_when_it_changes_and_only_then() {
    let world = World::start().await;
    let informer = world.factory.of::<PodDisruptionBudget>();
    let log = Log::default();
    let noted = log.clone();
    // A clock that advances with every reading: the time of a condition must not count as a change.
    let ticks = Arc::new(std::sync::atomic::AtomicU64::new(1_800_000_000));
    let clock = move || {
        let second = ticks.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    };
    let run = Controller::new(&informer, world.client.clone()).wall_clock(clock).run(
        move |budget: Object<PodDisruptionBudget>, context| {
            let log = noted.clone();
            async move {
                let written = reconcile(budget, context).await?;
                log.note(if written { "written" } else { "unchanged" });
                Ok::<_, BoxError>(Action::requeue_after(secs(60)))
            }
        },
    );
    let running = Running::start(run);
    create_budget(&world).await;
    log.reaches(2).await;
    // The server adds fields with zeros to the status, which must not be written again and again.
    let rule = FaultRule::new(Fault::InternalError).verb(Verb::Patch).resource("poddisruptionbudgets");
    world.server.faults().add(rule.times(1_000_000));
    log.reaches(4).await;
    assert_eq!(log.take()[..4], ["written", "unchanged", "unchanged", "unchanged"], "without a request");
    world.server.faults().clear();
    let first = budgets(&world).get("a").await.unwrap();
    let condition = |budget: &PodDisruptionBudget| {
        let status = budget.status.clone().unwrap();
        assert_eq!(status.observed_generation, budget.metadata.generation);
        status.conditions.of_type("Ready").unwrap().clone()
    };
    assert_eq!(condition(&first).status, "False");
    let spec = Patch::Merge(json!({"spec": {"minAvailable": 1}}));
    budgets(&world).patch("a", &PatchParams::default(), &spec).await.unwrap();
    log.reaches(2).await;
    settle().await;
    let second = budgets(&world).get("a").await.unwrap();
    assert_eq!(condition(&second).status, "True");
    assert_eq!(condition(&second).observed_generation, second.metadata.generation);
    assert!(condition(&second).last_transition_time > condition(&first).last_transition_time);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_for_an_older_state_is_a_conflict_and_is_retried_with_the_newer_one() {
    let world = World::start().await;
    let informer = world.factory.of::<PodDisruptionBudget>();
    create_budget(&world).await;
    let failures = Log::default();
    let noted = failures.clone();
    let run = Controller::new(&informer, world.client.clone())
        .on_error(move |failure| noted.note(failure.cause.to_string()))
        .run(|budget: Object<PodDisruptionBudget>, context| async move {
            reconcile(budget, context).await?;
            Ok::<_, BoxError>(Action::done())
        });
    world.factory.start();
    eventually(|| informer.is_synced()).await;
    world.server.faults().stall_watches(Some("poddisruptionbudgets"), true);
    let spec = Patch::Merge(json!({"spec": {"minAvailable": 1}}));
    budgets(&world).patch("a", &PatchParams::default(), &spec).await.unwrap();
    let running = Running::start(run);
    failures.reaches(1).await;
    assert!(failures.lines()[0].contains("conflict"), "{failures:?}");
    assert_eq!(budgets(&world).get("a").await.unwrap().status.unwrap_or_default().observed_generation, None);
    world.server.faults().stall_watches(Some("poddisruptionbudgets"), false);
    let observed = |budget: Option<&Object<PodDisruptionBudget>>| {
        let status = budget.and_then(|budget| budget.decode().ok()?.status.clone());
        status.is_some_and(|status| status.observed_generation == Some(2))
    };
    let key = kube_informer::ObjectKey::namespaced(NAMESPACE, "a");
    informer.wait_until(&key, secs(60), observed).await.unwrap();
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_are_written_once_and_counted_in_a_series() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).named("test-controller").run(
        move |config: Object<ConfigMap>, context: Context| {
            context.event(&config, EventType::Warning, "NotReady", "it is not ready yet");
            noted.note("reconciled");
            std::future::ready(Ok::<_, BoxError>(Action::requeue_after(secs(1))))
        },
    );
    let running = Running::start(run);
    log.reaches(20).await;
    running.stop().await;
    let events: Api<Event> = Api::namespaced(world.client.clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(event.reason.as_deref(), Some("NotReady"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.note.as_deref(), Some("it is not ready yet"));
    assert_eq!(event.reporting_controller.as_deref(), Some("test-controller"));
    assert_eq!(event.regarding.as_ref().unwrap().name.as_deref(), Some("a"));
    assert_eq!(event.series.as_ref().unwrap().count, 2, "the third and later ones are only counted");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_written_disturbs_nothing() {
    let world = World::start().await;
    world.create("a").await;
    let rule = FaultRule::new(Fault::InternalError).verb(Verb::Create).resource("events");
    world.server.faults().add(rule.times(1));
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).run(
        move |config: Object<ConfigMap>, context: Context| {
            context.event(&config, EventType::Normal, "Checked", "checked");
            noted.note("reconciled");
            std::future::ready(Ok::<_, BoxError>(Action::requeue_after(secs(1))))
        },
    );
    let running = Running::start(run);
    log.reaches(3).await;
    running.stop().await;
    let events: Api<Event> = Api::namespaced(world.client.clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(events.len(), 1, "the next occurrence is written as a new event");
}

#[tokio::test(start_paused = true)]
async fn an_applied_child_is_owned_and_found_again_after_lost_responses() {
    let world = World::start().await;
    let secrets = world.secrets();
    let lost = FaultRule::new(Fault::ResponseLost).verb(Verb::Patch).resource("secrets").times(2);
    world.server.faults().add(lost);
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).owns(&secrets).run(
        move |config: Object<ConfigMap>, context: Context| {
            let log = noted.clone();
            async move {
                let mut child = Secret::default();
                child.metadata.name = Some(child_name(&config, "child"));
                let data = config.decode()?.data.clone().unwrap_or_default();
                child.string_data = Some(data);
                let applied = context.apply(&controlled_by(child, &config)?).await?;
                log.note(applied.metadata.name.unwrap_or_default());
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    let running = Running::start(run);
    world.create("a").await;
    log.reaches(1).await;
    world.set("a", "1").await;
    eventually(|| {
        let key = kube_informer::ObjectKey::namespaced(NAMESPACE, "a-child");
        let child = secrets.lister().get(&key).and_then(|child| child.decode().ok());
        child.is_some_and(|child| child.data.as_ref().is_some_and(|data| data.contains_key("value")))
    })
    .await;
    let children = world.secret_api().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(children.len(), 1);
    let owner = &children[0].metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.controller), ("ConfigMap", "a", Some(true)));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn errors_of_writes_say_what_the_server_said() {
    let world = World::start().await;
    world.create("a").await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<WriteError>();
    let run = Controller::new(&world.configs(), world.client.clone()).run(
        move |config: Object<ConfigMap>, context: Context| {
            let sender = sender.clone();
            async move {
                let taken = ConfigMap { metadata: named("a"), ..ConfigMap::default() };
                sender.send(context.create(&taken).await.unwrap_err())?;
                let unnamed = ConfigMap::default();
                sender.send(context.create(&unnamed).await.unwrap_err())?;
                let mut elsewhere = ConfigMap { metadata: named("b"), ..ConfigMap::default() };
                elsewhere.metadata.namespace = Some("../x".to_owned());
                sender.send(context.create(&elsewhere).await.unwrap_err())?;
                let renamed = context.patch(&config, |config| config["metadata"]["name"] = "b".into()).await;
                sender.send(renamed.unwrap_err())?;
                Ok::<_, BoxError>(Action::await_change())
            }
        },
    );
    let running = Running::start(run);
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(receiver.recv().await.unwrap());
    }
    assert!(
        errors[0].is_conflict() && errors[0].to_string().contains("configmaps default/a"),
        "{}",
        errors[0]
    );
    assert!(matches!(errors[1], WriteError::Rejected { .. }), "{}", errors[1]);
    assert!(matches!(errors[2], WriteError::NotSent { .. }), "{}", errors[2]);
    assert!(matches!(errors[3], WriteError::Edit(_)), "{}", errors[3]);
    running.stop().await;
}
