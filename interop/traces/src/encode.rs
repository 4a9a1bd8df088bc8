//! The JSON of a kube-apiserver: list items without `kind` and `apiVersion`, objects of a watch with them.

use crate::{
    script::{ErrorStatus, GivenObject, RawEvent},
    store::Pod,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A valid uid that ends with a number.
pub(crate) fn uid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

// Structs instead of `json!`, to keep the field order of a kube-apiserver.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<T> {
    kind: &'static str,
    api_version: &'static str,
    #[serde(flatten)]
    rest: T,
}

#[derive(Serialize)]
struct Item<'a> {
    metadata: ObjectMeta<'a>,
    spec: Value,
    status: Value,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct ObjectMeta<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    resource_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Value>,
}

#[derive(Serialize)]
struct List<'a> {
    metadata: ListMeta,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_item_count: Option<usize>,
}

#[derive(Serialize)]
struct Event<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    object: T,
}

fn item(pod: &Pod) -> Item<'_> {
    let mut spec = json!({ "containers": [{ "name": "main", "image": "example/main:1", "resources": {} }] });
    if let Some(node) = &pod.node {
        spec["nodeName"] = json!(node);
    }
    let metadata = ObjectMeta {
        name: pod.name(),
        namespace: pod.namespace(),
        uid: uid(pod.uid),
        resource_version: pod.version.to_string(),
        creation_timestamp: Some("2026-01-01T00:00:00Z"),
        labels: pod.labels.clone(),
        annotations: None,
    };
    Item { metadata, spec, status: json!({ "phase": "Running" }) }
}

fn typed_pod<T>(rest: T) -> Typed<T> {
    Typed { kind: "Pod", api_version: "v1", rest }
}

/// One page of a list; `next` is the continue token and the number of remaining items.
pub(crate) fn list(pods: &[Pod], version: u64, next: Option<(String, usize)>) -> Bytes {
    let (next, remaining_item_count) = next.unzip();
    let metadata = ListMeta { resource_version: version.to_string(), next, remaining_item_count };
    let rest = List { metadata, items: pods.iter().map(item).collect() };
    encode(&Typed { kind: "PodList", api_version: "v1", rest })
}

pub(crate) fn event(kind: &str, pod: &Pod) -> Bytes {
    line(kind, typed_pod(item(pod)))
}

pub(crate) fn bookmark(version: u64, ends_initial: bool) -> Bytes {
    let metadata = ObjectMeta {
        resource_version: version.to_string(),
        annotations: ends_initial.then(|| json!({ "k8s.io/initial-events-end": "true" })),
        ..ObjectMeta::default()
    };
    line("BOOKMARK", typed_pod(Item { metadata, spec: json!({ "containers": null }), status: json!({}) }))
}

pub(crate) fn error(error: &ErrorStatus) -> Bytes {
    line("ERROR", status(error))
}

pub(crate) fn status(error: &ErrorStatus) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("scripted: {}", error.reason), "reason": error.reason, "code": error.code,
    });
    if let Some(cause) = &error.cause {
        status["details"]["causes"] = json!([{ "reason": cause, "message": cause }]);
    }
    if let Some(seconds) = error.retry_after {
        status["details"]["retryAfterSeconds"] = json!(seconds);
    }
    status
}

pub(crate) fn raw_event(event: &RawEvent) -> Bytes {
    match event {
        RawEvent::Pod { kind, object } => self::event(kind, &pod(object)),
        RawEvent::Any { kind, object } => line(kind, object),
        RawEvent::Line { line } => format!("{line}\n").into(),
    }
}

pub(crate) fn pod(given: &GivenObject) -> Pod {
    let GivenObject { key, version, uid, labels } = given.clone();
    Pod { key, version, uid, labels, node: None }
}

fn line(kind: &str, object: impl Serialize) -> Bytes {
    let mut line = encode(&Event { kind, object }).to_vec();
    line.push(b'\n');
    line.into()
}

fn encode(value: &impl Serialize) -> Bytes {
    // Encoding cannot fail: all map keys are strings.
    serde_json::to_vec(value).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bookmark_equals_one_of_kube_apiserver() {
        let recorded = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"3445","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}"#;
        assert_eq!(bookmark(3445, true), format!("{recorded}\n"));
    }

    #[test]
    fn events_have_a_type_and_list_items_do_not() {
        let pod = Pod { key: "shop/a".into(), uid: 1, version: 5, labels: BTreeMap::new(), node: None };
        let page = list(std::slice::from_ref(&pod), 7, Some(("next".into(), 2)));
        let page: Value = serde_json::from_slice(&page).unwrap();
        assert_eq!(
            page["metadata"],
            json!({ "resourceVersion": "7", "continue": "next", "remainingItemCount": 2 })
        );
        assert_eq!(page["items"][0].get("kind"), None);
        let event: Value = serde_json::from_slice(&event("ADDED", &pod)).unwrap();
        assert_eq!(event["object"]["kind"], "Pod");
        assert_eq!(event["object"]["metadata"], page["items"][0]["metadata"]);
    }
}
