//! Watches that begin with the initial state: all starting points, and the bookmark at the end of the state.

use kube_embedded_apiserver::watch_cache::{RevisionOption, Scope, WatchRequest};

use super::on_every_reader;
use super::world::{World, at, labelled, namespace, object, v};

on_every_reader!(
    the_start_matrix,
    the_initial_state_is_in_key_order_with_object_versions,
    the_end_of_the_initial_state_has_the_global_version,
    the_initial_state_of_one_name,
    the_initial_state_is_filtered,
    an_empty_initial_state_has_an_end_mark,
    an_initial_state_at_a_future_version_is_an_error_in_the_stream,
    changes_during_the_initial_state_follow_its_end,
    a_large_initial_state_is_complete,
    a_slowly_read_initial_state_ends_at_its_timeout,
);

#[cfg(feature = "etcd")]
super::on_etcd!(
    etcd_stored, Stored:
        the_initial_state_is_in_key_order_with_object_versions,
        the_end_of_the_initial_state_has_the_global_version,
        the_initial_state_of_one_name,
        the_initial_state_is_filtered,
        an_empty_initial_state_has_an_end_mark,
        an_initial_state_at_a_future_version_is_an_error_in_the_stream,
        a_large_initial_state_is_complete;
    etcd_cached, Cached:
        the_start_matrix,
        the_initial_state_is_in_key_order_with_object_versions,
        the_end_of_the_initial_state_has_the_global_version,
        the_initial_state_of_one_name,
        the_initial_state_is_filtered,
        an_empty_initial_state_has_an_end_mark,
        an_initial_state_at_a_future_version_is_an_error_in_the_stream,
        changes_during_the_initial_state_follow_its_end,
        a_large_initial_state_is_complete;
);

fn state(revision: RevisionOption, mark: bool) -> WatchRequest {
    WatchRequest {
        revision,
        initial_events: true,
        mark_initial_end: mark,
        allow_bookmarks: mark,
        ..WatchRequest::default()
    }
}

/// Version {unset, 0, 1, current} × bookmarks × initial events.
async fn the_start_matrix(world: World) {
    let first = world.create("a/x", v(1)).await;
    let current = world.create("a/y", v(2)).await;
    let objects = [format!("ADDED a/x @{first} v1"), format!("ADDED a/y @{current} v2")];
    for allow_bookmarks in [false, true] {
        for initial_events in [false, true] {
            for revision in [RevisionOption::Unset, RevisionOption::Any, at(1), at(first), at(current)] {
                let request = WatchRequest {
                    revision,
                    allow_bookmarks,
                    initial_events,
                    mark_initial_end: initial_events && allow_bookmarks,
                    ..WatchRequest::default()
                };
                let mut expected = Vec::new();
                match revision {
                    _ if initial_events => expected.extend_from_slice(&objects),
                    RevisionOption::At(1) => {} // an error, checked below
                    RevisionOption::At(n) if n == first => expected.push(objects[1].clone()),
                    _ => {}
                }
                if initial_events && allow_bookmarks {
                    expected.push(format!("BOOKMARK @{current} end"));
                }
                let seen = world.watch(request).await.ready();
                if revision == at(1) && !initial_events {
                    assert!(seen[0].starts_with("ERROR"), "{seen:?}");
                } else {
                    assert_eq!(
                        seen, expected,
                        "{revision:?} initial {initial_events} bookmarks {allow_bookmarks}"
                    );
                }
            }
        }
    }
}

async fn the_initial_state_is_in_key_order_with_object_versions(world: World) {
    let b = world.create("b/1", v(1)).await;
    let a = world.create("a/1", v(2)).await;
    let b = (b, world.update("b/1", v(3)).await).1;
    let mut watch = world.watch(state(RevisionOption::Unset, false)).await;
    assert_eq!(watch.ready(), [format!("ADDED a/1 @{a} v2"), format!("ADDED b/1 @{b} v3")]);
}

