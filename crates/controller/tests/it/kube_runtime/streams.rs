//! Watchers, stores and filters.

use crate::support::{NAMESPACE, World, named, secs, settle};
use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::DynamicObject};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer_controller::kube_runtime::{
    Predicate, WatchStreamExt, predicates,
    reflector::{self, ObjectRef},
    watcher::{self, Event},
};
use std::pin::pin;

/// The next `count` events as texts. A watch that is cut may also report a failure.
async fn texts<K: ResourceExt>(
    events: &mut (impl Stream<Item = watcher::Result<Event<K>>> + Unpin),
    count: usize,
) -> Vec<String> {
    let succeeded = events.filter_map(|event| std::future::ready(event.ok()));
    succeeded.take(count).map(|event| event.to_string()).collect().await
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_watches_and_resumes() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    let configs = [
        watcher::Config::default(),
        watcher::Config::default().page_size(2),
        watcher::Config::default().any_semantic(),
        watcher::Config::default().streaming_lists(),
    ];
    for (round, config) in configs.into_iter().enumerate() {
        let mut events = watcher::watcher(world.config_api(), config.clone()).boxed();
        let first = texts(&mut events, 5).await;
        assert_eq!(first, ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"], "{config:?}");
        world.set("b", &round.to_string()).await;
        assert_eq!(texts(&mut events, 1).await, ["Apply(b)"]);
        world.server.faults().cut_watches(None);
        world.create("d").await;
        assert_eq!(texts(&mut events, 1).await, ["Apply(d)"], "it resumes where the watch broke");
        world.delete("d").await;
        assert_eq!(texts(&mut events, 1).await, ["Delete(d)"]);
        // The server cannot continue at the version of a watch that broke.
        world.server.faults().cut_watches(None);
        world.set("a", &round.to_string()).await;
        world.server.faults().compact().await.unwrap();
        world.server.faults().forget_window(None).await.unwrap();
        assert_eq!(texts(&mut events, 5).await, first, "it lists again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_backs_off() {
    let world = World::start().await;
    world.server.faults().add(FaultRule::new(Fault::Unavailable).verb(Verb::List).times(1_000_000));
    let events = watcher::watcher(world.config_api(), watcher::Config::default());
    let mut failures = pin!(events.filter(|event| std::future::ready(event.is_err())));
    let start = tokio::time::Instant::now();
    for _ in 0..10 {
        assert!(matches!(failures.next().await, Some(Err(watcher::Error::InitialListFailed(_)))));
    }
    assert!(start.elapsed() > secs(100), "{:?}", start.elapsed());
    world.server.faults().clear();
    assert!(failures.next().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_store_packs_objects_and_decodes_them_when_they_are_read() {
    let world = World::start().await;
    world.create("a").await;
    world.set("a", "1").await;
    world.create("b").await;
    let (reader, writer) = reflector::store::<ConfigMap>();
    assert!(reader.wait_until_ready().now_or_never().is_none());
    let events = watcher::watcher(world.config_api(), watcher::Config::default());
    let applied = events.default_backoff().reflect(writer).applied_objects();
    let mut applied = pin!(applied);
    assert_eq!(applied.try_next().await.unwrap().unwrap().name_any(), "a");
    assert!(reader.is_empty(), "a list is visible when it is complete");
    assert_eq!(applied.try_next().await.unwrap().unwrap().name_any(), "b");
    world.create("c").await;
    assert_eq!(applied.try_next().await.unwrap().unwrap().name_any(), "c");
    reader.wait_until_ready().await.unwrap();
    assert_eq!(reader.len(), 3);
    let a = reader.get(&ObjectRef::new("a").within(NAMESPACE)).unwrap();
    assert_eq!(a.data.as_ref().unwrap()["value"], "1");
    assert!(reader.get(&ObjectRef::new("a").within("other")).is_none());
    assert_eq!(reader.find(|config| config.name_any().as_str() > "b").unwrap().name_any(), "c");
    assert_eq!(reader.state_filter(|config| config.data.is_none()).len(), 2);
    let mut names: Vec<_> = reader.state().iter().map(|config| config.name_any()).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    world.delete("c").await;
    let deleted = async {
        while reader.len() > 2 {
            settle().await
        }
    };
    tokio::select! {
        _ = applied.next() => unreachable!("deleted objects are not applied"),
        () = deleted => {}
    }
}

#[test]
fn a_store_keeps_objects_that_cannot_be_packed() {
    let (reader, mut writer) = reflector::store::<ConfigMap>();
    // No resource version, as in tests of users.
    let config = ConfigMap { metadata: named("a"), ..ConfigMap::default() };
    writer.apply_watcher_event(&Event::Apply(config.clone()));
    assert_eq!(*reader.get(&ObjectRef::from_obj(&config)).unwrap(), config);
    writer.apply_watcher_event(&Event::Delete(config));
    assert!(reader.is_empty());
    drop(writer);
    let error = reader.wait_until_ready().now_or_never().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the store was not filled, because its writer was dropped");
}

fn config(name: &str, value: &str) -> ConfigMap {
    let data = Some([("value".to_owned(), value.to_owned())].into());
    ConfigMap { metadata: named(name), data, ..ConfigMap::default() }
}

#[test]
fn a_subscriber_receives_the_newest_state_of_each_object_once() {
    let (_, mut writer) = reflector::store_shared::<ConfigMap>(1);
    let mut early = writer.subscribe().unwrap();
    for event in [Event::Init, Event::InitApply(config("a", "1")), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    for value in ["2", "3"] {
        writer.apply_watcher_event(&Event::Apply(config("b", value)));
    }
    writer.apply_watcher_event(&Event::Apply(config("c", "4")));
    writer.apply_watcher_event(&Event::Delete(config("c", "4")));
    let mut copy = early.clone();
    let mut late = writer.subscribe().unwrap();
    drop(writer);
    for subscriber in [&mut early, &mut copy] {
        let values: Vec<_> = subscriber
            .map(|config| config.data.as_ref().unwrap()["value"].clone())
            .collect()
            .now_or_never()
            .expect("the stream ends with the writer");
        assert_eq!(values, ["1", "3"]);
    }
    assert!(late.next().now_or_never().unwrap().is_none());
    assert!(reflector::store::<ConfigMap>().1.subscribe().is_none(), "the store is not shared");
}

#[tokio::test(start_paused = true)]
async fn objects_with_an_unchanged_property_are_left_out() {
    let labelled = |name: &str, label: &str, value: &str| {
        let mut config = config(name, value);
        config.labels_mut().insert("app".to_owned(), label.to_owned());
        config
    };
    let objects = stream::iter([
        Ok(labelled("a", "x", "1")),
        Ok(labelled("a", "x", "2")),
        Ok(labelled("b", "x", "3")),
        Err(watcher::Error::NoResourceVersion),
        Ok(labelled("a", "y", "4")),
    ]);
    let changed =
        objects.predicate_filter(predicates::labels.combine(predicates::annotations), Default::default());
    let seen: Vec<_> = changed
        .map(|object| object.map(|object| object.data.unwrap()["value"].clone()).unwrap_or_default())
        .collect()
        .await;
    assert_eq!(seen, ["1", "3", "", "4"]);
    // Objects without the property are not left out; a fallback gives them one.
    let objects = || stream::iter([Ok(config("a", "1")), Ok(config("a", "2"))]);
    assert_eq!(objects().predicate_filter(predicates::generation, Default::default()).count().await, 2);
    let either = predicates::generation.fallback(predicates::labels);
    assert_eq!(objects().predicate_filter(either, Default::default()).count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_a_type_that_is_known_at_run_time() {
    let world = World::start().await;
    world.create("a").await;
    let resource = kube::api::ApiResource::erase::<ConfigMap>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), NAMESPACE, &resource);
    let mut objects = pin!(watcher::watcher(api, watcher::Config::default()).touched_objects());
    assert_eq!(objects.try_next().await.unwrap().unwrap().name_any(), "a");
    world.delete("a").await;
    assert_eq!(objects.try_next().await.unwrap().unwrap().name_any(), "a", "also when it is deleted");
}
