//! Streams of changes.

mod config;

pub use config::{Config, InitialListStrategy, ListSemantic};

use crate::time;
use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Api, Resource, ResourceExt,
    core::{Status, WatchEvent},
};
use serde::de::DeserializeOwned;
use std::{collections::VecDeque, fmt, fmt::Debug, time::Duration};
use tokio::time::Instant;

/// Time after which the server ends a watch, if the configuration does not say otherwise.
const WATCH: u32 = 290;
/// How much longer than that a watch may be silent before it is considered broken.
const MARGIN: u32 = 5;
/// Annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// Delays between failed requests: doubled from the first to the last, with jitter.
const FIRST_DELAY: Duration = Duration::from_millis(800);
const LAST_DELAY: Duration = Duration::from_secs(30);

/// The result of a watcher.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure of a [`watcher()`]. It continues by itself, after a delay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The objects could not be listed.
    #[error("cannot list the objects: {0}")]
    InitialListFailed(#[source] kube::Error),
    /// A watch could not be started.
    #[error("cannot start the watch: {0}")]
    WatchStartFailed(#[source] kube::Error),
    /// The server ended a watch with an error.
    #[error("the server ended the watch: {0}")]
    WatchError(#[source] Box<Status>),
    /// A watch broke.
    #[error("the watch broke: {0}")]
    WatchFailed(#[source] kube::Error),
    /// A response of the server has no resource version.
    #[error("the response has no resource version; the resource may not support watches")]
    NoResourceVersion,
}

/// A change that a [`watcher()`] reports.
#[derive(Debug, Clone)]
pub enum Event<K> {
    /// An object was created or changed.
    Apply(K),
    /// An object was deleted.
    Delete(K),
    /// A list starts: at the beginning, and when the watch could not be continued.
    Init,
    /// An object of the list.
    InitApply(K),
    /// The list is complete. Objects that were not in it do not exist any more.
    InitDone,
}

impl<K> Event<K> {
    /// Changes the object of the event.
    #[must_use]
    pub fn modify(mut self, mut change: impl FnMut(&mut K)) -> Self {
        if let Self::Apply(object) | Self::Delete(object) | Self::InitApply(object) = &mut self {
            change(object);
        }
        self
    }
}

impl<K: ResourceExt> fmt::Display for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "Apply({})", object.name_any()),
            Self::Delete(object) => write!(f, "Delete({})", object.name_any()),
            Self::Init => f.write_str("Init"),
            Self::InitApply(object) => write!(f, "InitApply({})", object.name_any()),
            Self::InitDone => f.write_str("InitDone"),
        }
    }
}

/// The changes of the objects of an [`Api`]: a list, then a watch. Decodes every object; keeps none.
///
/// 1. The stream never ends. A failure is an `Err`; the next request is sent after a delay, which grows with the number of failures
///    in a row. `default_backoff` is not needed.
/// 2. A watch that ends is continued where it ended, if the server still can; otherwise the objects are listed again.
///
/// ```
/// use futures_util::TryStreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube_informer_controller::kube_runtime::watcher::{self, Event, watcher};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// let configs = Api::<ConfigMap>::default_namespaced(client);
/// # configs.create(&Default::default(), &config).await?;
/// let mut events = std::pin::pin!(watcher(configs, watcher::Config::default()));
/// let mut seen = Vec::new();
/// while let Some(event) = events.try_next().await? {
///     seen.push(event.to_string());
///     if let Event::InitDone = event {
///         break; // your program goes on with Event::Apply and Event::Delete
///     }
/// }
/// assert_eq!(seen, ["Init", "InitApply(a)", "InitDone"]);
/// # Ok(()) }
/// ```
pub fn watcher<K>(api: Api<K>, config: Config) -> impl Stream<Item = Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watcher = Watcher { api, config, stage: Stage::Start, failures: 0, retry_at: None };
    stream::unfold(watcher, async |mut watcher| {
        let event = watcher.next().await;
        Some((event, watcher))
    })
}

