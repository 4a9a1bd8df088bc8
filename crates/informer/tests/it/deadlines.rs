//! Deadlines of requests: each is configured in one place, and none is a constant of a source.

use crate::support::{Errors, cached, object, pass, secs, settle, source, started, watched};
use futures_util::{StreamExt, stream};
use kube_informer::{
    BoxFuture, Deadlines, InformerBuilder, ListMeta, ListOptions, ListPart, ListStream, ListWatch,
    ListWatchError, SharedInformer, WatchOptions, WatchStream,
    testing::{FakeSource, Fault, Request},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

fn informer(source: &FakeSource, change: impl FnOnce(&mut Deadlines)) -> SharedInformer<Value> {
    source.informer(|builder| builder.deadlines(change))
}

#[tokio::test(start_paused = true)]
async fn a_list_may_take_long_to_begin() {
    for (delay, deadline) in [(secs(40), None), (secs(250), Some(secs(300)))] {
        let source = source();
        source.put(object("a", 1));
        for _ in 0..1000 {
            source.fail_list(Fault::Delay(delay));
        }
        let configure = |builder: InformerBuilder| match deadline {
            Some(deadline) => builder.deadlines(|deadlines| deadlines.list_response = deadline),
            None => builder,
        };
        let informer = source.informer::<Value>(|builder| configure(builder.streaming_list(false)));
        informer.start();
        informer.synced(secs(3600)).await.unwrap();
        assert_eq!(cached(&informer), ["a@101"], "{delay:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_begin_is_given_up() {
    let source = source();
    source.fail_list(Fault::Silence);
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| {
        errors.hook(builder).streaming_list(false).deadlines(|deadlines| deadlines.list_response = secs(7))
    });
    informer.start();
    pass(6).await;
    assert_eq!(errors.take(), [""; 0]);
    pass(5).await;
    assert!(errors.take()[0].contains("no response within 7s"));
    assert!(informer.status().is_live(), "{}", informer.status());
}

/// Lists one part of a list and then nothing. Has only the methods that a source must have.
struct Stuck(FakeSource);

impl ListWatch for Stuck {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(async {
            let meta = ListPart::Meta(ListMeta { resource_version: Some(7.into()), ..ListMeta::default() });
            Ok(stream::iter([Ok(meta)]).chain(stream::pending()).boxed())
        })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async move { self.0.source(None).watch(options).await })
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_stops_in_the_middle_is_given_up() {
    let fake = source();
    let errors = Errors::default();
    let builder = InformerBuilder::new(Arc::clone(fake.origin())).seed(1);
    let stuck = Arc::new(Stuck(fake));
    let informer = errors
        .hook(builder)
        .deadlines(|deadlines| deadlines.list_item = secs(9))
        .build::<Value>(move |_| Arc::clone(&stuck) as Arc<dyn ListWatch>);
    informer.start();
    pass(8).await;
    assert_eq!(errors.take(), [""; 0]);
    pass(2).await;
    assert!(errors.take()[0].contains("no item of the list within 9s"));
}

/// Lists, and never says that a streaming list is complete.
struct Simple(FakeSource);

impl ListWatch for Simple {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(async move { self.0.source(None).list(options).await })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async move { self.0.source(None).watch(options).await })
    }
}

