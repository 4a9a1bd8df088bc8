//! A source with a fixed list of objects.

use kube_informer::{
    BoxFuture, Kind, Limits, ListOptions, ListPart, ListStream, ListWatch, ListWatchError, Origin,
    WatchOptions, WatchStream,
};
use kube_informer_wire::ListSplitter;
use kube_informer_workload::stored;
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
