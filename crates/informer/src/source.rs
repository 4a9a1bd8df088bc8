//! `ListWatch` over HTTP: the start of the pipeline, which sends requests to an API server.

mod body;
mod client;
mod connections;
mod encodings;
mod own_connection;
mod relay;
mod request;
mod response;

pub use client::ClientError;
pub use client::informer_client;

pub(crate) use encodings::may_be_built_in;

use crate::{Scope, ScopeError};
use encodings::Encodings;
use kube_informer_wire::{
    BoxFuture, Collection, FieldSelector, Kind, LabelSelector, Limits, ListOptions, ListSplitter, ListStream,
    ListWatch, ListWatchError, Malformed, MediaType, Object, ObjectKey, Omissions, Origin, ShardSelector,
    WatchOptions, WatchSplitter, WatchStream,
};
use request::{Accept, Content};
use response::ResponseBody;
use serde_json::Value;
use std::{fmt, sync::Arc};

/// One collection of an API server, listed and watched through a [`kube::Client`].
///
/// 1. Each call is one request, which is never retried; each failure is one typed error. There is one exception: if the
///    server rejects protobuf (406 or 415), the request is sent again for JSON, and all later ones ask for JSON.
/// 2. Built-in kinds are requested in protobuf, or JSON if the server prefers that; custom resources, metadata only, and
///    everything after an object with a field that this release does not know, in JSON.
/// 3. The HTTP status and the Content-Type are checked before the body; a body is never kept whole.
/// 4. It has no deadlines of its own, except 5 s for the body of an error response: the informer that sends the
///    requests has them, see [`Deadlines`](crate::Deadlines).
/// 5. No error, log line or `Debug` output holds a part of a body or a header.
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use kube_informer::{Kind, KubeSource, ListOptions, ListWatch, Origin};
///
/// let pods = Origin::new(Kind::namespaced("", "v1", "Pod", "pods"));
/// let source = KubeSource::new(client, pods, Some("shop")).labels(&"app=cart".parse()?);
/// let list = source.list(ListOptions::default()).await?;
/// # let _ = list; Ok(()) }
/// ```
#[derive(Clone)]
pub struct KubeSource {
    client: kube::Client,
    origin: Arc<Origin>,
    collection: Collection,
    /// Why no request can be sent.
    invalid: Option<ScopeError>,
    limits: Limits,
    /// Whether requests ask for the metadata of the objects only.
    metadata_only: bool,
    /// Shared by clones, which request the same collection.
    encodings: Arc<Encodings>,
}

impl KubeSource {
    /// Creates a source of the objects of a kind, in one namespace or in all.
    ///
    /// If no namespace can have the name, such as the empty one, every request fails with [`ListWatchError::Invalid`] and
    /// nothing is sent: `None` stands for all namespaces.
    pub fn new(client: kube::Client, origin: impl Into<Arc<Origin>>, namespace: Option<&str>) -> Self {
        let origin = origin.into();
        let namespace = namespace.filter(|_| origin.kind().namespaced);
        Self {
            collection: Collection::new(origin.kind(), namespace),
            invalid: namespace.and_then(|namespace| Scope::namespace(namespace).err()),
            encodings: Arc::new(Encodings::of(origin.kind())),
            client,
            origin,
            limits: Limits::default(),
            metadata_only: false,
        }
    }

    /// Restricts the collection to objects that match a label selector.
    #[must_use]
    pub fn labels(mut self, selector: &LabelSelector) -> Self {
        self.collection = self.collection.labels(selector);
        self
    }

    /// Restricts the collection to objects that match a field selector.
    #[must_use]
    pub fn fields(mut self, selector: &FieldSelector) -> Self {
        self.collection = self.collection.fields(selector);
        self
    }

    /// Requests objects of these shards only. A server that does not support that sends all objects.
    #[must_use]
    pub fn shards(mut self, selector: &ShardSelector) -> Self {
        self.collection = self.collection.shards(selector);
        self
    }

