//! WATCH: the events of a watcher, and its starting point.

use std::time::Duration;

use kube_embedded_apiserver::watch_cache::{RevisionOption, Scope, WatchRequest};
use tokio::time::Instant;

use super::on_every_reader;
use super::world::{Reader, World, at, labelled, namespace, object, on_node, v};

on_every_reader!(
    create_update_and_delete_are_events,
    objects_that_start_or_stop_matching_are_added_or_deleted,
    a_delete_event_has_the_last_content_at_its_own_version,
    resuming_neither_loses_nor_repeats_events,
    a_watch_from_zero_without_state_starts_now,
    a_watch_from_now_starts_now,
    a_watch_from_a_future_version_skips_earlier_changes,
    watches_are_limited_to_their_scope,
    a_field_selector_follows_moves,
    a_backlog_is_delivered_completely,
    watchers_agree,
    a_watch_ends_at_its_timeout,
    a_watch_without_a_timeout_ends_within_an_hour,
    a_compacted_version_is_an_error_in_the_stream,
    a_dropped_watch_is_removed_from_the_cache,
    a_recreated_object_is_added_again,
    cut_watches_end,
    stalled_watches_yield_nothing,
    watches_end_with_their_cache,
);

#[cfg(feature = "etcd")]
super::on_etcd!(
    etcd_stored, Stored:
        create_update_and_delete_are_events,
        a_delete_event_has_the_last_content_at_its_own_version,
        a_watch_from_zero_without_state_starts_now,
        a_watch_from_now_starts_now,
        a_watch_from_a_future_version_skips_earlier_changes,
        a_compacted_version_is_an_error_in_the_stream,
        a_dropped_watch_is_removed_from_the_cache,
        cut_watches_end,
        stalled_watches_yield_nothing,
        watches_end_with_their_cache;
    etcd_cached, Cached:
        create_update_and_delete_are_events,
        objects_that_start_or_stop_matching_are_added_or_deleted,
        a_delete_event_has_the_last_content_at_its_own_version,
        resuming_neither_loses_nor_repeats_events,
        a_watch_from_zero_without_state_starts_now,
        a_watch_from_now_starts_now,
        a_watch_from_a_future_version_skips_earlier_changes,
        watches_are_limited_to_their_scope,
        a_field_selector_follows_moves,
        a_backlog_is_delivered_completely,
        watchers_agree,
        a_compacted_version_is_an_error_in_the_stream,
        a_dropped_watch_is_removed_from_the_cache,
        a_recreated_object_is_added_again,
        cut_watches_end,
        stalled_watches_yield_nothing,
        watches_end_with_their_cache;
);

fn from(revision: u64) -> WatchRequest {
    WatchRequest { revision: at(revision), ..WatchRequest::default() }
}

async fn create_update_and_delete_are_events(world: World) {
    let start = world.current().await;
    let mut watch = world.watch(from(start)).await;
    let created = world.create("a/x", v(1)).await;
    let updated = world.update("a/x", v(2)).await;
    let deleted = world.delete("a/x").await;
    assert_eq!(watch.text().await, format!("ADDED a/x @{created} v1"));
    assert_eq!(watch.text().await, format!("MODIFIED a/x @{updated} v2"));
    assert_eq!(watch.text().await, format!("DELETED a/x @{deleted} v2"));
    watch.assert_quiet().await;
}

async fn objects_that_start_or_stop_matching_are_added_or_deleted(world: World) {
    let start = world.current().await;
    let request = WatchRequest { labels: "app=web".parse().unwrap(), ..from(start) };
    let mut watch = world.watch(request).await;
    let with = |app: &str, v| super::world::Spec { v, ..labelled("app", app) };
    world.create("a/x", with("db", 1)).await;
    let entered = world.update("a/x", with("web", 2)).await;
    let stayed = world.update("a/x", with("web", 3)).await;
    let left = world.update("a/x", with("db", 4)).await;
    world.update("a/x", with("db", 5)).await;
    let again = world.update("a/x", with("web", 6)).await;
    let deleted = world.delete("a/x").await;
    let expected = [
        format!("ADDED a/x @{entered} v2"),
        format!("MODIFIED a/x @{stayed} v3"),
        format!("DELETED a/x @{left} v3"),
        format!("ADDED a/x @{again} v6"),
        format!("DELETED a/x @{deleted} v6"),
    ];
    assert_eq!(watch.ready(), expected);
}

