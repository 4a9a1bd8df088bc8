//! Finalizers, events and conditions of single objects.

use crate::support::{Log, NAMESPACE, World, eventually};
use futures_util::StreamExt;
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event as KubernetesEvent};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
};
use kube_informer_controller::kube_runtime::{
    Controller,
    conditions::{self, Condition},
    controller::Action,
    events::{Event, EventType, Recorder},
    finalizer::{self, finalizer},
    wait::{await_condition, delete::delete_and_finalize},
    watcher,
};
use std::{convert::Infallible, sync::Arc};

const FINALIZER: &str = "example.com/cleanup";

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_added_before_the_first_apply_and_removed_after_the_cleanup() {
    let world = World::start().await;
    let log = Log::default();
    let (api, noted) = (world.config_api(), log.clone());
    let reconcile = move |config: Arc<ConfigMap>, _: Arc<()>| {
        let (api, log) = (api.clone(), noted.clone());
        async move {
            let step = |event: finalizer::Event<ConfigMap>| async move {
                let (step, config) = match event {
                    finalizer::Event::Apply(config) => ("apply", config),
                    finalizer::Event::Cleanup(config) => ("cleanup", config),
                };
                assert!(config.finalizers().contains(&FINALIZER.to_owned()));
                log.note(step);
                Ok::<_, Infallible>(Action::await_change())
            };
            finalizer(&api, FINALIZER, config, step).await
        }
    };
    let results = Controller::new(world.config_api(), watcher::Config::default()).run(
        reconcile,
        |_, error, _| panic!("{error}"),
        Arc::new(()),
    );
    let running = tokio::spawn(results.for_each(async |result| drop(result.unwrap())));
    world.create("a").await;
    log.reaches(1).await;
    delete_and_finalize(world.config_api(), "a", &DeleteParams::default()).await.unwrap();
    assert_eq!(log.lines(), ["apply", "cleanup"]);
    assert!(world.config_api().get_opt("a").await.unwrap().is_none());
    // Other finalizers stay.
    let mut config = ConfigMap { metadata: crate::support::named("b"), ..ConfigMap::default() };
    config.metadata.finalizers = Some(vec!["example.com/other".to_owned()]);
    world.config_api().create(&Default::default(), &config).await.unwrap();
    eventually(|| log.len() == 3).await;
    world.delete("b").await;
    eventually(|| log.len() == 4).await;
    let only_other = |config: Option<&ConfigMap>| config.unwrap().finalizers() == ["example.com/other"];
    await_condition(world.config_api(), "b", only_other).await.unwrap();
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_counted() {
    let world = World::start().await;
    let config = world.create("a").await;
    let recorder = Recorder::new(world.client.clone(), "example.com/test".into());
    let event = |action: &str| Event {
        type_: EventType::Warning,
        reason: "TooLarge".to_owned(),
        note: Some("it is too large".to_owned()),
        action: action.to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event("Check"), &config.object_ref(&())).await.unwrap();
    }
    recorder.publish(&event("Write"), &config.object_ref(&())).await.unwrap();
    let events: Api<KubernetesEvent> = Api::namespaced(world.client.clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(events.len(), 2, "one for each action");
    let check = events.iter().find(|event| event.action.as_deref() == Some("Check")).unwrap();
    assert_eq!(check.series.as_ref().unwrap().count, 2, "the third one is counted, and written later");
    assert_eq!(check.reporting_controller.as_deref(), Some("example.com/test"));
    assert_eq!(check.regarding.as_ref().unwrap().uid, config.uid());
}

#[tokio::test(start_paused = true)]
async fn conditions_are_waited_for() {
    let world = World::start().await;
    let created = await_condition(world.config_api(), "a", conditions::is_created());
    let (created, config) = tokio::join!(created, world.create("a"));
    assert_eq!(created.unwrap().unwrap().uid(), config.uid());
    let has_value = |config: Option<&ConfigMap>| config.is_some_and(|config| config.data.is_some());
    let both = conditions::is_created().and(has_value);
    let (changed, _) = tokio::join!(await_condition(world.config_api(), "a", both), world.set("a", "1"));
    assert_eq!(changed.unwrap().unwrap().data.unwrap()["value"], "1");
    let uid = config.uid().unwrap();
    let deleted = await_condition(world.config_api(), "a", conditions::is_deleted(&uid).or(has_value.not()));
    let (deleted, ()) = tokio::join!(deleted, world.delete("a"));
    assert!(deleted.unwrap().is_none());
}