    /// Sets limits on the size of one object.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Requests the metadata of the objects only. A server that does not support that sends whole objects. Either way
    /// [`Object::edit`](kube_informer_wire::Object::edit) refuses to change anything but metadata.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self.origin = self.origin.omitting(&Omissions::outside_metadata());
        self
    }

    /// Requests JSON also for kinds that have a protobuf encoding.
    #[must_use]
    pub fn json_only(mut self) -> Self {
        self.encodings = Arc::new(Encodings::json());
        self
    }

    /// The kind of the objects.
    pub fn kind(&self) -> &Kind {
        self.origin.kind()
    }

    /// Fails if the namespace cannot exist: the server might list another collection instead.
    fn check(&self, url: &Arc<str>) -> Result<(), ListWatchError> {
        let invalid =
            |error: &ScopeError| ListWatchError::Invalid { message: error.to_string(), url: Arc::clone(url) };
        self.invalid.as_ref().map_or(Ok(()), |error| Err(invalid(error)))
    }

    async fn open_list(&self, options: ListOptions) -> Result<ListStream, ListWatchError> {
        let url = self.list_url(&options);
        let body = self.send(url, |url, content| request::list(url, Accept::list(content))).await?;
        let (origin, limits) = (Arc::clone(&self.origin), self.limits);
        let splitter = match body.media_type {
            MediaType::Protobuf => ListSplitter::protobuf(origin, limits),
            _ => ListSplitter::new(origin, limits),
        };
        Ok(body::list(body, splitter, &self.encodings))
    }

    async fn open_watch(&self, options: WatchOptions) -> Result<WatchStream, ListWatchError> {
        let url = self.watch_url(&options);
        let body = self.send(url, |url, content| request::watch(url, Accept::watch(content))).await?;
        let (origin, limits) = (Arc::clone(&self.origin), self.limits);
        let splitter = match body.media_type {
            MediaType::Protobuf => WatchSplitter::protobuf(origin, limits),
            _ => WatchSplitter::new(origin, limits),
        };
        Ok(body::watch(body, splitter, &self.encodings))
    }

    /// Requests the metadata of one object.
    async fn get_metadata(&self, key: &ObjectKey) -> Result<Option<Object<Value>>, ListWatchError> {
        let url: Arc<str> = Collection::new(self.origin.kind(), key.namespace()).object(key.name()).into();
        self.check(&url)?;
        let request = request::list(&url, Accept::watch(Content::Metadata))?;
        let body = match response::send(&self.client, request, Arc::clone(&url)).await {
            Err(error) if error.code() == Some(404) => return Ok(None),
            body => body?,
        };
        let json = body::whole(body, self.limits.object_bytes).await?;
        let malformed = |error: Malformed| ListWatchError::Malformed { message: error.to_string(), url };
        Object::parse(&self.origin, json, &self.limits).map(Some).map_err(malformed)
    }

    /// Sends a request. If the server accepts no protobuf, it and all later ones ask for JSON.
    async fn send(
        &self,
        url: Arc<str>,
        request: impl Fn(&str, Content) -> Result<http::Request<kube::client::Body>, ListWatchError>,
    ) -> Result<ResponseBody, ListWatchError> {
        self.check(&url)?;
        let content = if self.metadata_only { Content::Metadata } else { self.encodings.content() };
        let response = response::send(&self.client, request(&url, content)?, Arc::clone(&url)).await;
        let rejected = |error: &ListWatchError| matches!(error.code(), Some(406 | 415));
        match response {
            Err(error) if content == Content::Protobuf && rejected(&error) => {
                self.encodings.fall_back();
                response::send(&self.client, request(&url, Content::Json)?, url).await
            }
            response => response,
        }
    }
}

impl ListWatch for KubeSource {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(self.open_list(options))
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(self.open_watch(options))
    }

    fn get(&self, key: &ObjectKey) -> BoxFuture<'_, Result<Option<Object<Value>>, ListWatchError>> {
        let key = key.clone();
        Box::pin(async move { self.get_metadata(&key).await })
    }

    fn list_url(&self, options: &ListOptions) -> Arc<str> {
        self.collection.list(options).into()
    }

    fn watch_url(&self, options: &WatchOptions) -> Arc<str> {
        self.collection.watch(options).into()
    }

    fn supports_streaming_list(&self) -> bool {
        true
    }
}

impl fmt::Debug for KubeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeSource").field("collection", &self.collection).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
