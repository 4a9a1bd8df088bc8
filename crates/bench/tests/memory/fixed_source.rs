//! A source with a fixed list of objects.

use kube_informer::{
    BoxFuture, Kind, Limits, ListOptions, ListPart, ListStream, ListWatch, ListWatchError, Origin,
    WatchOptions, WatchStream,
};
use kube_informer_wire::ListSplitter;
use serde_json::Value;
use std::sync::Arc;

/// Size of a chunk of the list body.
const CHUNK: usize = 16 << 10;

/// Serves one list body; its watch has no events.
pub(crate) struct FixedSource {
    pub(crate) origin: Arc<Origin>,
    body: Vec<u8>,
}

impl FixedSource {
    /// Generated objects with the version, uid and managed fields that a server adds.
    pub(crate) fn new(kind: Kind, objects: impl Iterator<Item = Value>) -> Self {
        let mut body =
            br#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"900000"},"items":["#.to_vec();
        for (number, object) in objects.enumerate() {
            if number > 0 {
                body.push(b',');
            }
            body.extend(stored(number, object).to_string().into_bytes());
        }
        body.extend(b"]}");
        Self { origin: Arc::new(Origin::new(kind)), body }
    }
}

/// Adds the fields that a server adds.
fn stored(number: usize, mut object: Value) -> Value {
    let version = 100_000 + number * 3;
    let spec = fields(&object["spec"]);
    let status = fields(&object["status"]);
    let meta = &mut object["metadata"];
    meta["uid"] =
        format!("{:08x}-1c8f-4d2a-9a53-{:012x}", number.wrapping_mul(2_654_435_761) as u32, number * 7919)
            .into();
    meta["resourceVersion"] = version.to_string().into();
    meta["creationTimestamp"] = "2026-01-01T08:00:00Z".into();
    meta["managedFields"] = serde_json::json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T08:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T08:00:09Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:status": status}, "subresource": "status"},
    ]);
    object
}

/// The fields of a value in the format of managed fields.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (format!("f:{name}"), fields(value))).collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| (format!("k:{{\"name\":{}}}", item["name"]), fields(item)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => Value::Object(serde_json::Map::new()),
    }
}

impl ListWatch for FixedSource {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        let mut splitter = ListSplitter::new(Arc::clone(&self.origin), Limits::default());
        let body = self.body.clone();
        let mut at = 0;
        let parts = std::iter::from_fn(move || {
            loop {
                match splitter.next_part().expect("a list") {
                    Some(part) => return Some(Ok::<ListPart, ListWatchError>(part)),
                    None if at == body.len() => return None,
                    None => {
                        let end = body.len().min(at + CHUNK);
                        splitter.feed(body[at..end].to_vec().into());
                        at = end;
                    }
                }
            }
        });
        Box::pin(async move { Ok(Box::pin(futures_util::stream::iter(parts)) as ListStream) })
    }

    fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async { Ok(Box::pin(futures_util::stream::pending()) as WatchStream) })
    }
}
