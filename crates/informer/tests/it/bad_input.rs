//! Malformed input from the server affects nothing else (promise 14 of docs/contract.md).

use crate::support::{
    Errors, Recorder, cached, encoded, object, pass, secs, settle, source, started, versioned, watched,
};
use futures_util::{StreamExt, stream};
use kube_informer::{
    BoxFuture, InformerBuilder, ListMeta, ListOptions, ListPart, ListStream, ListWatch, ListWatchError,
    Malformed, WatchEvent, WatchOptions, WatchStream,
    testing::{FakeSource, Fault, Request},
};
use serde_json::{Value, json};
use std::sync::Arc;

fn fills(source: &FakeSource) -> usize {
    let is_fill = |request: &&Request| match request {
        Request::List(options) => options.limit != Some(1),
        Request::Watch(options) => options.send_initial_events.is_some(),
        Request::Get(_) => false,
    };
    source.requests().iter().filter(is_fill).count()
}

#[tokio::test(start_paused = true)]
async fn a_malformed_event_is_looked_into_once_and_the_stream_goes_on() {
    let source = source();
    source.put(object("a", 1));
    let errors = Errors::default();
    let (informer, recorder) = watched(&source, |builder| errors.hook(builder)).await;
    source.delete_unnoticed("ns/a");
    source.send_malformed();
    pass(5).await;
    assert_eq!(recorder.take(), ["-a@101?"], "the list shows what the event may have said");
    assert_eq!((fills(&source), errors.take().len()), (2, 1));
    source.put(object("b", 1));
    settle().await;
    assert_eq!(recorder.take().len(), 1);
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_malformed_events_is_no_flood_of_lists() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    for i in 0..100 {
        source.send_malformed();
        source.put(object(&format!("o{i}"), 1));
        pass(1).await;
    }
    assert!(fills(&source) <= 4, "{} lists in 100 s", fills(&source));
    pass(5).await;
    assert_eq!((informer.lister().len(), recorder.take().len()), (100, 100), "and nothing is lost");
    pass(60).await;
    source.send_malformed();
    pass(61).await;
    source.delete_unnoticed("ns/o1");
    source.send_malformed();
    source.send_malformed();
    pass(65).await;
    assert_eq!(informer.lister().len(), 99, "what one may have said is found out in time");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_malformed_item_is_a_list() {
    for streaming in [true, false] {
        let source = source();
        source.put(object("a", 1));
        let mut monster = object("b", 1);
        for i in 0..5000 {
            monster["metadata"]["labels"][format!("l{i}")] = "x".into();
        }
        source.put(monster);
        source.put(object("c", 1));
        let errors = Errors::default();
        let informer = source.informer::<Value>(|builder| errors.hook(builder).streaming_list(streaming));
        started(&informer).await;
        assert_eq!(cached(&informer), ["a@101", "c@103"]);
        assert_eq!(errors.take(), ["an object or event was left out, malformed: it has too many labels"]);
    }
}

#[tokio::test(start_paused = true)]
async fn odd_objects_are_kept() {
    let source = source();
    let odd = [
        json!({"metadata": {"namespace": "ns", "name": "labels", "labels": "text"}}),
        json!({"metadata": {"namespace": "ns", "name": "owners", "ownerReferences": {"a": 1}}}),
        json!({"metadata": {"namespace": "ns", "name": "times", "deletionTimestamp": 7, "generation": "x"}}),
        json!({"metadata": {"namespace": "ns", "name": "content"}, "data": [1, 2, 3]}),
    ];
    source.put(odd[0].clone());
    let (informer, recorder) = watched(&source, |builder| builder).await;
    odd[1..].iter().for_each(|object| {
        source.put(object.clone());
    });
    settle().await;
    assert_eq!((informer.lister().len(), recorder.take().len()), (4, 3));
    let content = informer.cast::<k8s_openapi::api::core::v1::ConfigMap>().lister();
    assert!(content.get(&"ns/content".parse().unwrap()).unwrap().decode().is_err());
    assert!(content.get(&"ns/times".parse().unwrap()).unwrap().view::<Value>().is_ok());
}

#[tokio::test(start_paused = true)]
async fn html_and_truncated_bodies_are_failures_like_others() {
    let source = source();
    source.put(object("a", 1));
    let html = ListWatchError::NotJson { content_type: "text/html".into(), url: "/fake".into() };
    let truncated =
        ListWatchError::Malformed { message: "the body ends in the middle".into(), url: "/fake".into() };
    source.fail_watch(Fault::Fail(html.clone())).fail_list(Fault::Fail(html));
    source.fail_watch(Fault::Fail(truncated.clone())).fail_list(Fault::Fail(truncated));
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    informer.start();
    settle().await;
    assert!(informer.status().to_string().contains("proxy or login page"), "{}", informer.status());
    pass(20).await;
    assert_eq!(cached(&informer), ["a@101"]);
    assert_eq!(errors.take().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn objects_without_a_version_are_followed_all_the_same() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let bare = |value: u64| {
        encoded(
            &source,
            &json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u"}, "data": {"value": value}}),
        )
    };
    source.send(|| WatchEvent::Added(bare(1)));
    source.send(|| WatchEvent::Modified(bare(2)));
    source.send(|| WatchEvent::Deleted(bare(2)));
    settle().await;
    assert_eq!(recorder.take(), ["+a@", "~a@>", "-a@"]);
    assert_eq!(informer.lister().snapshot().resource_version(), Some(100.into()), "the position stays");
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_never_older() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    for version in ["zebra", "apple", "mango"] {
        let object =
            json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u", "resourceVersion": version}});
        source.send(|| WatchEvent::Modified(encoded(&source, &object)));
    }
    settle().await;
    assert_eq!(recorder.take(), ["+a@zebra", "~a@zebra>apple", "~a@apple>mango"]);
    assert_eq!(cached(&informer), ["a@mango"]);
}

/// Responds to every list with the same parts, and to watches with silence.
struct Fixed(FakeSource, fn(&FakeSource) -> Vec<ListPart>);

impl ListWatch for Fixed {
    fn list(&self, _options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        let parts: Vec<_> = (self.1)(&self.0).into_iter().map(Ok).collect();
        Box::pin(async move { Ok(stream::iter(parts).boxed()) })
    }

    fn watch(&self, _options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async { Ok(stream::pending().boxed()) })
    }
}

async fn listed(parts: fn(&FakeSource) -> Vec<ListPart>) -> (Vec<String>, Vec<String>) {
    let source = source();
    let fixed = Arc::new(Fixed(source.clone(), parts));
    let informer = InformerBuilder::new(Arc::clone(source.origin()))
        .build::<Value>(move |_| Arc::clone(&fixed) as Arc<dyn ListWatch>);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    informer.start();
    informer.synced(secs(5)).await.unwrap();
    settle().await;
    (cached(&informer), recorder.take())
}

fn meta(version: Option<u64>) -> ListPart {
    ListPart::Meta(ListMeta { resource_version: version.map(Into::into), ..ListMeta::default() })
}

#[tokio::test(start_paused = true)]
async fn of_duplicate_items_the_last_one_counts() {
    let (cached, calls) = listed(|source| {
        let item = |name, version| ListPart::Item(encoded(source, &versioned(name, "u", version)));
        vec![item("a", 1), item("b", 2), item("a", 3), meta(Some(9))]
    })
    .await;
    assert_eq!((cached, calls), (vec!["a@3".into(), "b@2".into()], vec!["+a@3!".to_owned(), "+b@2!".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_or_metadata_is_a_list() {
    let (cached, calls) = listed(|source| {
        vec![
            ListPart::Item(encoded(source, &versioned("a", "u", 1))),
            ListPart::Malformed(Malformed::new("x")),
        ]
    })
    .await;
    assert_eq!((cached, calls), (vec!["a@1".to_owned()], vec!["+a@1!".to_owned()]));
}
