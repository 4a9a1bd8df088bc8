//! Controllers on packed caches, with the methods of `kube_runtime`'s.

mod debounce;
mod informer;
mod run;
mod streams;

pub use crate::action::Action;
pub use run::{Error, RunnerError};

use super::{
    reflector::{ObjectRef, Store},
    watcher,
};
use crate::{
    intake::{Mapped, Primary},
    manager::signals,
};
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use informer::Errors;
use kube::{Api, Resource, api::PartialObjectMeta};
use kube_informer::{Kind, Object, ObjectKey, Registration, SharedInformer, WorkQueue};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    fmt::{self, Debug},
    future::Future,
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Options of a [`Controller`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    debounce: Duration,
    concurrency: u16,
}

impl Config {
    /// Sets how long a controller waits after a change before it reconciles, so that changes in quick succession are one
    /// reconcile. It waits from the first of them, not from the last, so that an object that changes all the time is reconciled.
    #[must_use]
    pub fn debounce(mut self, debounce: Duration) -> Self {
        self.debounce = debounce;
        self
    }

    /// Sets the number of objects that are reconciled at once; 0, the default, is no limit.
    #[must_use]
    pub fn concurrency(mut self, objects: u16) -> Self {
        self.concurrency = objects;
        self
    }
}

/// Adds a handler that fills the queue.
type Intake = Box<dyn FnOnce(&WorkQueue<ObjectKey>) -> Registration + Send>;

/// Something that reconciles objects besides changes that informers report.
enum Trigger {
    Key(ObjectKey),
    All,
}

/// Reconciles the objects of an [`Api`].
///
/// The promises of the native [`Controller`](crate::Controller) hold, but for those about writes: this one does not see them.
/// See the [module](super) for an example and for the differences from `kube_runtime`.
#[must_use = "a controller does nothing until its stream is polled"]
pub struct Controller<K: Resource> {
    store: Store<K>,
    dyntype: K::DynamicType,
    /// The kind that owner references to objects of the controller name.
    kind: Kind,
    caches: Vec<SharedInformer<Value>>,
    intakes: Vec<Intake>,
    triggers: Vec<BoxStream<'static, watcher::Result<Trigger>>>,
    errors: Errors,
    config: Config,
    stop: Vec<BoxFuture<'static, ()>>,
    abort: Vec<BoxFuture<'static, ()>>,
}

