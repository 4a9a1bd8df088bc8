//! Kubernetes events (`events.k8s.io/v1`) about objects.

pub use crate::events::EventType;

use crate::{
    clock::WallClock,
    events::{EventSender, Occurrence, Series},
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube_informer_wire::sync::lock;
use std::{
    fmt,
    sync::{Arc, Mutex},
};
use tokio::time::Instant;

/// An event about an object.
#[derive(Debug, Clone)]
pub struct Event {
    /// Whether something may have gone wrong.
    pub type_: EventType,
    /// Why the action was taken: a word in CamelCase.
    pub reason: String,
    /// A sentence for people.
    pub note: Option<String>,
    /// The action that was taken: a word in CamelCase.
    pub action: String,
    /// Another object that the event is about.
    pub secondary: Option<ObjectReference>,
}

/// The program that reports events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reporter {
    /// Name of the controller, such as `example.com/site-operator`.
    pub controller: String,
    /// Name of the process; the name of the controller if `None`.
    pub instance: Option<String>,
}

impl From<String> for Reporter {
    fn from(controller: String) -> Self {
        Self { controller, instance: None }
    }
}

impl From<&str> for Reporter {
    fn from(controller: &str) -> Self {
        controller.to_owned().into()
    }
}

/// Writes events. Cloning is a reference count.
///
/// The first and the second of the same events about an object are written at once, later ones are counted and written now and
/// then, as client-go does. New events about one object are limited to 25 at once, then one every 5 minutes; others are left out.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::{Api, Resource};
/// use kube_informer_controller::kube_runtime::events::{Event, EventType, Recorder};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// let configs = Api::<ConfigMap>::default_namespaced(client.clone());
/// # let config = configs.create(&Default::default(), &config).await?;
/// # let events = Api::<k8s_openapi::api::events::v1::Event>::default_namespaced(client.clone());
/// let recorder = Recorder::new(client, "example.com/site-operator".into());
/// let event = Event {
///     type_: EventType::Normal,
///     reason: "Published".to_owned(),
///     note: Some("published the page".to_owned()),
///     action: "Publish".to_owned(),
///     secondary: None,
/// };
/// recorder.publish(&event, &config.object_ref(&())).await?;
/// # assert_eq!(events.list(&Default::default()).await?.items.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Recorder {
    client: kube::Client,
    series: Arc<Mutex<Series>>,
}

impl Recorder {
    /// A recorder that reports events of `reporter`.
    #[must_use]
    pub fn new(client: kube::Client, reporter: Reporter) -> Self {
        let Reporter { controller, instance } = reporter;
        let series = Series::new(controller.into(), instance, WallClock::default());
        Self { client, series: Arc::new(Mutex::new(series)) }
    }

    /// Writes an event about an object, unless it is a repetition or there are too many.
    pub async fn publish(&self, event: &Event, reference: &ObjectReference) -> Result<(), kube::Error> {
        let Event { type_, reason, note, action, secondary } = event;
        let occurrence =
            Occurrence::new(reference.clone(), *type_, reason, note.as_deref().unwrap_or_default())
                .action(action)
                .related(secondary.clone());
        let writes = {
            let (mut series, now) = (lock(&self.series), Instant::now());
            let mut writes = series.due(now);
            writes.extend(series.observe(occurrence, now).ok().flatten());
            writes
        };
        for write in writes {
            let id = write.id().clone();
            if let Err(error) = EventSender::request(&self.client, write).await {
                // The next one starts a new series.
                lock(&self.series).forget(&id);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recorder")
    }
}