async fn the_end_of_the_initial_state_has_the_global_version(world: World) {
    let own = world.create("a/1", v(1)).await;
    let global = world.write_elsewhere().await;
    let mut watch = world.watch(state(RevisionOption::Unset, true)).await;
    assert_eq!(watch.ready(), [format!("ADDED a/1 @{own} v1"), format!("BOOKMARK @{global} end")]);
    let next = world.update("a/1", v(2)).await;
    assert_eq!(watch.text().await, format!("MODIFIED a/1 @{next} v2"));
}

async fn the_initial_state_of_one_name(world: World) {
    let x = world.create("a/x", v(1)).await;
    let current = world.create("a/xy", v(2)).await;
    for scope in [object("a/x"), namespace("a")] {
        let fields = if scope == namespace("a") { "metadata.name=x" } else { "" };
        let request =
            WatchRequest { scope, fields: fields.parse().unwrap(), ..state(RevisionOption::Unset, true) };
        let mut watch = world.watch(request).await;
        assert_eq!(watch.ready(), [format!("ADDED a/x @{x} v1"), format!("BOOKMARK @{current} end")]);
    }
}

async fn the_initial_state_is_filtered(world: World) {
    world.create("a/1", labelled("app", "db")).await;
    let web = world.create("a/2", labelled("app", "web")).await;
    let request = WatchRequest { labels: "app=web".parse().unwrap(), ..state(RevisionOption::Any, false) };
    assert_eq!(world.watch(request).await.ready(), [format!("ADDED a/2 @{web} v0")]);
}

async fn an_empty_initial_state_has_an_end_mark(world: World) {
    let current = world.write_elsewhere().await;
    let mut watch = world.watch(state(RevisionOption::Unset, true)).await;
    assert_eq!(watch.ready(), [format!("BOOKMARK @{current} end")]);
    watch.assert_quiet().await;
}

async fn an_initial_state_at_a_future_version_is_an_error_in_the_stream(world: World) {
    let current = world.create("a/x", v(1)).await;
    let mut watch = world.watch(state(at(current + 9), true)).await;
    let expected = format!("ERROR Too large resource version: {}, current: {current}", current + 9);
    assert_eq!((watch.text().await, watch.text().await), (expected, "EOF".to_owned()));
}

async fn changes_during_the_initial_state_follow_its_end(world: World) {
    let (x, y) = (world.create("a/x", v(1)).await, world.create("a/y", v(1)).await);
    let mut watch = world.watch(state(RevisionOption::Unset, true)).await;
    assert_eq!(watch.text().await, format!("ADDED a/x @{x} v1"));
    let deleted = world.delete("a/y").await;
    let created = world.create("a/z", v(2)).await;
    let expected = [
        format!("ADDED a/y @{y} v1"),
        format!("BOOKMARK @{y} end"),
        format!("DELETED a/y @{deleted} v1"),
        format!("ADDED a/z @{created} v2"),
    ];
    assert_eq!(watch.ready(), expected);
}

async fn a_large_initial_state_is_complete(world: World) {
    for n in 0..1500 {
        world.create(&format!("ns{}/{n:05}", n % 3), v(n)).await;
    }
    let mut all = world.watch(state(RevisionOption::Unset, true)).await;
    assert_eq!(all.ready().len(), 1501);
    let one = WatchRequest { scope: namespace("ns1"), ..state(RevisionOption::Any, true) };
    assert_eq!(world.watch(one).await.ready().len(), 501);
    let none = WatchRequest {
        labels: "app".parse().unwrap(),
        scope: Scope::All,
        ..state(RevisionOption::Any, true)
    };
    assert_eq!(world.watch(none).await.ready().len(), 1);
}

async fn a_slowly_read_initial_state_ends_at_its_timeout(world: World) {
    world.create_all(&["a/x", "a/y"]).await;
    let timeout = Some(std::time::Duration::from_secs(5));
    let mut watch = world.watch(WatchRequest { timeout, ..state(RevisionOption::Unset, true) }).await;
    assert!(watch.text().await.starts_with("ADDED a/x"));
    tokio::time::advance(std::time::Duration::from_secs(6)).await;
    assert_eq!(watch.text().await, "EOF");
}