/// The state of one object: at first, and after every change. `None` while it does not exist.
///
/// With an `Api` of all namespaces, objects of that name in all of them are mixed.
pub fn watch_object<K>(api: Api<K>, name: &str) -> impl Stream<Item = Result<Option<K>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut listed = false;
    let events = watcher(api, Config::default().fields(&format!("metadata.name={name}")));
    events.filter_map(move |event| {
        let state = match event {
            Ok(Event::Init) => {
                listed = false;
                None
            }
            Ok(Event::InitApply(object)) => {
                listed = true;
                Some(Ok(Some(object)))
            }
            Ok(Event::InitDone) => (!listed).then_some(Ok(None)),
            Ok(Event::Apply(object)) => Some(Ok(Some(object))),
            Ok(Event::Delete(_)) => Some(Ok(None)),
            Err(error) => Some(Err(error)),
        };
        std::future::ready(state)
    })
}

struct Watcher<K> {
    api: Api<K>,
    config: Config,
    stage: Stage<K>,
    /// Failures in a row.
    failures: u32,
    /// When to go on after a failure.
    retry_at: Option<Instant>,
}

type Watch<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// The next thing to do.
enum Stage<K> {
    Start,
    /// Report the objects of a page, then fetch the next one; `None` if none was fetched yet.
    List {
        page: VecDeque<K>,
        next: Option<NextPage>,
    },
    /// Report the initial events of a watch.
    InitialEvents(Watch<K>),
    /// Watch from a version.
    Resume(String),
    Watch {
        watch: Watch<K>,
        version: String,
    },
}

