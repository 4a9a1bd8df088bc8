//! The ReplicaSet controller of the demo: the shortest one that is still correct. `examples/` has a complete one.

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::api::{Api, DeleteParams, PostParams};
use kube_informer::{
    HandlerError, HandlerOptions, Index, IndexError, InformerFactory, Object, ObjectKey, ObjectReferences,
    SharedInformer, Uid, WorkQueue, enqueue, enqueue_owner, updates_when, version_changed,
};
use kube_informer_wire::sync::lock;
use serde_json::json;
use std::{sync::Mutex, time::Duration};

const WORKERS: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Creates and deletes pods until each ReplicaSet has as many as it asks for.
pub(crate) struct ReplicaSets {
    client: kube::Client,
    sets: SharedInformer<ReplicaSet>,
    pods: SharedInformer<Pod>,
    by_owner: Index<Uid>,
    queue: WorkQueue<ObjectKey>,
    rng: Mutex<fastrand::Rng>,
}

impl ReplicaSets {
    pub(crate) fn new(
        factory: &InformerFactory,
        client: kube::Client,
        seed: u64,
    ) -> Result<Self, IndexError> {
        let (sets, pods) = (factory.of::<ReplicaSet>(), factory.of::<Pod>());
        let (by_owner, queue) = (pods.index_controller()?, WorkQueue::named("replicasets"));
        let named = || HandlerOptions::new().name("replicasets");
        sets.add_handler_with(enqueue(&queue), named());
        pods.add_handler_with(updates_when(version_changed, enqueue_owner::<ReplicaSet>(&queue)), named());
        Ok(Self { client, sets, pods, by_owner, queue, rng: Mutex::new(fastrand::Rng::with_seed(seed)) })
    }

    /// The queue of sets to reconcile.
    pub(crate) fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.queue
    }

    /// Reconciles for as long as it is polled.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        self.sets.synced(TIMEOUT).await?;
        self.pods.synced(TIMEOUT).await?;
        self.queue.run_workers(WORKERS, async |key: ObjectKey| self.reconcile(&key).await).await;
        Ok(())
    }

    async fn reconcile(&self, key: &ObjectKey) -> Result<(), HandlerError> {
        let Some(set) = self.sets.lister().get(key) else { return Ok(()) };
        let mut pods = self.pods.lister().by(&self.by_owner, &set.uid())?;
        pods.retain(|pod| !pod.is_deleting());
        let replicas = set.decode()?.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let replicas = usize::try_from(replicas).unwrap_or(0);
        for _ in pods.len()..replicas {
            self.create(&set).await?;
        }
        for pod in pods.iter().skip(replicas) {
            self.delete(pod).await?;
        }
        Ok(())
    }

    async fn create(&self, set: &Object<ReplicaSet>) -> Result<(), HandlerError> {
        let template = set.decode()?.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
        let suffix: String = {
            let mut rng = lock(&self.rng);
            (0..5).map(|_| rng.lowercase()).collect()
        };
        let labels = template.metadata.and_then(|metadata| metadata.labels);
        let pod = json!({
            "metadata": {"name": format!("{}-{suffix}", set.name()), "labels": labels,
                "ownerReferences": [set.controller_owner_ref()?]},
            "spec": template.spec,
        });
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let created = api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        // The next look at the cache must see this pod, or there would be one too many.
        Ok(self.pods.reached(&created).await?)
    }

    async fn delete(&self, pod: &Object<Pod>) -> Result<(), HandlerError> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        match api.delete(pod.name(), &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
        let deleted =
            |now: Option<&Object<Pod>>| now.is_none_or(|now| now.is_deleting() || now.uid() != pod.uid());
        Ok(self.pods.wait_until(pod.key(), TIMEOUT, deleted).await?)
    }
}
