//! Caches of objects.

mod object_ref;
pub mod store;
mod subscription;

pub use object_ref::{ObjectRef, ObjectRefExtra};
pub use store::{Store, store, store_shared};
pub use subscription::ReflectHandle;

use super::watcher;
use futures_util::{Stream, StreamExt};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};

/// Writes the events of a stream into a store, before it passes them on.
///
/// The store is filled while the stream is polled.
pub fn reflector<K, W>(mut writer: store::Writer<K>, stream: W) -> impl Stream<Item = W::Item>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    W: Stream<Item = watcher::Result<watcher::Event<K>>>,
{
    stream.inspect(move |event| {
        if let Ok(event) = event {
            writer.apply_watcher_event(event);
        }
    })
}
