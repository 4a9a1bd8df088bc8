//! Behaviour that only a cache has: catching up, initialization, snapshots, shared encodings.

use std::sync::Arc;
use std::time::Duration;

use kube_embedded_apiserver::watch_cache::{
    Format, ListRequest, ReadError, RevisionMatch, RevisionOption, WatchItem, WatchRequest,
};
use tokio::time::Instant;

use super::world::{Reader, Watch, World, at, head, labelled, paths, v};

async fn cached() -> World {
    World::new(Reader::Cached).await
}

async fn events(watch: &mut Watch, count: usize) -> Vec<kube_embedded_apiserver::watch_cache::WatchEvent> {
    let mut events = Vec::new();
    for _ in 0..count {
        match watch.next().await {
            Some(WatchItem::Event(event)) => events.push(event),
            other => panic!("{other:?}"),
        }
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_consistent_list_falls_back_to_the_store_when_the_cache_lags() {
    let world = cached().await;
    world.create("a/x", v(1)).await;
    world.cache.lag(true).await.unwrap();
    let current = world.create("a/y", v(2)).await;
    let start = Instant::now();
    let response = world.list(ListRequest::default()).await;
    assert_eq!((response.items.len(), response.revision, start.elapsed().as_secs()), (2, current, 3));
    let stale = world.list(ListRequest { revision: RevisionOption::Any, ..ListRequest::default() }).await;
    assert_eq!(
        (stale.items.len(), stale.revision),
        (1, current - 1),
        "any version is the state of the cache"
    );
    let too_new = ListRequest { revision: at(current), ..ListRequest::default() };
    assert!(matches!(world.list_error(too_new).await, ReadError::TooLarge { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_consistent_list_waits_for_a_cache_that_catches_up() {
    let world = cached().await;
    world.cache.lag(true).await.unwrap();
    let current = world.create("a/y", v(2)).await;
    let start = Instant::now();
    let request = ListRequest::default();
    let (response, _) = tokio::join!(world.cache.list(&request), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.cache.lag(false).await.unwrap();
    });
    assert_eq!((response.unwrap().revision, start.elapsed().as_secs()), (current, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_state_waits_for_the_latest_and_one_at_zero_does_not() {
    let world = cached().await;
    let old = world.create("a/x", v(1)).await;
    world.cache.lag(true).await.unwrap();
    let current = world.create("a/y", v(2)).await;
    let with_state = |revision| WatchRequest { revision, initial_events: true, ..WatchRequest::default() };
    let any = world.watch(with_state(RevisionOption::Any)).await.ready();
    assert_eq!(any, [format!("ADDED a/x @{old} v1")]);
    let latest = world.watch(with_state(RevisionOption::Unset)).await.ready();
    assert_eq!(latest[0], format!("ERROR Too large resource version: {current}, current: {old}"));
    let request = with_state(RevisionOption::Unset);
    let (watch, _) = tokio::join!(world.watch(request), async {
        world.cache.lag(false).await.unwrap();
    });
    assert_eq!(Watch(watch.0).ready().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_lags_too_far_reinitializes() {
    let world = World::with_window(Reader::Cached, 100).await;
    let mut watch = world.watch(WatchRequest::default()).await;
    world.cache.lag(true).await.unwrap();
    for n in 0..101 {
        world.create(&format!("a/{n}"), v(n)).await;
    }
    world.cache.lag(false).await.unwrap();
    assert_eq!(watch.text().await, "EOF");
    assert_eq!(
        world.list(ListRequest { revision: RevisionOption::Any, ..ListRequest::default() }).await.items.len(),
        101
    );
}

#[tokio::test(start_paused = true)]
async fn exact_reads_beyond_the_window_come_from_the_store() {
    let world = World::with_window(Reader::Cached, 100).await;
    let mut revisions = Vec::new();
    for n in 0..400 {
        revisions.push(world.create(&format!("a/{n:03}"), v(n)).await);
    }
    for (n, revision) in revisions.into_iter().enumerate() {
        let exact = ListRequest {
            revision: at(revision),
            revision_match: Some(RevisionMatch::Exact),
            ..ListRequest::default()
        };
        assert_eq!(world.list(exact).await.items.len(), n + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn reinitializing_ends_watches_and_empties_the_window_but_loses_no_object() {
    let world = cached().await;
    let first = world.create("a/x", v(1)).await;
    let mut watch = world.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    let second = world.create("a/y", v(2)).await;
    world.cache.forget_window().await.unwrap();
    assert_eq!(watch.ready(), ["EOF"], "without an error, and without the unread events");
    let mut resumed = world.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    assert_eq!(resumed.ready()[0], format!("ERROR too old resource version: {first} ({second})"));
    let mut again = world.watch(WatchRequest { revision: at(second), ..WatchRequest::default() }).await;
    let third = world.create("a/z", v(3)).await;
    assert_eq!(again.ready(), [format!("ADDED a/z @{third} v3")]);
    assert_eq!(world.list(ListRequest::default()).await.items.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_version_to_watch_from() {
    let world = World::with_window(Reader::Cached, 100).await;
    let start = world.current().await;
    let opens = |revision| {
        let request = WatchRequest { revision: at(revision), ..WatchRequest::default() };
        let world = &world;
        async move { world.watch(request).await.ready().first().is_none_or(|text| !text.starts_with("ERROR")) }
    };
    assert!(opens(start).await, "an empty window starts at the version of its initialization");
    assert!(!opens(start - 1).await);
    for n in 0..150 {
        world.create(&format!("a/{n}"), v(n)).await;
    }
    let oldest = start + 50;
    assert!(opens(oldest).await);
    assert!(!opens(oldest - 1).await, "the change after it was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_not_ready_returns_retry_after() {
    let world = cached().await;
    world.create_all(&["a/x", "a/y"]).await;
    let mut watch = world.watch(WatchRequest::default()).await;
    world.cache.make_unready("connection refused");
    assert!(!world.cache.is_ready());
    assert_eq!(watch.text().await, "EOF");
    tokio::time::advance(Duration::from_secs(30)).await;
    let error = world.list_error(ListRequest::default()).await;
    assert_eq!(error.to_string(), "storage is (re)initializing: connection refused");
    assert!(matches!(error, ReadError::NotReady { retry_after: 6, .. }), "{error:?}");
    let error = world.cache.watch(&WatchRequest::default()).await.unwrap_err();
    assert!(matches!(error, ReadError::NotReady { .. }));
    let page = world.list(ListRequest { limit: 1, ..ListRequest::default() }).await;
    assert_eq!(
        (paths(&page).len(), page.remaining),
        (1, Some(1)),
        "a page without selectors is cheap for the store"
    );
    let selected = ListRequest { limit: 1, labels: "app".parse().unwrap(), ..ListRequest::default() };
    assert!(matches!(world.list_error(selected).await, ReadError::NotReady { .. }));
    for revision in [RevisionOption::Unset, RevisionOption::Any, at(1)] {
        assert!(world.get("a/x", revision).await.unwrap().is_some(), "one object is read from the store");
    }
    world.cache.forget_window().await.unwrap();
    assert_eq!(world.list(ListRequest::default()).await.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_encoded_once_for_all_watchers() {
    let world = cached().await;
    let start = world.current().await;
    let request = WatchRequest { revision: at(start), ..WatchRequest::default() };
    let (mut one, mut two) = (world.watch(request.clone()).await, world.watch(request).await);
    world.create("a/x", labelled("app", "web")).await;
    let (a, b) = (events(&mut one, 1).await.remove(0), events(&mut two, 1).await.remove(0));
    assert_eq!(a.frame(&head()).as_ptr(), b.frame(&head()).as_ptr(), "the same allocation");
    let table = Format::new("table");
    let first = a.encoded(&table, || "a table".into());
    let second = b.encoded(&table, || unreachable!("encoded twice"));
    assert_eq!(first, second);
    let text = String::from_utf8(a.frame(&head()).to_vec()).unwrap();
    assert!(
        text.starts_with(r#"{"type":"ADDED","object":{"kind":"Thing","apiVersion":"v1","metadata":{"#),
        "{text}"
    );
    assert!(text.ends_with("}}\n") && text.matches('\n').count() == 1);
}

#[tokio::test(start_paused = true)]
async fn the_type_a_watcher_sees_is_part_of_the_encoding() {
    let world = cached().await;
    world.create("a/x", labelled("app", "db")).await;
    let all = WatchRequest { revision: at(world.current().await), ..WatchRequest::default() };
    let web = WatchRequest { labels: "app=web".parse().unwrap(), ..all.clone() };
    let (mut all, mut web) = (world.watch(all).await, world.watch(web).await);
    world.update("a/x", labelled("app", "web")).await;
    let (a, b) = (events(&mut all, 1).await.remove(0), events(&mut web, 1).await.remove(0));
    assert!(a.frame(&head()).starts_with(br#"{"type":"MODIFIED""#));
    assert!(b.frame(&head()).starts_with(br#"{"type":"ADDED""#));
}

#[tokio::test(start_paused = true)]
async fn encodings_do_not_outlive_the_fan_out() {
    let world = cached().await;
    let request = WatchRequest { revision: at(world.current().await), ..WatchRequest::default() };
    let mut watch = world.watch(request).await;
    world.create("a/x", v(0)).await;
    let event = events(&mut watch, 1).await.remove(0);
    let before = event.frame(&head());
    for n in 1..200 {
        world.update("a/x", v(n)).await;
    }
    let after = event.frame(&head());
    assert_eq!(before, after);
    assert_ne!(before.as_ptr(), after.as_ptr(), "encoded again, because the encoding was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_pending_watch_is_woken_by_changes_and_by_its_end() {
    let world = Arc::new(cached().await);
    let mut watch = world.watch(WatchRequest::default()).await;
    let waiting = tokio::spawn(async move {
        let first = watch.text().await;
        (first, watch.text().await)
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let created = world.create("a/x", v(0)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.cache.cut_watches();
    assert_eq!(waiting.await.unwrap(), (format!("ADDED a/x @{created} v0"), "EOF".to_owned()));
}
