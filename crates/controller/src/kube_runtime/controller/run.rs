//! The stream of a controller.
//!
//! Tasks of the worker pool reconcile objects. The functions of the user need not be `Send` or `'static`, so the tasks ask
//! the stream to call them, and the stream sends back the future of a reconcile, or the action after it.

use super::{Action, Controller, Trigger, debounce::Debounce};
use crate::{
    context::Context,
    failure::BoxError,
    kube_runtime::{
        reflector::{ObjectRef, Store, store::WriterDropped},
        watcher,
    },
    run::{Reconcile, RunController, RunError, Settings, Shared},
};
use futures_util::{
    FutureExt, StreamExt, TryFuture, TryFutureExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream, SelectAll},
};
use kube::{Resource, api::DynamicObject, client::Body};
use kube_informer::{ObjectKey, WorkQueue};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, sync::Arc, time::Duration};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// A failure in the stream of a controller.
#[derive(Debug, thiserror::Error)]
pub enum Error<R: 'static, Q: 'static> {
    /// Not used: an object that does not exist is not reconciled, and not reported.
    #[error("{0} does not exist")]
    ObjectNotFound(Box<ObjectRef<DynamicObject>>),
    /// A reconcile failed. It is retried as the error policy says.
    #[error("reconcile of {1} failed: {0}")]
    ReconcilerFailed(#[source] R, Box<ObjectRef<DynamicObject>>),
    /// A list or watch failed. It is retried with growing delays.
    #[error("{0}")]
    QueueError(#[source] Q),
    /// The controller cannot go on. The stream ends.
    #[error(transparent)]
    RunnerError(#[from] RunnerError),
}

/// A controller cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// Its store will never be filled.
    #[error(transparent)]
    Readiness(#[from] WriterDropped),
    /// An informer of it has ended.
    #[error(transparent)]
    Informer(#[from] RunError),
}

/// A request of a task to the stream.
enum Request<K, Fut: TryFuture> {
    /// Call the reconcile function.
    Reconcile { object: Arc<K>, reply: oneshot::Sender<Fut> },
    /// Report a result, and return the action.
    Report {
        key: ObjectKey,
        object: Arc<K>,
        result: Result<Action, Fut::Error>,
        reply: oneshot::Sender<Action>,
    },
}

/// The stream was dropped.
#[derive(Debug, thiserror::Error)]
#[error("the stream of the controller was dropped")]
struct Dropped;

/// A running controller.
pub(super) struct Running<K: Resource, Fut: TryFuture, Ctx, R, P> {
    dyntype: K::DynamicType,
    reconciler: R,
    error_policy: P,
    context: Arc<Ctx>,
    store: Store<K>,
    queue: WorkQueue<ObjectKey>,
    requests: mpsc::UnboundedReceiver<Request<K, Fut>>,
    triggers: SelectAll<BoxStream<'static, watcher::Result<Trigger>>>,
    /// Runs the tasks; `None` when it has ended.
    work: Option<BoxFuture<'static, Result<(), RunnerError>>>,
    abort: BoxFuture<'static, ()>,
    failure: Option<RunnerError>,
}

type Item<K, E> = Result<(ObjectRef<K>, Action), Error<E, watcher::Error>>;

impl<K, Fut, Ctx, R, P> Running<K, Fut, Ctx, R, P>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone,
    Fut: TryFuture<Ok = Action> + Send + 'static,
    Fut::Error: std::error::Error + Send + 'static,
    R: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
{
    /// Registers the handlers. Nothing runs before the first `next`.
    pub(super) fn start(
        controller: Controller<K>,
        reconciler: R,
        error_policy: P,
        context: Arc<Ctx>,
    ) -> Self {
        let Controller { store, dyntype, kind, caches, intakes, triggers, errors, config, stop, abort } =
            controller;
        let mut settings = Settings::named(kind.to_string());
        settings.concurrency = match config.concurrency {
            0 => Semaphore::MAX_PERMITS,
            limit => limit.into(),
        };
        (settings.deadline, settings.drain_timeout) = (Duration::MAX, Duration::MAX);
        let queue = WorkQueue::builder().name(&*settings.name).build();
        let registrations = intakes.into_iter().map(|add| add(&queue).scoped()).collect();
        let (sender, requests) = mpsc::unbounded_channel();
        let debounce = Debounce::new(config.debounce);
        let reconcile = reconcile(store.clone(), sender, debounce);
        let shared = Shared::new(settings, queue.clone(), caches, no_client());
        let run = RunController::new(shared, reconcile, registrations);
        let (ready, stop) = (store.clone(), any(stop));
        let work = async move {
            let mut stop = stop;
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                // An informer starts with the controller, which waits for it.
                ready = ready.wait_until_ready(), if !ready.is_informer() => ready?,
                () = future::ready(()), if ready.is_informer() => {}
            }
            Ok(run.until(stop).await?)
        };
        let failures = stream::unfold(errors.receiver, async |mut receiver| {
            let error = receiver.recv().await?;
            Some((Err(error), receiver))
        });
        let mut triggers: SelectAll<_> = triggers.into_iter().collect();
        triggers.push(failures.boxed());
        Self {
            dyntype,
            reconciler,
            error_policy,
            context,
            store,
            queue,
            requests,
            triggers,
            work: Some(work.boxed()),
            abort: any(abort),
            failure: None,
        }
    }

    /// The next result; `None` when the controller has stopped.
    pub(super) async fn next(&mut self) -> Option<Item<K, Fut::Error>> {
        loop {
            let work = async {
                match &mut self.work {
                    Some(work) => work.await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut self.abort => return None,
                request = self.requests.recv() => match request {
                    Some(Request::Reconcile { object, reply }) => {
                        let reconciling = (self.reconciler)(object, Arc::clone(&self.context));
                        // Dropped with its task.
                        let _ = reply.send(reconciling);
                    }
                    Some(Request::Report { key, object, result, reply }) => {
                        return Some(self.report(&key, object, result, reply));
                    }
                    // All tasks have ended.
                    None => return self.failure.take().map(|error| Err(error.into())),
                },
                ended = work => {
                    self.work = None;
                    self.failure = ended.err();
                }
                Some(trigger) = self.triggers.next() => match trigger {
                    Ok(Trigger::Key(key)) => self.queue.add(key),
                    Ok(Trigger::All) => self.store.keys().into_iter().for_each(|key| self.queue.add(key)),
                    Err(error) => return Some(Err(Error::QueueError(error))),
                },
            }
        }
    }

    fn report(
        &self,
        key: &ObjectKey,
        object: Arc<K>,
        result: Result<Action, Fut::Error>,
        reply: oneshot::Sender<Action>,
    ) -> Item<K, Fut::Error> {
        let reference = ObjectRef::from_key(key, self.dyntype.clone());
        let (action, result) = match result {
            Ok(action) => (action, Ok((reference, action))),
            Err(error) => {
                let action = (self.error_policy)(object, &error, Arc::clone(&self.context));
                (action, Err(Error::ReconcilerFailed(error, Box::new(reference.erase()))))
            }
        };
        // Dropped with its task.
        let _ = reply.send(action);
        result
    }
}

/// The function that a task runs for a key.
fn reconcile<K, Fut>(
    store: Store<K>,
    requests: mpsc::UnboundedSender<Request<K, Fut>>,
    debounce: Debounce,
) -> Reconcile
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    Fut: TryFuture<Ok = Action> + Send + 'static,
    Fut::Error: Send + 'static,
{
    let debounce = Arc::new(debounce);
    Arc::new(move |context: Context| {
        let (store, requests, debounce) = (store.clone(), requests.clone(), Arc::clone(&debounce));
        async move {
            let key = context.key();
            let Some(object) = store.get_key(key) else {
                debounce.forget(key);
                return Ok(None);
            };
            if let Some(delay) = debounce.delay(key) {
                return Ok(Some(Action::requeue(delay)));
            }
            let (reply, reconciling) = oneshot::channel();
            requests.send(Request::Reconcile { object: Arc::clone(&object), reply }).map_err(|_| Dropped)?;
            let result = TryFutureExt::into_future(reconciling.await?).await;
            let (reply, action) = oneshot::channel();
            let report = Request::Report { key: key.clone(), object, result, reply };
            requests.send(report).map_err(|_| Dropped)?;
            Ok::<_, BoxError>(Some(action.await?))
        }
        .boxed()
    })
}

/// Resolves with the first of the futures; never if there is none.
fn any(futures: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'static, ()> {
    match futures.is_empty() {
        true => future::pending().boxed(),
        false => future::select_all(futures).map(drop).boxed(),
    }
}

/// A client for the writes of a [`Context`], of which there are none here.
fn no_client() -> kube::Client {
    let reject = tower::service_fn(async |_: http::Request<Body>| {
        Err::<http::Response<Body>, _>("a controller of kube_runtime's shape sends no requests")
    });
    kube::Client::new(reject, "default")
}