async fn a_delete_event_has_the_last_content_at_its_own_version(world: World) {
    let created = world.create("a/x", v(7)).await;
    let mut watch = world.watch(from(created)).await;
    let deleted = world.delete("a/x").await;
    let Some(kube_embedded_apiserver::watch_cache::WatchItem::Event(event)) = watch.next().await else {
        panic!("no event")
    };
    let frame: serde_json::Value = serde_json::from_slice(&event.frame(&super::world::head())).unwrap();
    assert_eq!(frame["type"], "DELETED");
    assert_eq!(frame["object"]["metadata"]["resourceVersion"], deleted.to_string());
    assert_eq!((&frame["object"]["kind"], &frame["object"]["spec"]["v"]), (&"Thing".into(), &7.into()));
}

async fn resuming_neither_loses_nor_repeats_events(world: World) {
    let start = world.current().await;
    let mut revisions = Vec::new();
    for n in 0..30 {
        revisions.push(world.create(&format!("a/{n}"), v(n)).await);
    }
    for resume in [start, revisions[0], revisions[14], revisions[29]] {
        let mut watch = world.watch(from(resume)).await;
        let seen = watch.ready();
        let expected = revisions.iter().enumerate().filter(|(_, r)| **r > resume);
        let expected: Vec<_> = expected.map(|(n, r)| format!("ADDED a/{n} @{r} v{n}")).collect();
        assert_eq!(seen, expected);
    }
}

async fn a_watch_from_zero_without_state_starts_now(world: World) {
    world.create("a/x", v(0)).await;
    let mut watch =
        world.watch(WatchRequest { revision: RevisionOption::Any, ..WatchRequest::default() }).await;
    watch.assert_quiet().await;
    let second = world.create("a/y", v(1)).await;
    assert_eq!(watch.text().await, format!("ADDED a/y @{second} v1"));
}

async fn a_watch_from_now_starts_now(world: World) {
    world.create("a/x", v(0)).await;
    let mut watch = world.watch(WatchRequest::default()).await;
    watch.assert_quiet().await;
    let second = world.create("a/y", v(1)).await;
    assert_eq!(watch.text().await, format!("ADDED a/y @{second} v1"));
}

async fn a_watch_from_a_future_version_skips_earlier_changes(world: World) {
    let start = world.current().await;
    let mut watch = world.watch(from(start + 2)).await;
    world.create("a/1", v(1)).await;
    world.create("a/2", v(2)).await;
    watch.assert_quiet().await;
    let third = world.create("a/3", v(3)).await;
    assert_eq!(watch.text().await, format!("ADDED a/3 @{third} v3"));
}

async fn watches_are_limited_to_their_scope(world: World) {
    let start = world.current().await;
    let scoped = |scope| WatchRequest { scope, ..from(start) };
    let mut all = world.watch(scoped(Scope::All)).await;
    let mut a = world.watch(scoped(namespace("a"))).await;
    let mut x = world.watch(scoped(object("a/x"))).await;
    let by_fields = WatchRequest { fields: "metadata.name=x".parse().unwrap(), ..scoped(Scope::All) };
    let mut named = world.watch(by_fields).await;
    let mut created = Vec::new();
    for path in ["a/x", "a/xy", "ab/x", "b/y"] {
        created.push(format!("ADDED {path} @{} v0", world.create(path, v(0)).await));
    }
    assert_eq!(all.ready(), created);
    assert_eq!(a.ready(), created[..2]);
    assert_eq!(x.ready(), created[..1]);
    assert_eq!(named.ready(), [&created[0][..], &created[2]]);
}

async fn a_field_selector_follows_moves(world: World) {
    let start = world.current().await;
    let node =
        |n: &str| WatchRequest { fields: format!("spec.nodeName={n}").parse().unwrap(), ..from(start) };
    let (mut n1, mut n2) = (world.watch(node("n1")).await, world.watch(node("n2")).await);
    let r1 = world.create("a/x", on_node("n1")).await;
    let r2 = world.update("a/x", on_node("n2")).await;
    assert_eq!(n1.ready(), [format!("ADDED a/x @{r1} v0"), format!("DELETED a/x @{r2} v0")]);
    assert_eq!(n2.ready(), [format!("ADDED a/x @{r2} v0")]);
}

