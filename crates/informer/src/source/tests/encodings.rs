//! Which encoding is requested, and what happens if it is not what comes.

use super::{
    fake::{Fake, JSON, answer, protobuf, streamed},
    *,
};
use kube_informer_types::protobuf::{Envelope, ListWriter, encode, encode_event};
use serde_json::json;

const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";

fn pod(name: &str) -> String {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": "4"}}).to_string()
}

fn list(names: &[&str]) -> bytes::Bytes {
    let mut list = ListWriter::new("v1", "PodList", &json!({"resourceVersion": "9"})).unwrap();
    names.iter().for_each(|name| list.push(pod(name).as_bytes()).unwrap());
    list.finish()
}

/// The media types that the requests accepted.
fn accepted(fake: &Fake) -> Vec<String> {
    fake.requests().iter().map(|request| request.headers[ACCEPT].to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_and_watches_are_read_in_protobuf() {
    let fake = Fake::answering(|asked| match asked.uri.query().unwrap_or_default().contains("watch") {
        true => protobuf(200, encode_event("ADDED", pod("c").as_bytes()).unwrap()),
        false => protobuf(200, list(&["a", "b"])),
    });
    let source = source(&fake);
    let parts: Vec<ListPart> = source.list(ListOptions::new()).await.unwrap().try_collect().await.unwrap();
    let names: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            ListPart::Item(item) => Some(item.name()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["a", "b"]);
    let mut events = source.watch(WatchOptions::new()).await.unwrap();
    let Some(Ok(WatchEvent::Added(object))) = events.next().await else { panic!("an event") };
    assert_eq!((object.name(), object.media_type()), ("c", MediaType::Protobuf));
    assert_eq!(accepted(&fake), [BOTH, BOTH]);
}

#[tokio::test]
async fn custom_resources_and_metadata_are_requested_in_json() {
    let fake = Fake::answering(|_| answer(200, JSON, r#"{"kind":"WidgetList","items":[]}"#));
    let widgets = Origin::new(Kind::namespaced("example.com", "v1", "Widget", "widgets"));
    for source in [
        KubeSource::new(fake.client(), widgets, None),
        source(&fake).json_only(),
        source(&fake).metadata_only(),
    ] {
        drop(source.list(ListOptions::new()).await.unwrap());
        drop(source.watch(WatchOptions::new()).await.unwrap());
    }
    assert!(accepted(&fake).iter().all(|accept| accept.starts_with("application/json")));
}

#[tokio::test]
async fn a_server_without_protobuf_is_asked_for_json_from_then_on() {
    for code in [406, 415] {
        let fake = Fake::answering(move |asked| match asked.headers[ACCEPT] == JSON {
            true => answer(200, JSON, r#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[]}"#),
            false => answer(code, JSON, ""),
        });
        let source = source(&fake);
        for _ in 0..2 {
            assert!(source.clone().list(ListOptions::new()).await.is_ok());
        }
        assert_eq!(accepted(&fake), [BOTH, JSON, JSON]);
    }
    let fake = Fake::answering(|_| answer(406, JSON, ""));
    assert_eq!(source(&fake).list(ListOptions::new()).await.err().and_then(|error| error.code()), Some(406));
    assert_eq!(accepted(&fake), [BOTH, JSON], "no endless loop");
}

#[tokio::test]
async fn an_unknown_field_switches_to_json() {
    let known = encode(pod("a").as_bytes()).unwrap();
    let mut message = Envelope::decode(&known).unwrap().raw.to_vec();
    message.extend_from_slice(&[0xfa, 0x7f, 1, 7]);
    let mut raw = vec![0x12, u8::try_from(message.len()).unwrap()];
    raw.extend_from_slice(&message);
    let newer: bytes::Bytes = Envelope { api_version: "v1", kind: "PodList", raw: &raw }.encode().into();
    let fake = Fake::answering(move |asked| match asked.headers[ACCEPT] == JSON {
        true => answer(200, JSON, r#"{"kind":"PodList","items":[{"metadata":{"name":"a"},"future":7}]}"#),
        false => protobuf(200, newer.clone()),
    });
    let source = source(&fake);
    let (parts, error) = drain(source.list(ListOptions::new()).await).await;
    assert!(matches!(error, Some(ListWatchError::UnknownFields { .. })), "{error:?}");
    assert!(parts.is_empty(), "{parts:?}");
    let parts: Vec<ListPart> = source.list(ListOptions::new()).await.unwrap().try_collect().await.unwrap();
    let [ListPart::Item(item)] = &parts[..] else { panic!("{parts:?}") };
    assert!(item.json().unwrap().ends_with(br#""future":7}"#));
    assert_eq!(accepted(&fake), [BOTH, JSON]);
}

/// A server that is upgraded while an informer watches it: the informer relists in JSON, and has the whole object.
#[tokio::test(start_paused = true)]
async fn an_informer_follows_a_newer_server() {
    let known = encode(pod("a").replace(r#""4""#, r#""10""#).as_bytes()).unwrap();
    let mut message = Envelope::decode(&known).unwrap().raw.to_vec();
    message.extend_from_slice(&[0xfa, 0x7f, 1, 7]);
    let envelope = Envelope { api_version: "v1", kind: "Pod", raw: &message }.encode();
    let field =
        |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let event = [field(1, b"MODIFIED"), field(2, &field(1, &envelope))].concat();
    let newer: bytes::Bytes =
        [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], &event].concat().into();
    let fake = Fake::answering(move |asked| {
        let watch = asked.uri.query().unwrap_or_default().contains("watch");
        match (watch, asked.headers[ACCEPT] == JSON) {
            (false, false) => protobuf(200, list(&["a", "b"])),
            (true, false) => protobuf(200, newer.clone()),
            (false, true) => answer(
                200,
                JSON,
                r#"{"kind":"PodList","metadata":{"resourceVersion":"10"},"items":[
                    {"metadata":{"name":"a","resourceVersion":"10"},"future":7},{"metadata":{"name":"b","resourceVersion":"4"}}]}"#,
            ),
            (true, true) => streamed(200, JSON, futures_util::stream::pending()),
        }
    });
    let source = Arc::new(source(&fake)) as Arc<dyn ListWatch>;
    let informer: crate::SharedInformer<serde_json::Value> =
        crate::InformerBuilder::new(pods().into()).streaming_list(false).build(|_| Arc::clone(&source));
    informer.start();
    let has_future = |pod: Option<&kube_informer_wire::Object<serde_json::Value>>| {
        pod.is_some_and(|pod| pod.view::<serde_json::Value>().is_ok_and(|pod| pod["future"] == 7))
    };
    informer.wait_until(&"a".parse().unwrap(), Duration::from_secs(60), has_future).await.unwrap();
    let kept = informer.lister().get(&"b".parse().unwrap()).unwrap();
    assert_eq!(kept.media_type(), MediaType::Protobuf, "what did not change is not replaced");
    assert_eq!(accepted(&fake), [BOTH, BOTH, JSON, JSON]);
}

#[tokio::test]
async fn an_error_in_protobuf_is_read() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old", "reason": "Expired", "code": 410});
    let body = encode(status.to_string().as_bytes()).unwrap();
    let fake = Fake::answering(move |_| protobuf(410, body.clone()));
    let error = source(&fake).list(ListOptions::new()).await.err().unwrap();
    assert!(error.is_expired() && error.to_string().ends_with("410 Expired: too old"), "{error}");
}
