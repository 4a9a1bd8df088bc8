//! Slow and stalled watchers, and their effect on others.

use std::time::Duration;

use kube_embedded_apiserver::watch_cache::{RevisionOption, WatchRequest};

use super::world::{Reader, World, at, v};

async fn small_window() -> World {
    World::with_window(Reader::Cached, 100).await
}

async fn churn(world: &World, writes: u64) {
    for n in 0..writes {
        world.update("a/x", v(n)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_is_closed_and_others_are_not_affected() {
    let world = small_window().await;
    let start = world.create("a/x", v(0)).await;
    let request = WatchRequest { revision: at(start), ..WatchRequest::default() };
    let (mut slow, mut fast) = (world.watch(request.clone()).await, world.watch(request).await);
    let mut seen = 0;
    for _ in 0..10 {
        churn(&world, 50).await;
        seen += fast.ready().len();
    }
    assert_eq!(seen, 500);
    assert_eq!(world.cache.terminated_count(), 1);
    assert_eq!(slow.ready(), ["EOF"], "no event and no error");
}

#[tokio::test(start_paused = true)]
async fn an_unaffected_watcher_is_never_too_slow() {
    let world = small_window().await;
    world.create("a/x", v(0)).await;
    let request = WatchRequest { labels: "app=other".parse().unwrap(), ..WatchRequest::default() };
    let mut idle = world.watch(request).await;
    assert!(idle.ready().is_empty());
    churn(&world, 1000).await;
    assert_eq!(world.cache.terminated_count(), 0);
    let created = world.create("a/y", super::world::labelled("app", "other")).await;
    assert_eq!(idle.ready(), [format!("ADDED a/y @{created} v0")]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_reads_its_initial_state_slowly_is_closed() {
    let world = small_window().await;
    world.create_all(&["a/x", "a/y", "a/z"]).await;
    let request =
        WatchRequest { revision: RevisionOption::Unset, initial_events: true, ..WatchRequest::default() };
    let mut slow = world.watch(request).await;
    assert!(slow.text().await.starts_with("ADDED a/x"));
    churn(&world, 200).await;
    let rest = slow.ready();
    assert_eq!(rest.last().unwrap(), "EOF");
    assert!(rest.iter().all(|text| text.starts_with("ADDED") || text == "EOF"), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_window_grows_during_a_burst_and_no_watcher_is_closed() {
    let world = World::new(Reader::Cached).await;
    let start = world.create("a/x", v(0)).await;
    let mut watch = world.watch(WatchRequest { revision: at(start), ..WatchRequest::default() }).await;
    churn(&world, 3000).await;
    assert_eq!(watch.ready().len(), 3000);
    assert_eq!(world.cache.terminated_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_yields_nothing_until_it_is_resumed() {
    let world = World::new(Reader::Cached).await;
    let start = world.create("a/x", v(0)).await;
    let live = WatchRequest { revision: at(start), ..WatchRequest::default() };
    let with_state =
        WatchRequest { revision: RevisionOption::Any, initial_events: true, ..WatchRequest::default() };
    let (mut live, mut with_state) = (world.watch(live).await, world.watch(with_state).await);
    world.cache.stall_watches(true);
    let updated = world.update("a/x", v(1)).await;
    live.assert_quiet().await;
    with_state.assert_quiet().await;
    let waiting = tokio::spawn(async move { live.text().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.cache.stall_watches(false);
    assert_eq!(waiting.await.unwrap(), format!("MODIFIED a/x @{updated} v1"));
    assert_eq!(with_state.ready().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_ends_at_its_timeout_and_when_cut() {
    let world = World::new(Reader::Cached).await;
    world.cache.stall_watches(true);
    let start = tokio::time::Instant::now();
    let request = WatchRequest {
        timeout: Some(Duration::from_secs(9)),
        allow_bookmarks: true,
        ..WatchRequest::default()
    };
    let (mut one, mut two) = (world.watch(request.clone()).await, world.watch(request).await);
    assert!(one.ready().is_empty());
    world.cache.cut_watches();
    assert_eq!(one.ready(), ["EOF"]);
    drop(one);
    world.cache.stall_watches(true);
    assert_eq!(two.text().await, "EOF");
    assert!(start.elapsed().as_secs() <= 9);
}
