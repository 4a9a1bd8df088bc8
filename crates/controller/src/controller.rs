//! Configuration of a controller.

mod functions;

use crate::{
    action::Action,
    clock::WallClock,
    failure::{BoxError, ReconcileFailure},
    finalizer::Finalizer,
    intake::{Mapped, Owned, Predicate},
    run::{Hook, Settings},
};
use futures_util::future::BoxFuture;
use kube_informer::{
    Event, EventHandler, HandlerOptions, Object, ObjectKey, Priority, Registration, SharedInformer,
    WorkQueue, on_event, workqueue::RateLimiter,
};
use serde_json::Value;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Reconciles the objects of one informer.
///
/// Promises:
///
/// 1. A change of an object, or of an object that the controller [`owns`](Self::owns) or [`watches`](Self::watches), is
///    followed by a reconcile that starts after the change is in the cache. Changes meanwhile are one reconcile, not many.
/// 2. A key is never reconciled twice at once. Different keys are, up to [`concurrency`](Self::concurrency).
/// 3. A reconcile that returns an error, panics, or exceeds its [`deadline`](Self::deadline) is reported (log, metrics,
///    [`on_error`](Self::on_error)) and retried with growing delays. Other keys are not affected.
/// 4. Changes go before the initial list and resyncs.
/// 5. No reconcile starts before all its caches are synced.
/// 6. No reconcile of a key starts before the caches show what the previous one wrote through its [`Context`](crate::Context), unless
///    [`allow_stale`](Self::allow_stale) is set.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube_informer::{InformerFactory, Object};
/// use kube_informer_controller::{Action, BoxError, Context, Controller};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let api = kube::Api::<ConfigMap>::default_namespaced(client.clone());
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// # api.create(&Default::default(), &config).await?;
/// # let (reconciled, mut called) = tokio::sync::mpsc::channel::<()>(1);
/// # let stop = called.recv();
/// // In your program: let client = kube_informer::informer_client(kube::Config::infer().await?)?;
/// //                  let stop = tokio::signal::ctrl_c();
/// let factory = InformerFactory::new(client.clone());
/// let (configs, secrets) = (factory.of::<ConfigMap>(), factory.of::<Secret>());
/// let reconcile = move |config: Object<ConfigMap>, context: Context| {
///     println!("reconcile {}, which failed {} times", config.key(), context.failures());
/// #   let _ = reconciled.try_send(());
///     async { Ok::<_, BoxError>(Action::done()) }
/// };
/// Controller::new(&configs, client).owns(&secrets).concurrency(4).run(reconcile).until(stop).await?;
/// # Ok(()) }
/// ```
#[must_use = "a controller does nothing until it is run"]
pub struct Controller<K> {
    primary: SharedInformer<K>,
    caches: Vec<SharedInformer<Value>>,
    secondary: Vec<Secondary>,
    predicate: Option<Predicate<K>>,
    finalizer: Option<Finalizer<K>>,
    client: kube::Client,
    settings: Settings,
}

/// A reconcile that is running.
type Reconciling = BoxFuture<'static, Result<Action, BoxError>>;

/// Adds a handler for a secondary kind.
type Secondary = Box<dyn FnOnce(&WorkQueue<ObjectKey>, HandlerOptions) -> Registration + Send>;

