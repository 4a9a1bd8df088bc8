//! Bookmarks: when they are sent, and with which version.

use std::time::Duration;

use kube_embedded_apiserver::watch_cache::{RevisionOption, WatchRequest};
use tokio::time::Instant;

use super::world::{Reader, Watch, World, at, labelled, v};

fn with_bookmarks(revision: u64) -> WatchRequest {
    WatchRequest { revision: at(revision), allow_bookmarks: true, ..WatchRequest::default() }
}

async fn timed(watch: &mut Watch, start: Instant) -> (u64, String) {
    let text = watch.text().await;
    (start.elapsed().as_secs(), text)
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_every_minute_and_advance_with_other_resources() {
    let world = World::new(Reader::Cached).await;
    let start = Instant::now();
    let mut watch = world.watch(with_bookmarks(world.current().await)).await;
    let mut last = 0;
    for minute in 1..=5 {
        last = world.write_elsewhere().await;
        assert_eq!(timed(&mut watch, start).await, (60 * minute, format!("BOOKMARK @{last}")));
    }
    assert_eq!(timed(&mut watch, start).await, (360, format!("BOOKMARK @{last}")), "also without changes");
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_is_sent_shortly_before_the_end() {
    let world = World::new(Reader::Cached).await;
    let start = Instant::now();
    let request =
        WatchRequest { timeout: Some(Duration::from_secs(5)), ..with_bookmarks(world.current().await) };
    let mut watch = world.watch(request).await;
    let created = world.create("a/x", v(1)).await;
    assert_eq!(timed(&mut watch, start).await, (0, format!("ADDED a/x @{created} v1")));
    assert_eq!(
        timed(&mut watch, start).await,
        (3, format!("BOOKMARK @{created}")),
        "a bookmark may have the version of the last event"
    );
    assert_eq!(timed(&mut watch, start).await, (5, "EOF".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_at_the_starting_version_is_not_sent() {
    let world = World::new(Reader::Cached).await;
    world.create("a/x", v(1)).await;
    let request =
        WatchRequest { timeout: Some(Duration::from_secs(200)), ..with_bookmarks(world.current().await) };
    let mut watch = world.watch(request).await;
    assert_eq!(watch.text().await, "EOF", "an idle watch at its starting version gets none");
    let fresh = WatchRequest {
        revision: RevisionOption::Unset,
        initial_events: true,
        mark_initial_end: true,
        timeout: Some(Duration::from_secs(200)),
        ..with_bookmarks(0)
    };
    let mut watch = world.watch(fresh).await;
    let current = world.current().await;
    assert_eq!(watch.text().await, format!("ADDED a/x @{current} v1"));
    assert_eq!(
        watch.text().await,
        format!("BOOKMARK @{current} end"),
        "but the end of the initial state is always marked"
    );
    assert_eq!(watch.text().await, "EOF");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_not_sent_unless_allowed() {
    for reader in [Reader::Cached, Reader::Stored] {
        let world = World::new(reader).await;
        let timeout = Some(Duration::from_secs(300));
        let allowed = reader == Reader::Stored; // the store itself sends none, allowed or not
        let request =
            WatchRequest { allow_bookmarks: allowed, timeout, ..with_bookmarks(world.current().await) };
        let mut watch = world.watch(request).await;
        world.write_elsewhere().await;
        assert_eq!(watch.text().await, "EOF");
    }
}

#[tokio::test(start_paused = true)]
async fn events_precede_the_bookmark_that_covers_them() {
    let world = World::new(Reader::Cached).await;
    let mut watch = world.watch(with_bookmarks(world.current().await)).await;
    assert!(watch.ready().is_empty());
    let mut expected = Vec::new();
    for n in 0..250 {
        expected.push(format!("ADDED a/{n} @{} v{n}", world.create(&format!("a/{n}"), v(n)).await));
    }
    tokio::time::advance(Duration::from_secs(90)).await;
    expected.push(format!("BOOKMARK @{}", world.current().await));
    assert_eq!(watch.ready(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_selective_watch_can_resume_at_its_bookmark() {
    let world = World::new(Reader::Cached).await;
    let rare = |revision| WatchRequest { labels: "app=rare".parse().unwrap(), ..with_bookmarks(revision) };
    let mut watch = world.watch(rare(world.current().await)).await;
    world.create("a/x", v(0)).await;
    for _ in 0..3 {
        for n in 0..500 {
            world.update("a/x", v(n)).await;
        }
        tokio::time::advance(Duration::from_secs(30)).await;
    }
    let mark = world.current().await;
    assert_eq!(watch.text().await, format!("BOOKMARK @{mark}"));
    drop(watch);
    let entered = world.update("a/x", labelled("app", "rare")).await;
    let mut resumed = world.watch(rare(mark)).await;
    assert_eq!(resumed.text().await, format!("ADDED a/x @{entered} v0"));
}

#[tokio::test(start_paused = true)]
async fn a_lagging_cache_sends_bookmarks_only_for_applied_changes() {
    let world = World::new(Reader::Cached).await;
    let start = world.current().await;
    let mut watch = world.watch(with_bookmarks(start)).await;
    let seen = world.create("a/x", v(1)).await;
    assert_eq!(watch.text().await, format!("ADDED a/x @{seen} v1"));
    world.cache.lag(true).await.unwrap();
    let unseen = world.create("a/y", v(2)).await;
    world.write_elsewhere().await;
    assert_eq!(watch.text().await, format!("BOOKMARK @{seen}"));
    world.cache.lag(false).await.unwrap();
    assert_eq!(watch.text().await, format!("ADDED a/y @{unseen} v2"));
}
