//! Reading content without blocking the thread.

use crate::disk::blocking;
use bytes::Bytes;
use kube_informer_wire::{DecodeError, Object};
use serde::de::DeserializeOwned;
use std::{future::Future, sync::Arc};

/// Reads the content of objects that may be in a file: with [`Storage::Disk`](crate::Storage::Disk), and of restored objects
/// until it was moved into memory.
///
/// Content that is in memory is read at once; otherwise the read runs in a thread for blocking work. The blocking methods of
/// [`Object`] do the same work in the thread of the caller: fine in a thread of its own or for a few objects on a fast disk.
///
/// ```
/// # use kube_informer::{Kind, Object, testing::FakeSource};
/// use kube_informer::ReadAsync;
///
/// # async fn example(secret: Object<serde_json::Value>) -> Result<(), Box<dyn std::error::Error>> {
/// let decoded = secret.decode_async().await?;
/// # Ok(()) }
/// ```
pub trait ReadAsync<T> {
    /// Decodes the whole object, as [`Object::decode`] does.
    ///
    /// # Panics
    /// Outside a tokio runtime, if the content is not in memory.
    fn decode_async(&self) -> impl Future<Output = Result<Arc<T>, DecodeError>> + Send
    where
        T: DeserializeOwned + Send + Sync + 'static;

    /// Decodes only the fields of `V`, as [`Object::view`] does.
    ///
    /// # Panics
    /// Outside a tokio runtime, if the content is not in memory.
    fn view_async<V: DeserializeOwned + Send + 'static>(
        &self,
    ) -> impl Future<Output = Result<V, DecodeError>> + Send;

    /// The object as JSON, as [`Object::json`] returns it.
    ///
    /// # Panics
    /// Outside a tokio runtime, if the content is not in memory.
    fn json_async(&self) -> impl Future<Output = Result<Bytes, DecodeError>> + Send;
}

impl<T: 'static> ReadAsync<T> for Object<T> {
    fn decode_async(&self) -> impl Future<Output = Result<Arc<T>, DecodeError>> + Send
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        read(self.clone(), Object::decode)
    }

    fn view_async<V: DeserializeOwned + Send + 'static>(
        &self,
    ) -> impl Future<Output = Result<V, DecodeError>> + Send {
        read(self.clone(), Object::view)
    }

    fn json_async(&self) -> impl Future<Output = Result<Bytes, DecodeError>> + Send {
        read(self.clone(), Object::json)
    }
}

async fn read<T: 'static, R: Send + 'static>(object: Object<T>, read: fn(&Object<T>) -> R) -> R {
    if object.is_content_in_memory() {
        return read(&object);
    }
    let of_thread = object.clone();
    match blocking(move || read(&of_thread)).await {
        Some(result) => result,
        // The runtime is shut down: there are no other threads any more.
        None => read(&object),
    }
}