impl<K: 'static> Controller<K> {
    /// A controller of the objects of `primary`, which writes with `client`. Its name is that of the resource.
    pub fn new(primary: &SharedInformer<K>, client: kube::Client) -> Self {
        Self {
            primary: primary.clone(),
            caches: vec![primary.cast()],
            secondary: Vec::new(),
            predicate: None,
            finalizer: None,
            client,
            settings: Settings::named(primary.kind().to_string()),
        }
    }

    /// Sets the name: of the queue and in logs and metrics. Two controllers of one resource need different names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Arc::from(name.into());
        self
    }

    /// Reconciles an object if an object that it controls changes: one whose controller owner reference names it. If the
    /// owner changes, both owners are reconciled.
    pub fn owns<C: 'static>(self, children: &SharedInformer<C>) -> Self {
        self.owns_filtered(children, None)
    }

    /// Like [`owns`](Self::owns), but ignores updates for which `predicate(old, new)` is false.
    pub fn owns_when<C: 'static>(
        self,
        children: &SharedInformer<C>,
        predicate: impl Fn(&Object<C>, &Object<C>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.owns_filtered(children, Some(Arc::new(predicate)))
    }

    fn owns_filtered<C: 'static>(
        self,
        children: &SharedInformer<C>,
        predicate: Option<Predicate<C>>,
    ) -> Self {
        let owner = self.primary.kind().clone();
        self.secondary(children, move |queue| Owned { queue: queue.clone(), owner, predicate })
    }

    /// Reconciles the keys that `keys` returns for an object that changes. It is called with both states of an update, so
    /// that an object that refers to another key than before reconciles both.
    ///
    /// The function often needs an index of the controller's own objects:
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use kube_informer::{InformerFactory, Object, ObjectKey};
    /// use kube_informer_controller::{Action, BoxError, Context, Controller};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let server = kube_embedded_apiserver::ApiServer::start().await?;
    /// # let client = server.client()?;
    /// # let (configs_api, pods_api) =
    /// #     (kube::Api::default_namespaced(client.clone()), kube::Api::default_namespaced(client.clone()));
    /// # let pod: Pod = serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "labels": {"config": "a"}},
    /// #     "spec": {"containers": [{"name": "web", "image": "web"}]}}))?;
    /// # pods_api.create(&Default::default(), &pod).await?;
    /// # let (calls, mut called) = tokio::sync::mpsc::channel::<()>(9);
    /// let factory = InformerFactory::new(client.clone());
    /// let (pods, configs) = (factory.of::<Pod>(), factory.of::<ConfigMap>());
    /// // By the name of the ConfigMap that a pod refers to.
    /// let by_config = pods.index(|pod: &Object<Pod>| {
    ///     pod.labels().get("config").map(|name| ObjectKey::new(pod.namespace(), name))
    /// })?;
    /// let all = pods.lister();
    /// let controller = Controller::new(&pods, client).watches(&configs, move |config| {
    ///     let pods = all.by(&by_config, config.key()).unwrap_or_default();
    ///     pods.iter().map(|pod| pod.key().clone()).collect::<Vec<_>>()
    /// });
    /// # let controller = controller.run(move |_, _| {
    /// #     let _ = calls.try_send(());
    /// #     async { Ok::<_, BoxError>(Action::done()) }
    /// # });
    /// # let user = async {
    /// #     called.recv().await;
    /// #     let mut config = ConfigMap::default();
    /// #     config.metadata.name = Some("a".to_owned());
    /// #     configs_api.create(&Default::default(), &config).await.expect("it does not exist");
    /// #     called.recv().await // the pod is reconciled again
    /// # };
    /// # controller.until(user).await?;
    /// # Ok(()) }
    /// ```
    pub fn watches<W, I>(
        self,
        informer: &SharedInformer<W>,
        keys: impl Fn(&Object<W>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        W: 'static,
        I: IntoIterator<Item = ObjectKey> + 'static,
    {
        self.secondary(informer, move |queue| Mapped { queue: queue.clone(), keys })
    }

    /// Reconciles the keys that `keys` returns for an event, which has the old and the new state of an update. Resyncs are
    /// left out.
    pub fn watches_events<W, I>(
        self,
        informer: &SharedInformer<W>,
        keys: impl Fn(&Event<W>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        W: 'static,
        I: IntoIterator<Item = ObjectKey> + 'static,
    {
        self.secondary(informer, move |queue| {
            let queue = queue.clone();
            on_event(move |event: &Event<W>| {
                let priority = match event {
                    Event::Updated { old, new } if old.is_same_version(new) => return,
                    Event::Added { initial: true, .. } => Priority::LOW,
                    _ => Priority::NORMAL,
                };
                keys(event).into_iter().for_each(|key| queue.add_with(key, priority));
            })
        })
    }

    /// Declares a cache that reconcile reads, although its changes are not of interest. Reconciles start when it is synced.
    pub fn reads<R: 'static>(mut self, informer: &SharedInformer<R>) -> Self {
        self.add_cache(informer);
        self
    }

    fn secondary<C: 'static, H: EventHandler<C>>(
        mut self,
        informer: &SharedInformer<C>,
        handler: impl FnOnce(&WorkQueue<ObjectKey>) -> H + Send + 'static,
    ) -> Self {
        self.add_cache(informer);
        let informer = informer.clone();
        self.secondary
            .push(Box::new(move |queue, options| informer.add_handler_with(handler(queue), options)));
        self
    }

    fn add_cache<C: 'static>(&mut self, informer: &SharedInformer<C>) {
        let cache = informer.cast::<Value>();
        if !self.caches.iter().any(|known| known.is_same(&cache)) {
            self.caches.push(cache);
        }
    }

    /// Ignores updates of the controller's own objects for which `predicate(old, new)` is false, such as
    /// [`generation_changed`](kube_informer::generation_changed). Resyncs are not filtered. With a
    /// [`finalizer`](Self::finalizer), neither are updates that change `metadata.finalizers` or begin the deletion: otherwise
    /// a finalizer that someone else removes would not be put back, and the cleanup would be skipped.
    pub fn when(
        mut self,
        predicate: impl Fn(&Object<K>, &Object<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.predicate = Some(Arc::new(predicate));
        self
    }

    /// Sets the number of keys that are reconciled at once; 1 by default.
    pub fn concurrency(mut self, keys: usize) -> Self {
        self.settings.concurrency = keys.max(1);
        self
    }

    /// Sets the delays of retries; [`controller_rate_limiter`](kube_workqueue::controller_rate_limiter) by default.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey> + 'static) -> Self {
        self.settings.limiter = Some(Arc::new(limiter));
        self
    }

    /// Reconciles all objects in this period, with low priority. By default the period of the informer.
    pub fn resync(mut self, period: Duration) -> Self {
        self.settings.resync = Some(period);
        self
    }

    /// Sets how long a reconcile may take until it is cancelled and retried; 5 minutes by default. A function that blocks
    /// its thread cannot be cancelled.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Sets how long a stopping controller waits for reconciles in flight before it cancels them; 30 seconds by default. A
    /// function that blocks its thread cannot be cancelled: the controller waits for it, keeps its lease meanwhile, and logs an
    /// error.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.settings.drain_timeout = timeout;
        self
    }

    /// Sets the field manager of writes; the name of the controller by default.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.settings.field_manager = Some(name.into());
        self
    }

    /// Sets how long a write through [`Context`](crate::Context) waits for its response; 5 seconds by default. Then its outcome is unknown.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.settings.write_timeout = timeout;
        self
    }

    /// Sets how long a reconcile waits for its caches to show the writes of the previous one; 30 seconds by default. Then it
    /// fails with [`FailureCause::StaleCache`](crate::FailureCause::StaleCache) and is retried with growing delays.
    pub fn barrier_timeout(mut self, timeout: Duration) -> Self {
        self.settings.barrier_timeout = timeout;
        self
    }

    /// Reconciles with stale caches when [`barrier_timeout`](Self::barrier_timeout) has passed, instead of failing. Only for
    /// controllers to which it does no harm.
    pub fn allow_stale(mut self, allow: bool) -> Self {
        self.settings.allow_stale = allow;
        self
    }

    /// Sets the clock for timestamps in conditions and events; the system's by default. For tests.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.settings.wall_clock = WallClock::new(clock);
        self
    }

    /// Calls `hook` for every failed reconcile, for example to count them in a test.
    pub fn on_error(mut self, hook: impl Fn(&ReconcileFailure) + Send + Sync + 'static) -> Self {
        self.settings.hook = Some(Hook(Arc::new(hook)));
        self
    }
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caches: Vec<_> = self.caches.iter().map(|cache| cache.kind().to_string()).collect();
        f.debug_struct("Controller").field("name", &self.settings.name).field("caches", &caches).finish()
    }
}
