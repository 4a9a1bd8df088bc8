//! A complete controller: keeps as many pods running as each ReplicaSet asks for.
//!
//! It does what a production controller must do:
//!
//! 1. It waits until its caches are synced.
//! 2. Events only decide *which* set to reconcile. The changes to make follow from the cache, so the number of events does
//!    not matter.
//! 3. It never creates too many pods, although its cache lags behind and responses can get lost (see
//!    `replica_set_controller/intents.rs`).
//! 4. The queue retries failures with growing delays. Conflicts of status writes are retried immediately.
//! 5. When it is stopped, it finishes the sets in flight.
//!
//! Left out for brevity: adoption of orphaned pods, and `minReadySeconds`.

mod intents;
mod pods;
mod recorder;
mod status;

use intents::Intents;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube_informer::{
    HandlerOptions, Index, IndexError, InformerFactory, Object, ObjectKey, ObjectReferences, SharedInformer,
    SyncError, Uid, WorkQueue, enqueue, enqueue_owner, updates_when, version_changed,
};
use kube_workqueue::HandlerError;
use recorder::Recorder;
use std::{future::Future, time::Duration};

/// Number of pods that are created or deleted in one run; a larger difference takes several runs.
const BURST: usize = 50;
/// Time limit for a cache to show a write.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Keeps as many pods as each ReplicaSet asks for.
pub struct ReplicaSetController {
    client: kube::Client,
    sets: SharedInformer<ReplicaSet>,
    pods: SharedInformer<Pod>,
    /// Pods by the uid of their set: a set that was deleted and recreated does not inherit them.
    by_owner: Index<Uid>,
    queue: WorkQueue<ObjectKey>,
    intents: Intents,
    recorder: Recorder,
}

impl ReplicaSetController {
    /// A controller that reads through the informers of a factory, which it may share with others, and writes with a
    /// client. The seed determines the names of pods.
    pub fn new(factory: &InformerFactory, client: kube::Client, seed: u64) -> Result<Self, IndexError> {
        let (sets, pods) = (factory.of::<ReplicaSet>(), factory.of::<Pod>());
        let by_owner = pods.index_controller()?;
        let queue = WorkQueue::named("replicasets");
        // Every resync reconciles all sets, which repairs anything that went wrong.
        let named = || HandlerOptions::new().name("replicasets");
        sets.add_handler_with(enqueue(&queue), named());
        // A resync of pods is ignored: their version is unchanged.
        pods.add_handler_with(updates_when(version_changed, enqueue_owner::<ReplicaSet>(&queue)), named());
        let (intents, recorder) = (Intents::new(seed), Recorder::new(client.clone(), "replica-set-example"));
        Ok(Self { client, sets, pods, by_owner, queue, intents, recorder })
    }

    /// The queue of sets to reconcile.
    pub fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.queue
    }

    /// Runs until `stop` resolves; then finishes the sets in flight.
    pub async fn run(&self, workers: usize, stop: impl Future) -> Result<(), SyncError> {
        self.sets.synced(TIMEOUT).await?;
        self.pods.synced(TIMEOUT).await?;
        self.queue.run_workers(workers, async |key: ObjectKey| self.reconcile(&key).await).until(stop).await;
        self.queue.shutdown();
        Ok(())
    }

    /// Reconciles one set. The queue never gives a set to two workers.
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), HandlerError> {
        let Some(set) = self.sets.lister().get(key) else { return Ok(()) };
        if set.is_deleting() {
            return Ok(());
        }
        let scaled = self.scale(&set).await;
        // Also after a failure: the status describes the actual state.
        let pods = self.pods.lister().by(&self.by_owner, &set.uid())?;
        status::write(&self.client, &self.sets, &set, &pods).await?;
        scaled
    }

    async fn scale(&self, set: &Object<ReplicaSet>) -> Result<(), HandlerError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), set.namespace().unwrap_or("default"));
        self.find_created_pods(set, &api).await?;
        let want = pods::wanted(&*set.decode()?);
        let active = pods::active(self.pods.lister().by(&self.by_owner, &set.uid())?);
        if active.len() < want {
            for name in self.intents.names(set, (want - active.len()).min(BURST)) {
                self.create(set, &api, &name).await?;
            }
        } else {
            self.intents.drop_all(&set.uid());
            let surplus = active.len() - want;
            for pod in pods::deletion_order(active).into_iter().take(surplus.min(BURST)) {
                self.delete(set, &api, &pod).await?;
            }
        }
        Ok(())
    }

    /// Looks for pods whose create request got no response.
    async fn find_created_pods(&self, set: &Object<ReplicaSet>, api: &Api<Pod>) -> Result<(), HandlerError> {
        for name in self.intents.pending(&set.uid()) {
            if let Some(pod) = api.get_opt(&name).await? {
                self.pods.reached(&pod).await?;
                self.intents.settled(&set.uid(), &name);
            }
        }
        Ok(())
    }

    async fn create(&self, set: &Object<ReplicaSet>, api: &Api<Pod>, name: &str) -> Result<(), HandlerError> {
        let pod = pods::from_template(&*set.decode()?, set.controller_owner_ref()?, name);
        let made = match api.create(&PostParams::default(), &pod).await {
            Ok(made) => made,
            Err(error) => {
                self.recorder.warn(set, "FailedCreate", &format!("Error creating: {error}")).await;
                return Err(error.into());
            }
        };
        // Read your own write: the next run must see this pod in the cache.
        self.pods.reached(&made).await?;
        self.intents.settled(&set.uid(), name);
        self.recorder.normal(set, "SuccessfulCreate", &format!("Created pod: {name}")).await;
        Ok(())
    }

    async fn delete(
        &self,
        set: &Object<ReplicaSet>,
        api: &Api<Pod>,
        pod: &Object<Pod>,
    ) -> Result<(), HandlerError> {
        let uid = pod.object_ref()?.uid;
        let this_one = Preconditions { uid, ..Preconditions::default() };
        match api
            .delete(pod.name(), &DeleteParams { preconditions: Some(this_one), ..DeleteParams::default() })
            .await
        {
            Ok(_) => {
                self.recorder.normal(set, "SuccessfulDelete", &format!("Deleted pod: {}", pod.name())).await
            }
            // It was deleted already, and perhaps recreated with a new uid.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(error.into()),
        }
        // The cache must show the delete before the next run counts pods.
        let deleted =
            |now: Option<&Object<Pod>>| now.is_none_or(|now| now.is_deleting() || now.uid() != pod.uid());
        Ok(self.pods.wait_until(pod.key(), TIMEOUT, deleted).await?)
    }
}
