//! The functions that a controller calls: reconcile and cleanup.

use super::{Controller, Reconciling};
use crate::{
    action::Action,
    context::Context,
    failure::{BoxError, CleanUpFailed, Panicked},
    finalizer::Finalizer,
    intake::Primary,
    run::{Reconcile, RunController, Shared},
};
use futures_util::FutureExt;
use kube_informer::{HandlerOptions, Object, ObjectKey, WorkQueue};
use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

impl<K: 'static> Controller<K> {
    /// Adds the finalizer `name` to objects before they are reconciled, and calls `clean_up` for those that are being deleted.
    ///
    /// 1. The finalizer is in place before the first reconcile of an object.
    /// 2. It is removed after `clean_up` returned [`Action::done`]. With any other action the cleanup is not done yet, and goes
    ///    on later.
    /// 3. `clean_up` may run more than once, because a process may end between the cleanup and the removal.
    /// 4. Reconcile is not called for objects that are being deleted.
    /// 5. If someone else removes the finalizer, it is put back, whatever [`when`](Self::when) returns for that update. An
    ///    object that is being deleted does not get it back: the server rejects that, so its cleanup is skipped.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{InformerFactory, Object};
    /// use kube_informer_controller::{Action, BoxError, Context, Controller};
    ///
    /// async fn reconcile(config: Object<ConfigMap>, _: Context) -> Result<Action, BoxError> {
    ///     println!("make what {} needs outside the cluster", config.key());
    ///     Ok(Action::done())
    /// }
    ///
    /// async fn clean_up(config: Object<ConfigMap>, _: Context) -> Result<Action, BoxError> {
    ///     println!("remove it, if it is there"); // a second time, too
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
    /// # api.create(&Default::default(), &config).await?;
    /// let factory = InformerFactory::new(client.clone());
    /// let configs = factory.of::<ConfigMap>();
    /// let controller =
    ///     Controller::new(&configs, client).finalizer("example.com/external", clean_up).run(reconcile);
    /// # let (key, wait) = (kube_informer::ObjectKey::namespaced("default", "a"), std::time::Duration::from_secs(60));
    /// # let user = async {
    /// #     let has_finalizer = |config: Option<&Object<ConfigMap>>| {
    /// #         config.is_some_and(|config| config.decode().is_ok_and(|config| config.metadata.finalizers.is_some()))
    /// #     };
    /// #     configs.wait_until(&key, wait, has_finalizer).await.expect("the finalizer is added");
    /// #     api.delete("a", &Default::default()).await.expect("it exists");
    /// #     configs.wait_until(&key, wait, |config| config.is_none()).await.expect("the finalizer is removed");
    /// # };
    /// # controller.until(user).await?;
    /// # Ok(()) }
    /// ```
    pub fn finalizer<F, Fut, E>(mut self, name: impl Into<String>, clean_up: F) -> Self
    where
        F: Fn(Object<K>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let name: String = name.into();
        let finalizer: Arc<str> = Arc::from(name.as_str());
        let clean_up = Arc::new(clean_up);
        let clean_up = move |object, context| {
            let (clean_up, finalizer) = (Arc::clone(&clean_up), Arc::clone(&finalizer));
            async move {
                // The call is inside, because it may panic before it returns a future.
                let cleaned_up =
                    AssertUnwindSafe(async { clean_up(object, context).await }).catch_unwind().await;
                let source = match cleaned_up {
                    Ok(Ok(action)) => return Ok(action),
                    Ok(Err(error)) => error.into(),
                    Err(panic) => Panicked::new(&*panic).into(),
                };
                Err(CleanUpFailed { finalizer, source }.into())
            }
            .boxed()
        };
        self.finalizer = Some(Finalizer { name, clean_up: Arc::new(clean_up) });
        self
    }

    /// Sets the function that reconciles an object. It is not called for objects that no longer exist.
    ///
    /// The controller runs when the result is awaited, or added to a [`Manager`](crate::Manager).
    pub fn run<F, Fut, E>(self, reconcile: F) -> RunController
    where
        F: Fn(Object<K>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.prepare(move |_, object, context| {
            let reconciled = reconcile(object?, context);
            Some(async move { reconciled.await.map_err(Into::into) }.boxed())
        })
    }

    /// Sets the function that reconciles a key: for controllers that also act on objects that no longer exist, which are
    /// `None`.
    ///
    /// A process that was not running when an object was deleted is not notified of it. Work that must be done after a delete
    /// needs a [`finalizer`](Self::finalizer).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{InformerFactory, Object, ObjectKey};
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
    /// # let (calls, mut called) = tokio::sync::mpsc::channel::<bool>(9);
    /// let factory = InformerFactory::new(client.clone());
    /// let reconcile = move |key: ObjectKey, config: Option<Object<ConfigMap>>, _: Context| {
    ///     match &config {
    ///         Some(config) => println!("{key} has version {}", config.resource_version()),
    ///         None => println!("{key} does not exist any more"),
    ///     }
    /// #   let _ = calls.try_send(config.is_some());
    ///     async { Ok::<_, BoxError>(Action::done()) }
    /// };
    /// let controller = Controller::new(&factory.of::<ConfigMap>(), client).run_by_key(reconcile);
    /// # let user = async {
    /// #     assert_eq!(called.recv().await, Some(true));
    /// #     api.delete("a", &Default::default()).await.expect("it exists");
    /// #     assert_eq!(called.recv().await, Some(false));
    /// # };
    /// # controller.until(user).await?;
    /// # Ok(()) }
    /// ```
    pub fn run_by_key<F, Fut, E>(mut self, reconcile: F) -> RunController
    where
        F: Fn(ObjectKey, Option<Object<K>>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.settings.by_key = true;
        self.prepare(move |key, object, context| {
            let reconciled = reconcile(key, object, context);
            Some(async move { reconciled.await.map_err(Into::into) }.boxed())
        })
    }

    /// Prepares a controller whose `reconcile` returns `None` if there is nothing to do without an object.
    fn prepare(
        mut self,
        reconcile: impl Fn(ObjectKey, Option<Object<K>>, Context) -> Option<Reconciling> + Send + Sync + 'static,
    ) -> RunController {
        let (lister, finalizer) = (self.primary.lister(), self.finalizer.take().map(Arc::new));
        let has_finalizer = finalizer.is_some();
        let reconcile = Arc::new(reconcile);
        let reconcile: Reconcile = Arc::new(move |context: Context| {
            let (key, reconcile) = (context.key().clone(), Arc::clone(&reconcile));
            let object = lister.get(&key);
            if !context.admits(object.as_ref()) {
                // It was recreated just now, which adds its key again.
                return std::future::ready(Ok(None)).boxed();
            }
            match (object, finalizer.clone()) {
                (Some(object), Some(finalizer)) => async move {
                    let run = async |object, context| match reconcile(key, Some(object), context) {
                        Some(reconciling) => reconciling.await,
                        None => Ok(Action::done()),
                    };
                    finalizer.run(object, context, run).await.map(Some)
                }
                .boxed(),
                (object, _) => match reconcile(key, object, context) {
                    Some(reconciling) => async move { reconciling.await.map(Some) }.boxed(),
                    None => std::future::ready(Ok(None)).boxed(),
                },
            }
        });
        self.register(reconcile, has_finalizer)
    }

    fn register(mut self, reconcile: Reconcile, has_finalizer: bool) -> RunController {
        let limiter =
            self.settings.limiter.get_or_insert_with(|| Arc::new(kube_workqueue::controller_rate_limiter()));
        let queue = WorkQueue::builder().name(&*self.settings.name).rate_limiter(Arc::clone(limiter)).build();
        let options = || HandlerOptions::new().name(&*self.settings.name);
        let mut primary_options = options();
        if self.settings.resync.is_some() {
            // The controller has a period of its own, whatever that of the informer.
            primary_options = primary_options.resync(Duration::ZERO);
        }
        let primary = Primary { queue: queue.clone(), predicate: self.predicate, has_finalizer };
        let mut registrations = vec![self.primary.add_handler_with(primary, primary_options).scoped()];
        for add in self.secondary {
            registrations.push(add(&queue, options()).scoped());
        }
        let Self { caches, client, settings, .. } = self;
        RunController::new(Shared::new(settings, queue, caches, client), reconcile, registrations)
    }
}
