//! The second argument of a reconcile function: its writes, events and time.

mod writes;

use crate::{events::EventType, leadership::NotLeading, run::Shared, shards::Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_informer::{Object, ObjectKey};
use std::{fmt, sync::Arc, time::Duration};

/// The context of one reconcile: what it writes, and its conditions and events. Cloning is a reference count.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube_informer::{InformerFactory, Lister, Object, ObjectKey};
/// use kube_informer_controller::{Action, BoxError, Context, Controller, EventType, child_name, controlled_by};
///
/// async fn reconcile(
///     config: Object<ConfigMap>,
///     context: Context,
///     secrets: Lister<Secret>,
/// ) -> Result<Action, BoxError> {
///     let copy = ObjectKey::new(config.namespace(), &child_name(&config, "copy"));
///     if config.labels().get("copy").is_none() {
///         if let Some(copy) = secrets.get(&copy) {
///             context.delete(&copy).await?; // this version of it
///         }
///         return Ok(Action::done());
///     }
///     let mut secret = Secret::default();
///     secret.metadata.name = Some(copy.name().to_owned());
///     secret.string_data = config.decode()?.data.clone();
///     context.apply(&controlled_by(secret, &config)?).await?;
///     // Sends only what differs: nothing, the next time.
///     if context.patch(&config, |config| config["metadata"]["annotations"]["copied"] = "yes".into()).await? {
///         context.event(&config, EventType::Normal, "Copied", format!("copied to {copy}"));
///     }
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let api = kube::Api::<ConfigMap>::default_namespaced(client.clone());
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// # config.metadata.labels = Some([("copy".to_owned(), "yes".to_owned())].into());
/// # api.create(&Default::default(), &config).await?;
/// let factory = InformerFactory::new(client.clone());
/// let (configs, secrets) = (factory.of::<ConfigMap>(), factory.of::<Secret>());
/// let lister = secrets.lister();
/// let controller = Controller::new(&configs, client)
///     .owns(&secrets)
///     .run(move |config, context| reconcile(config, context, lister.clone()));
/// # let (key, wait) = (ObjectKey::namespaced("default", "a-copy"), std::time::Duration::from_secs(60));
/// # let user = async {
/// #     secrets.wait_until(&key, wait, |secret| secret.is_some()).await.expect("the copy is made");
/// #     config.metadata.labels = None;
/// #     let change = kube::api::Patch::Merge(serde_json::json!({"metadata": {"labels": null}}));
/// #     api.patch("a", &Default::default(), &change).await.expect("it exists");
/// #     secrets.wait_until(&key, wait, |secret| secret.is_none()).await.expect("the copy is deleted");
/// # };
/// # controller.until(user).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    key: ObjectKey,
    failures: u32,
    /// The object for which the key was admitted, if objects are divided among replicas.
    subject: Option<Subject>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, key: ObjectKey, failures: u32, subject: Option<Subject>) -> Self {
        Self { shared, key, failures, subject }
    }

    /// Whether the object of the key may be reconciled: another one of the same name may belong to another replica.
    pub(crate) fn admits<T>(&self, object: Option<&Object<T>>) -> bool {
        self.subject.as_ref().is_none_or(|subject| subject.is(object))
    }

    /// Checks that a write may be sent whose request takes up to `margin`.
    fn check_lease(&self, margin: Duration) -> Result<(), NotLeading> {
        self.shared.gate.check(margin)?;
        self.subject.as_ref().map_or(Ok(()), |subject| subject.leadership.check(margin))
    }

    /// Whether writes need a lease.
    fn needs_lease(&self) -> bool {
        self.shared.gate.is_set() || self.subject.is_some()
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.shared.settings.name
    }

    /// Number of failures of this key in a row before this reconcile.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Records an event about an object: `reason` is a word in CamelCase, `note` a sentence for people. Never waits and never
    /// fails.
    ///
    /// An event about the same object with the same type and reason as one of the last 6 minutes is a repetition, as in
    /// client-go: it increments the count of that event, which **keeps the note of the first**, because the API allows only
    /// the count of an event to change. Give events that people must be able to tell apart different reasons.
    pub fn event<T>(
        &self,
        about: &Object<T>,
        event_type: EventType,
        reason: impl AsRef<str>,
        note: impl AsRef<str>,
    ) {
        // Others report what happens to the object from then on.
        if self.subject.as_ref().is_none_or(|subject| subject.leadership.is_leading()) {
            self.shared.recorder.record(about, event_type, reason.as_ref(), note.as_ref());
        }
    }

    /// A condition of an object, observed now at its generation: for [`Conditions::set`](crate::Conditions::set).
    #[must_use = "a condition has to be set in a status"]
    pub fn condition<T>(
        &self,
        of: &Object<T>,
        condition_type: impl Into<String>,
        status: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Condition {
        Condition {
            type_: condition_type.into(),
            status: if status { "True" } else { "False" }.to_owned(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: of.generation(),
            last_transition_time: Time(self.shared.settings.wall_clock.now()),
        }
    }

    /// The client of the controller: for reads from the server, and for requests that have no method here. Writes with it are
    /// not remembered.
    pub fn client(&self) -> &kube::Client {
        &self.shared.client
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} {})", self.controller(), self.key)
    }
}
