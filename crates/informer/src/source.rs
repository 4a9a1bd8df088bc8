//! `ListWatch` over HTTP: the end of the pipeline that talks to an API server.

mod answer;
mod body;
mod client;
mod connections;
mod request;

pub use client::ClientError;
pub use client::informer_client;

use answer::Answer;
use kube_informer_wire::{
    BoxFuture, Collection, FieldSelector, Kind, LabelSelector, Limits, ListOptions, ListSplitter, ListStream,
    ListWatch, ListWatchError, Omissions, Origin, WatchOptions, WatchSplitter, WatchStream,
};
use request::Accept;
use std::{fmt, sync::Arc, time::Duration};

/// One collection of an API server, listed and watched through a [`kube::Client`].
///
/// 1. Nothing is retried here and nothing is guessed: each call is one request, each failure one typed error.
/// 2. The HTTP status and the Content-Type are looked at before the body; a body is never kept whole.
/// 3. An answer whose headers do not come within the deadline, a list that falls silent for as long, and a watch
///    that outlives its own timeout in silence for 15 s end with [`ListWatchError::Silent`].
/// 4. No error, log line or `Debug` output holds a part of a body or a header.
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
    limits: Limits,
    /// Whether the server is asked for the metadata of the objects only.
    metadata_only: bool,
    patience: Duration,
    tweak_list: Option<Tweak<ListOptions>>,
    tweak_watch: Option<Tweak<WatchOptions>>,
}

type Tweak<Options> = Arc<dyn Fn(&mut Options) + Send + Sync>;

/// How long the server may keep silent when it owes an answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl KubeSource {
    /// The objects of a kind, in one namespace or in all.
    pub fn new(client: kube::Client, origin: impl Into<Arc<Origin>>, namespace: Option<&str>) -> Self {
        let origin = origin.into();
        Self {
            collection: Collection::new(origin.kind(), namespace),
            client,
            origin,
            limits: Limits::default(),
            metadata_only: false,
            patience: PATIENCE,
            tweak_list: None,
            tweak_watch: None,
        }
    }

    /// Only objects that match this label selector too.
    #[must_use]
    pub fn labels(mut self, selector: &LabelSelector) -> Self {
        self.collection = self.collection.labels(selector);
        self
    }

    /// Only objects that match this field selector too.
    #[must_use]
    pub fn fields(mut self, selector: &FieldSelector) -> Self {
        self.collection = self.collection.fields(selector);
        self
    }

    /// Bounds on what one object may be.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Asks for the metadata of the objects only. A server that cannot do that sends whole objects. Either way
    /// [`Object::edit`](kube_informer_wire::Object::edit) writes to nothing but metadata.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self.origin = self.origin.omitting(&Omissions::outside_metadata());
        self
    }

    /// How long to wait for the headers of an answer, and for the next part of a list; 30 s unless set. `Duration::MAX`
    /// is without limit. A watch that
    /// outlives its timeout is given as long, but never more than 15 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Changes the options of each LIST before it is sent.
    #[must_use]
    pub fn tweak_list(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweak_list = Some(Arc::new(tweak));
        self
    }

    /// Changes the options of each WATCH before it is sent.
    #[must_use]
    pub fn tweak_watch(mut self, tweak: impl Fn(&mut WatchOptions) + Send + Sync + 'static) -> Self {
        self.tweak_watch = Some(Arc::new(tweak));
        self
    }

    /// The kind of the objects.
    pub fn kind(&self) -> &Kind {
        self.origin.kind()
    }

    async fn open_list(&self, mut options: ListOptions) -> Result<ListStream, ListWatchError> {
        if let Some(tweak) = &self.tweak_list {
            tweak(&mut options);
        }
        let url = self.collection.list(&options);
        let request = request::list(&url, Accept::list(self.metadata_only))?;
        let answer = Answer::to(&self.client, request, url.into(), self.patience).await?;
        let splitter = ListSplitter::new(Arc::clone(&self.origin), self.limits);
        Ok(body::list(answer, splitter, self.patience))
    }

    async fn open_watch(&self, mut options: WatchOptions) -> Result<WatchStream, ListWatchError> {
        if let Some(tweak) = &self.tweak_watch {
            tweak(&mut options);
        }
        let url = self.collection.watch(&options);
        let request = request::watch(&url, Accept::watch(self.metadata_only))?;
        let answer = Answer::to(&self.client, request, url.into(), self.patience).await?;
        let splitter = WatchSplitter::new(Arc::clone(&self.origin), self.limits);
        let timeout = options.timeout.unwrap_or(body::LONGEST_WATCH);
        Ok(body::watch(answer, splitter, timeout, self.patience))
    }
}

impl ListWatch for KubeSource {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(self.open_list(options))
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(self.open_watch(options))
    }
}

impl fmt::Debug for KubeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeSource").field("collection", &self.collection).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
