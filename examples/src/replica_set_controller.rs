//! A full controller: keeps as many pods running as each ReplicaSet asks for.
//!
//! It does what a production controller has to do:
//!
//! 1. It waits for its caches before it does anything.
//! 2. Events only say *which* set needs a look; what to do is decided from the cache, so that it makes no difference how
//!    many events there were or whether some were missed.
//! 3. It never makes a pod too many, although its cache is always a little behind and answers of the server can get lost
//!    (see `replica_set_controller/intents.rs`).
//! 4. Failures are retried with growing delays, by the queue. Conflicts of status writes are retried at once.
//! 5. When asked to stop it finishes what it has begun.
//!
//! Left out for brevity: adopting pods that nobody owns, and `minReadySeconds`.

mod intents;
mod pods;
mod recorder;
mod status;

use intents::Intents;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::api::{Api, DeleteParams, PostParams, Preconditions};
use kube_informer::{
    Index, IndexError, InformerFactory, Object, ObjectKey, ObjectReferences, SharedInformer, SyncError, Uid,
    WorkQueue, enqueue, enqueue_owner, updates_when, version_changed,
};
use kube_workqueue::HandlerError;
use recorder::Recorder;
use std::{future::Future, time::Duration};

/// Pods that are made or ended in one go; a larger difference takes several.
const BURST: usize = 50;
/// How long a cache may take to show what was done.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps as many pods as each ReplicaSet asks for.
pub struct ReplicaSetController {
    client: kube::Client,
    sets: SharedInformer<ReplicaSet>,
    pods: SharedInformer<Pod>,
    /// The pods of a set, found by its uid: a set that was deleted and made anew does not inherit them.
    by_owner: Index<Uid>,
    queue: WorkQueue<ObjectKey>,
    intents: Intents,
    recorder: Recorder,
}

impl ReplicaSetController {
    /// A controller that reads through a factory's informers, which it may share with others, and writes with a client. The seed
    /// is that of the names it makes up.
    pub fn new(factory: &InformerFactory, client: kube::Client, seed: u64) -> Result<Self, IndexError> {
        let (sets, pods) = (factory.of::<ReplicaSet>(), factory.of::<Pod>());
        let by_owner = pods.index_controller()?;
        let queue = WorkQueue::named("replicasets");
        // Sets are looked at again at every resync: should anything ever have gone wrong, that repairs it.
        sets.add_handler(enqueue(&queue));
        // For pods a resync brings nothing new, so it ends here: the version is the same.
        pods.add_handler(updates_when(version_changed, enqueue_owner::<ReplicaSet>(&queue)));
        let (intents, recorder) = (Intents::new(seed), Recorder::new(client.clone(), "replica-set-example"));
        Ok(Self { client, sets, pods, by_owner, queue, intents, recorder })
    }

    /// The queue of sets that need a look.
    pub fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.queue
    }

    /// Works until `stop` is ready; then finishes what is in hand.
    pub async fn run(&self, workers: usize, stop: impl Future) -> Result<(), SyncError> {
        self.sets.synced(PATIENCE).await?;
        self.pods.synced(PATIENCE).await?;
        self.queue.run_workers(workers, async |key: ObjectKey| self.reconcile(&key).await).until(stop).await;
        self.queue.shutdown();
        Ok(())
    }

    /// Brings one set a step closer to what it asks for. The queue sees to it that no two workers have the same set.
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), HandlerError> {
        let Some(set) = self.sets.lister().get(key) else { return Ok(()) };
        if set.is_deleting() {
            return Ok(());
        }
        let scaled = self.scale(&set).await;
        // Also after a failure: the status tells what is, not what should be.
        let pods = self.pods.lister().by(&self.by_owner, &set.uid());
        status::write(&self.client, &self.sets, &set, &pods).await?;
        scaled
    }

    async fn scale(&self, set: &Object<ReplicaSet>) -> Result<(), HandlerError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), set.namespace().unwrap_or("default"));
        self.learn_of_lost_answers(set, &api).await?;
        let want = pods::wanted(&*set.decode()?);
        let active = pods::active(self.pods.lister().by(&self.by_owner, &set.uid()));
        if active.len() < want {
            for name in self.intents.names(set, (want - active.len()).min(BURST)) {
                self.create(set, &api, &name).await?;
            }
        } else {
            self.intents.drop_all(&set.uid());
            let surplus = active.len() - want;
            for pod in pods::least_missed(active).into_iter().take(surplus.min(BURST)) {
                self.delete(set, &api, &pod).await?;
            }
        }
        Ok(())
    }

    /// Looks for pods whose creation was asked for and not answered.
    async fn learn_of_lost_answers(
        &self,
        set: &Object<ReplicaSet>,
        api: &Api<Pod>,
    ) -> Result<(), HandlerError> {
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
        // Read your own write: the next look at the cache must see this pod.
        self.pods.reached(&made).await?;
        self.intents.settled(&set.uid(), name);
        self.recorder.tell(set, "SuccessfulCreate", &format!("Created pod: {name}")).await;
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
                self.recorder.tell(set, "SuccessfulDelete", &format!("Deleted pod: {}", pod.name())).await
            }
            // Somebody else was quicker, and perhaps made another of the same name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(error.into()),
        }
        // Only a cache that knows of this end can tell how many more have to go.
        let ended =
            |now: Option<&Object<Pod>>| now.is_none_or(|now| now.is_deleting() || now.uid() != pod.uid());
        Ok(self.pods.wait_until(pod.key(), PATIENCE, ended).await?)
    }
}