enum NextPage {
    Token(String),
    /// There is none. The list has this version.
    End(String),
}

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static> Watcher<K> {
    async fn next(&mut self) -> Result<Event<K>> {
        if self.retry_at.is_some() {
            time::sleep_until(self.retry_at).await;
            self.retry_at = None;
        }
        loop {
            // Cancelled requests, and those that fail, start again with a list, unless they can continue.
            let stage = std::mem::replace(&mut self.stage, Stage::Start);
            let event = match stage {
                Stage::Start => self.start().await,
                Stage::List { page, next } => self.list(page, next).await,
                Stage::InitialEvents(watch) => self.initial_event(watch).await,
                Stage::Resume(version) => self.resume(version).await,
                Stage::Watch { watch, version } => self.event(watch, version).await,
            };
            match event {
                Ok(None) => {}
                Ok(Some(event)) => {
                    // The start of a list shows nothing about the server.
                    if !matches!(event, Event::Init) {
                        self.failures = 0;
                    }
                    return Ok(event);
                }
                Err(error) => {
                    tracing::debug!(url = self.api.resource_url(), %error, "watcher failed and will retry");
                    self.retry_at = time::from_now(delay(self.failures));
                    self.failures = self.failures.saturating_add(1);
                    return Err(error);
                }
            }
        }
    }

    async fn start(&mut self) -> Result<Option<Event<K>>> {
        self.stage = match self.config.initial_list_strategy {
            InitialListStrategy::ListWatch => Stage::List { page: VecDeque::new(), next: None },
            InitialListStrategy::StreamingList => {
                let watch = self.api.watch(&self.config.watch_params(true), "0").await;
                Stage::InitialEvents(watch.map_err(Error::WatchStartFailed)?.boxed())
            }
        };
        Ok(Some(Event::Init))
    }

    async fn list(&mut self, mut page: VecDeque<K>, next: Option<NextPage>) -> Result<Option<Event<K>>> {
        if let Some(object) = page.pop_front() {
            self.stage = Stage::List { page, next };
            return Ok(Some(Event::InitApply(object)));
        }
        let token = match next {
            Some(NextPage::End(version)) => {
                self.stage = Stage::Resume(version);
                return Ok(Some(Event::InitDone));
            }
            Some(NextPage::Token(token)) => Some(token),
            None => None,
        };
        let list = self.api.list(&self.config.list_params(token)).await.map_err(Error::InitialListFailed)?;
        let token = list.metadata.continue_.filter(|token| !token.is_empty()).map(NextPage::Token);
        let version = list.metadata.resource_version.filter(|version| !version.is_empty());
        let next = token.or(version.map(NextPage::End)).ok_or(Error::NoResourceVersion)?;
        self.stage = Stage::List { page: list.items.into(), next: Some(next) };
        Ok(None)
    }

    async fn initial_event(&mut self, mut watch: Watch<K>) -> Result<Option<Event<K>>> {
        match next_event(&mut watch, self.silence()).await? {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                self.stage = Stage::InitialEvents(watch);
                Ok(Some(Event::InitApply(object)))
            }
            Some(WatchEvent::Bookmark(bookmark))
                if bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END) =>
            {
                self.stage = Stage::Watch { watch, version: bookmark.metadata.resource_version };
                Ok(Some(Event::InitDone))
            }
            Some(WatchEvent::Error(status)) => Err(Error::WatchError(Box::new(*status.boxed()))),
            Some(WatchEvent::Bookmark(_) | WatchEvent::Deleted(_)) => {
                self.stage = Stage::InitialEvents(watch);
                Ok(None)
            }
            // The watch ended before the list was complete.
            None => Ok(None),
        }
    }

    async fn resume(&mut self, version: String) -> Result<Option<Event<K>>> {
        match self.api.watch(&self.config.watch_params(false), &version).await {
            Ok(watch) => {
                self.stage = Stage::Watch { watch: watch.boxed(), version };
                Ok(None)
            }
            Err(error) => {
                if !is_expired(&error) {
                    self.stage = Stage::Resume(version);
                }
                Err(Error::WatchStartFailed(error))
            }
        }
    }

    async fn event(&mut self, mut watch: Watch<K>, version: String) -> Result<Option<Event<K>>> {
        let event = match next_event(&mut watch, self.silence()).await {
            Ok(Some(event)) => event,
            ended => {
                self.stage = Stage::Resume(version);
                return ended.map(|_| None);
            }
        };
        let event = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Apply(object),
            WatchEvent::Deleted(object) => Event::Delete(object),
            WatchEvent::Bookmark(bookmark) => {
                self.failures = 0;
                self.stage = Stage::Watch { watch, version: bookmark.metadata.resource_version };
                return Ok(None);
            }
            WatchEvent::Error(status) => {
                if status.code != 410 {
                    self.stage = Stage::Resume(version);
                }
                return Err(Error::WatchError(Box::new(*status.boxed())));
            }
        };
        let (Event::Apply(object) | Event::Delete(object)) = &event else { return Ok(Some(event)) };
        let version = object.resource_version().filter(|version| !version.is_empty());
        self.stage = Stage::Watch { watch, version: version.ok_or(Error::NoResourceVersion)? };
        Ok(Some(event))
    }

    /// How long a watch may be silent.
    fn silence(&self) -> Duration {
        let seconds = self.config.timeout.filter(|&seconds| seconds > 0).unwrap_or(WATCH);
        Duration::from_secs(seconds.saturating_add(MARGIN).into())
    }
}

/// The next event of a watch; `None` if it has ended, or was silent for longer than the server keeps it open.
async fn next_event<K>(watch: &mut Watch<K>, silence: Duration) -> Result<Option<WatchEvent<K>>> {
    match time::timeout(silence, watch.next()).await {
        Ok(event) => event.transpose().map_err(Error::WatchFailed),
        Err(time::Elapsed) => Ok(None),
    }
}

/// Whether the server cannot continue at a version any more.
fn is_expired(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}

/// The delay after a failure that this many failures precede.
fn delay(failures: u32) -> Duration {
    let doubled = FIRST_DELAY.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    let delay = doubled.min(LAST_DELAY);
    let jitter = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    delay.saturating_add(Duration::from_millis(fastrand::u64(..=jitter)))
}
