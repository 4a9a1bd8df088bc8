//! The trait an informer reads from.

use crate::{
    FieldSelector, ListOptions, ListWatchError, Malformed, Object, ObjectKey, ResourceVersion, Status,
    WatchOptions,
};
use futures_core::Stream;
use serde_json::Value;
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// The parts of one LIST response as they arrive. The list is complete when the stream ends without an error.
pub type ListStream = Pin<Box<dyn Stream<Item = Result<ListPart, ListWatchError>> + Send>>;
/// The events of one WATCH as they arrive. The stream ends when the server closes the watch cleanly.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, ListWatchError>> + Send>>;

/// The source of the objects of an informer: one collection that can be listed and watched.
///
/// 1. Both calls resolve once the server has accepted the request; if it rejects it, the call returns `Err`.
/// 2. Streams are lazy: nothing is read from the server faster than the stream is polled.
/// 3. Dropping a future or a stream ends the request.
/// 4. A stream ends after its first error.
/// 5. A source needs no deadlines of its own: the informer drops requests that take too long.
pub trait ListWatch: Send + Sync + 'static {
    /// Lists the collection, or one page of it.
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>>;

    /// Watches the collection.
    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>>;

    /// Requests one object; `None` if it does not exist. Its metadata is enough. A source that does not implement this lists
    /// the object by its name, and looks for it among the items.
    fn get(&self, key: &ObjectKey) -> BoxFuture<'_, Result<Option<Object<Value>>, ListWatchError>> {
        let key = key.clone();
        Box::pin(async move {
            let selector = FieldSelector::of_key(&key);
            let mut items = self.list(ListOptions::new().field_selector(selector)).await?;
            let mut found = None;
            while let Some(part) = poll_fn(|task| items.as_mut().poll_next(task)).await {
                match part? {
                    ListPart::Item(object) if *object.key() == key => found = Some(object),
                    _ => {}
                }
            }
            Ok(found)
        })
    }

    /// The URL of a LIST with these options, as path and query, for error messages; `/` unless implemented.
    fn list_url(&self, _options: &ListOptions) -> Arc<str> {
        "/".into()
    }

    /// The URL of a WATCH with these options, as path and query, for error messages; `/` unless implemented.
    fn watch_url(&self, _options: &WatchOptions) -> Arc<str> {
        "/".into()
    }

    /// Whether [`watch`](Self::watch) supports streaming lists, that is, sends the state of the collection and then a
    /// bookmark if `send_initial_events` asks for it; `false` unless implemented. Otherwise the collection is listed.
    fn supports_streaming_list(&self) -> bool {
        false
    }
}

/// A part of a LIST response.
#[derive(Debug)]
pub enum ListPart {
    /// The metadata of the list; it may come before, between or after the items, and may come in pieces.
    Meta(ListMeta),
    /// An item.
    Item(Object<Value>),
    /// An item whose identity is malformed.
    Malformed(Malformed),
}

/// The metadata of a LIST response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// The resource version of the list.
    pub resource_version: Option<ResourceVersion>,
    /// Where the next page starts; `None` on the last page.
    pub continue_token: Option<String>,
    /// How many items follow on later pages, if the server says so.
    pub remaining: Option<u64>,
}

/// An event of a WATCH.
#[derive(Debug)]
pub enum WatchEvent {
    /// The object is new, or entered the selection.
    Added(Object<Value>),
    /// The object changed.
    Modified(Object<Value>),
    /// The object was deleted, or left the selection; its version is that of the deletion.
    Deleted(Object<Value>),
    /// Everything up to a resource version has been sent.
    Bookmark(Bookmark),
    /// The server ends this watch with an error.
    Error(Status),
    /// A malformed event; the stream goes on after it.
    Malformed(Malformed),
}

/// A statement of the server that everything up to a resource version has been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// That resource version.
    pub resource_version: ResourceVersion,
    /// Whether this ends the initial events of a streaming list.
    pub initial_events_end: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Limits, Origin};
    use std::task::{Context, Poll, Waker};

    /// A source that ignores selectors, with objects of these names.
    struct Ignorant(&'static [&'static str]);

    struct Parts(std::vec::IntoIter<ListPart>);

    impl Stream for Parts {
        type Item = Result<ListPart, ListWatchError>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(self.0.next().map(Ok))
        }
    }

    impl ListWatch for Ignorant {
        fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
            assert_eq!(options.field_selector.to_string(), "metadata.name=b,metadata.namespace=shop");
            let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
            let object = |name: &&str| {
                let json = format!(r#"{{"metadata":{{"namespace":"shop","name":"{name}"}}}}"#);
                ListPart::Item(Object::parse(&origin, json.into(), &Limits::default()).unwrap())
            };
            let parts: Vec<ListPart> = self.0.iter().map(object).collect();
            Box::pin(async move { Ok(Box::pin(Parts(parts.into_iter())) as ListStream) })
        }

        fn watch(&self, _: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
            unreachable!("the object is listed")
        }
    }

    #[test]
    fn an_object_is_found_by_its_key_in_a_list() {
        for (names, found) in [(&["a", "b", "c"][..], Some("b")), (&["a", "c"], None), (&[], None)] {
            let source = Ignorant(names);
            let mut get = source.get(&ObjectKey::new(Some("shop"), "b"));
            let Poll::Ready(object) = get.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("the source is ready");
            };
            assert_eq!(object.unwrap().map(|object| object.name().to_owned()).as_deref(), found);
        }
    }
}