async fn a_backlog_is_delivered_completely(world: World) {
    let start = world.current().await;
    let mut watch = world.watch(from(start)).await;
    for n in 0..5000 {
        world.create(&format!("a/{n}"), v(n)).await;
    }
    let seen = watch.ready();
    assert_eq!(seen.len(), 5000);
    assert_eq!(seen[4999], format!("ADDED a/4999 @{} v4999", start + 5000));
}

async fn watchers_agree(world: World) {
    let start = world.current().await;
    let mut early = world.watch(from(start)).await;
    let mut seen = Vec::new();
    for n in 0..200 {
        let path = format!("a/{}", n % 7);
        match world.storage.get(&super::world::key(&path)).await.unwrap() {
            Some(_) if n % 5 == 0 => drop(world.delete(&path).await),
            Some(_) => drop(world.update(&path, v(n)).await),
            None => drop(world.create(&path, v(n)).await),
        }
        if n % 3 == 0 {
            seen.extend(early.ready());
        }
    }
    seen.extend(early.ready());
    let mut late = world.watch(from(start)).await;
    assert_eq!(late.ready(), seen);
    assert_eq!(seen.len(), 200);
}

async fn a_watch_ends_at_its_timeout(world: World) {
    let start = Instant::now();
    let request = WatchRequest { timeout: Some(Duration::from_secs(7)), ..WatchRequest::default() };
    let mut watch = world.watch(request).await;
    assert_eq!(watch.text().await, "EOF");
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(watch.text().await, "EOF", "an ended stream stays ended");
}

async fn a_watch_without_a_timeout_ends_within_an_hour(world: World) {
    let start = Instant::now();
    let mut watch = world.watch(WatchRequest::default()).await;
    assert_eq!(watch.text().await, "EOF");
    assert!((1800..3600).contains(&start.elapsed().as_secs()));
}

async fn a_compacted_version_is_an_error_in_the_stream(world: World) {
    let mut watch = world.watch(from(1)).await;
    let text = watch.text().await;
    match world.reader {
        Reader::Stored => assert_eq!(text, "ERROR The resourceVersion for the provided watch is too old."),
        _ => assert_eq!(text, format!("ERROR too old resource version: 1 ({})", world.current().await)),
    }
    assert_eq!(watch.text().await, "EOF", "nothing follows an error");
}

async fn a_dropped_watch_is_removed_from_the_cache(world: World) {
    let watch = world.watch(WatchRequest::default()).await;
    assert_eq!(world.cache.watch_count(), 1);
    drop(watch);
    assert_eq!(world.cache.watch_count(), 0);
    world.create("a/x", v(0)).await;
}

async fn a_recreated_object_is_added_again(world: World) {
    let start = world.current().await;
    let mut watch = world.watch(from(start)).await;
    let first = world.create("a/x", v(1)).await;
    let deleted = world.delete("a/x").await;
    let second = world.create("a/x", v(2)).await;
    let expected = [
        format!("ADDED a/x @{first} v1"),
        format!("DELETED a/x @{deleted} v1"),
        format!("ADDED a/x @{second} v2"),
    ];
    assert_eq!(watch.ready(), expected);
}

async fn cut_watches_end(world: World) {
    let mut watch = world.watch(WatchRequest::default()).await;
    assert!(watch.ready().is_empty());
    let waiting = tokio::spawn(async move { watch.text().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.cache.cut_watches();
    assert_eq!(waiting.await.unwrap(), "EOF");
    let mut next = world.watch(WatchRequest::default()).await;
    let created = world.create("a/x", v(0)).await;
    assert_eq!(next.text().await, format!("ADDED a/x @{created} v0"), "a new watch works");
    world.cache.forget_window().await.unwrap();
    assert_eq!(next.text().await, "EOF");
}

async fn stalled_watches_yield_nothing(world: World) {
    let mut watch = world.watch(WatchRequest::default()).await;
    world.cache.stall_watches(true);
    let created = world.create("a/x", v(0)).await;
    watch.assert_quiet().await;
    let waiting = tokio::spawn(async move { watch.text().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.cache.stall_watches(false);
    assert_eq!(waiting.await.unwrap(), format!("ADDED a/x @{created} v0"));
}

async fn watches_end_with_their_cache(world: World) {
    let mut watch = world.watch(WatchRequest::default()).await;
    assert!(watch.ready().is_empty());
    drop(world);
    assert_eq!(watch.ready(), ["EOF"]);
}