#[tokio::test(start_paused = true)]
async fn a_simple_source_is_listed_at_once() {
    let fake = source();
    fake.put(object("a", 1));
    fake.skip_end_bookmark(true);
    let simple = Arc::new(Simple(fake.clone()));
    let informer = InformerBuilder::new(Arc::clone(fake.origin()))
        .build::<Value>(move |_| Arc::clone(&simple) as Arc<dyn ListWatch>);
    informer.start();
    settle().await;
    assert_eq!(cached(&informer), ["a@101"], "without waiting for a streaming list");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_begin_is_given_up() {
    let source = source();
    source.fail_watch(Fault::Silence);
    let informer = informer(&source, |deadlines| deadlines.watch_response = secs(3));
    informer.start();
    pass(2).await;
    assert!(!informer.is_synced());
    pass(3).await;
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_silent_streaming_list_is_replaced_when_configured() {
    let source = source();
    source.skip_end_bookmark(true);
    let informer = informer(&source, |deadlines| deadlines.streaming_list_event = secs(40));
    informer.start();
    pass(39).await;
    assert!(!informer.is_synced());
    pass(2).await;
    assert!(informer.is_synced());
}

/// A streaming list that sends a bookmark every second, and never the last one.
async fn bookmarks(source: &FakeSource, seconds: u64) {
    for _ in 0..seconds {
        pass(1).await;
        source.bookmark();
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_receives_no_objects_is_replaced_when_configured() {
    let source = source();
    source.skip_end_bookmark(true);
    let informer = informer(&source, |deadlines| deadlines.streaming_list = secs(20));
    informer.start();
    bookmarks(&source, 19).await;
    assert!(!informer.is_synced());
    bookmarks(&source, 2).await;
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_may_take_longer_while_objects_come() {
    let source = source();
    source.skip_end_bookmark(true);
    let informer = informer(&source, |deadlines| {
        (deadlines.streaming_list, deadlines.streaming_list_event) = (secs(20), secs(15));
    });
    informer.start();
    bookmarks(&source, 19).await;
    source.put(object("a", 1));
    bookmarks(&source, 14).await;
    assert!(!informer.is_synced(), "the last object is not 15 s old");
    bookmarks(&source, 2).await;
    assert!(informer.is_synced());
}

fn watches(source: &FakeSource) -> usize {
    let is_watch = |request: &&Request| matches!(request, Request::Watch(_));
    source.requests().iter().filter(is_watch).count()
}

/// How long a watch that is dead is kept open, in seconds.
async fn lifetime_of_a_dead_watch(configure: impl FnOnce(InformerBuilder) -> InformerBuilder) -> u64 {
    let source = source();
    let (_informer, _) =
        watched(&source, |builder| configure(builder.streaming_list(false).probe_after(Duration::MAX))).await;
    source.stall();
    let open = watches(&source);
    for second in 1..20_000 {
        pass(1).await;
        if watches(&source) > open {
            return second;
        }
    }
    panic!("never noticed")
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_is_given_up_relative_to_its_timeout() {
    let two_hours = |options: &mut WatchOptions| options.timeout = Some(secs(7200));
    let lived = lifetime_of_a_dead_watch(|builder| builder.tweak_watch(two_hours)).await;
    assert!((7215..7220).contains(&lived), "15 s after the timeout that the request has: {lived}");
    let lived = lifetime_of_a_dead_watch(|builder| {
        builder.tweak_watch(two_hours).deadlines(|deadlines| deadlines.watch_end = secs(60))
    });
    let lived = lived.await;
    assert!((7260..7265).contains(&lived), "{lived}");
    let lived = lifetime_of_a_dead_watch(|builder| {
        let builder = builder.tweak_watch(|options| options.timeout = None);
        builder.deadlines(|deadlines| deadlines.watch_without_timeout = secs(1000))
    });
    let lived = lived.await;
    assert!((1015..1020).contains(&lived), "{lived}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_not_answered_is_given_up() {
    let source = source();
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| {
        errors.hook(builder).deadlines(|deadlines| {
            (deadlines.probe_after, deadlines.probe) = (secs(20), secs(5));
        })
    });
    started(&informer).await;
    source.break_connections();
    source.fail_list(Fault::Silence);
    pass(20).await;
    errors.take();
    pass(8).await;
    let errors = errors.take();
    assert!(errors.len() == 1 && errors[0].contains("no response within 5s"), "{errors:?}");
    source.put(object("a", 1));
    settle().await;
    assert_eq!(cached(&informer), ["a@101"], "the watch goes on");
}

#[tokio::test(start_paused = true)]
async fn lists_are_tweaked() {
    let source = source();
    let informer = source.informer::<Value>(|builder| {
        builder.streaming_list(false).tweak_list(|options| options.limit = Some(3))
    });
    started(&informer).await;
    let requests = source.requests();
    assert!(matches!(&requests[0], Request::List(options) if options.limit == Some(3)), "{requests:?}");
}