impl<K> Controller<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone,
    K::Scope: 'static,
{
    /// A controller of the objects of an [`Api`].
    pub fn new(api: Api<K>, config: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(api, config, K::DynamicType::default())
    }

    /// A controller of the objects of an [`Api`] whose type is known at run time.
    pub fn new_with(api: Api<K>, config: watcher::Config, dyntype: K::DynamicType) -> Self {
        let errors = Errors::default();
        let informer = informer::build::<K, K>(api, config, &dyntype, K::metadata_api(), &errors);
        let primary = informer.clone();
        let mut controller = Self::reading(Store::of_informer(informer.clone()), dyntype, errors);
        controller.caches.push(informer.cast());
        controller.intakes.push(Box::new(move |queue| {
            primary.add_handler(Primary { queue: queue.clone(), predicate: None, has_finalizer: false })
        }));
        controller
    }

    fn reading(store: Store<K>, dyntype: K::DynamicType, errors: Errors) -> Self {
        Self {
            store,
            kind: informer::kind::<K>(&dyntype),
            dyntype,
            caches: Vec::new(),
            intakes: Vec::new(),
            triggers: Vec::new(),
            errors,
            config: Config::default(),
            stop: Vec::new(),
            abort: Vec::new(),
        }
    }

    /// Sets the options.
    pub fn with_config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// The cache of the controller's objects.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Reconciles an object if one that it owns changes. The cache of the owned objects has their metadata only.
    pub fn owns<Child>(self, api: Api<Child>, config: watcher::Config) -> Self
    where
        Child: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::Scope: 'static,
    {
        self.owns_with(api, (), config)
    }

    /// Like [`owns`](Self::owns), for a type that is known at run time.
    pub fn owns_with<Child>(
        mut self,
        api: Api<Child>,
        dyntype: Child::DynamicType,
        config: watcher::Config,
    ) -> Self
    where
        Child: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Child::Scope: 'static,
    {
        let owner = self.kind.clone();
        let informer: SharedInformer<PartialObjectMeta> =
            informer::build(api, config, &dyntype, true, &self.errors);
        self.secondary(&informer, move |child: &Object<PartialObjectMeta>| {
            child.view().map(|child: PartialObjectMeta| owners(&child, &owner)).unwrap_or_default()
        });
        self
    }

    /// Reconciles the objects that `mapper` returns for an object that changes. It is called with the old and with the new state
    /// of an update, so that an object that refers to another one than before reconciles both.
    pub fn watches<Other, I>(
        self,
        api: Api<Other>,
        config: watcher::Config,
        mapper: impl Fn(Other) -> I + Send + Sync + 'static,
    ) -> Self
    where
        Other: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Other::DynamicType: Default,
        Other::Scope: 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        self.watches_with(api, Other::DynamicType::default(), config, mapper)
    }

    /// Like [`watches`](Self::watches), for a type that is known at run time.
    pub fn watches_with<Other, I>(
        mut self,
        api: Api<Other>,
        dyntype: Other::DynamicType,
        config: watcher::Config,
        mapper: impl Fn(Other) -> I + Send + Sync + 'static,
    ) -> Self
    where
        Other: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        Other::Scope: 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        let informer: SharedInformer<Other> =
            informer::build(api, config, &dyntype, Other::metadata_api(), &self.errors);
        self.secondary(&informer, move |object: &Object<Other>| match object.view::<Other>() {
            Ok(other) => mapper(other).into_iter().map(|reference| reference.key()).collect(),
            Err(error) => {
                tracing::warn!(?object, %error, "a watched object cannot be decoded");
                Vec::new()
            }
        });
        self
    }

    fn secondary<T: 'static>(
        &mut self,
        informer: &SharedInformer<T>,
        keys: impl Fn(&Object<T>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        self.caches.push(informer.cast());
        let informer = informer.clone();
        self.intakes.push(Box::new(move |queue| informer.add_handler(Mapped { queue: queue.clone(), keys })));
    }

    /// Reconciles all objects whenever `trigger` yields.
    pub fn reconcile_all_on(mut self, trigger: impl Stream<Item = ()> + Send + 'static) -> Self {
        self.triggers.push(trigger.map(|()| Ok(Trigger::All)).boxed());
        self
    }

    /// Reconciles the objects that `trigger` yields.
    pub fn reconcile_on(mut self, trigger: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        self.triggers.push(trigger.map(|reference| Ok(Trigger::Key(reference.key()))).boxed());
        self
    }

    /// Stops the controller when `stop` resolves: reconciles that are running are completed, others do not start.
    pub fn graceful_shutdown_on(mut self, stop: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        self.stop.push(stop.boxed());
        self
    }

    /// Stops the controller on SIGINT and SIGTERM. A second signal cancels the reconciles that are running.
    pub fn shutdown_on_signal(mut self) -> Self {
        let first = CancellationToken::new();
        self.stop.push(first.clone().cancelled_owned().boxed());
        let second = async move {
            signal().await;
            first.cancel();
            signal().await;
        };
        self.abort.push(second.boxed());
        self
    }

    /// A stream that reconciles objects while it is polled, and yields the results.
    ///
    /// `reconciler` is called for an object that exists and has changed. After an error, `error_policy` decides when to retry.
    pub fn run<Fut, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> Fut,
        error_policy: impl Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<Fut::Error, watcher::Error>>>
    where
        Fut: futures_util::TryFuture<Ok = Action> + Send + 'static,
        Fut::Error: std::error::Error + Send + 'static,
    {
        let running = run::Running::start(self, reconciler, error_policy, context);
        stream::unfold(running, async |mut running| {
            let result = running.next().await?;
            Some((result, running))
        })
    }
}

/// Resolves at the next SIGINT or SIGTERM; never if the process cannot handle signals.
async fn signal() {
    match signals::stop() {
        Ok(signal) => signal.await,
        Err(error) => {
            tracing::warn!(%error, "cannot handle signals");
            std::future::pending().await
        }
    }
}

/// The owners of an object that are of a kind, in whichever version.
fn owners(object: &impl Resource, kind: &Kind) -> Vec<ObjectKey> {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().filter(|_| kind.namespaced);
    let is_kind = |api_version: &str, name: &str| {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        group == kind.group && name == kind.kind
    };
    let owners = meta.owner_references.iter().flatten();
    owners
        .filter(|owner| is_kind(&owner.api_version, &owner.kind))
        .map(|owner| ObjectKey::new(namespace, &owner.name))
        .collect()
}

impl<K: Resource + 'static> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controller({}, {:?})", self.kind, self.store)
    }
}
