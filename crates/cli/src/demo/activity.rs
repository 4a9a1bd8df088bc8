//! Activity in the demo cluster: a deployment controller, a scheduler and kubelets, and random changes by users.

use anyhow::Context;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Node, Pod},
};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_informer::{
    HandlerError, HandlerOptions, InformerFactory, Object, ObjectKey, ObjectReferences, SharedInformer,
    WorkQueue, enqueue, enqueue_owner,
};
use serde_json::{Value, json};
use std::time::Duration;

const DEPLOYMENTS: [(&str, i32); 5] = [("web", 6), ("cart", 4), ("search", 5), ("billing", 3), ("mailer", 2)];
/// Average time between two changes.
const PACE: Duration = Duration::from_millis(600);
const TIMEOUT: Duration = Duration::from_secs(30);

/// Simulates the controllers, kubelets and users that the demo does not show.
pub(crate) struct Activity {
    deployments: SharedInformer<Deployment>,
    sets: SharedInformer<ReplicaSet>,
    pods: SharedInformer<Pod>,
    nodes: SharedInformer<Node>,
    rollouts: WorkQueue<ObjectKey>,
    kubelets: WorkQueue<ObjectKey>,
    client: kube::Client,
    seed: u64,
}

impl Activity {
    pub(crate) fn new(factory: &InformerFactory, client: kube::Client, seed: u64) -> Self {
        let (rollouts, kubelets) = (WorkQueue::named("rollouts"), WorkQueue::named("kubelets"));
        let (deployments, sets) = (factory.of::<Deployment>(), factory.of::<ReplicaSet>());
        let (pods, nodes) = (factory.of::<Pod>(), factory.of::<Node>());
        let named = |name: &str| HandlerOptions::new().name(name);
        deployments.add_handler_with(enqueue(&rollouts), named("rollouts"));
        sets.add_handler_with(enqueue_owner::<Deployment>(&rollouts), named("rollouts"));
        pods.add_handler_with(enqueue(&kubelets), named("kubelets"));
        Self { deployments, sets, pods, nodes, rollouts, kubelets, client, seed }
    }

    /// Its work queues.
    pub(crate) fn queues(&self) -> [&WorkQueue<ObjectKey>; 2] {
        [&self.rollouts, &self.kubelets]
    }

    /// Runs for as long as it is polled.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let api: Api<Deployment> = self.api();
        for (name, replicas) in DEPLOYMENTS {
            let deployment = serde_json::from_value(deployment(name, replicas))?;
            api.create(&PostParams::default(), &deployment).await.context("cannot create a deployment")?;
        }
        self.deployments.synced(TIMEOUT).await?;
        self.sets.synced(TIMEOUT).await?;
        self.nodes.synced(TIMEOUT).await?;
        let rollouts = self.rollouts.run_workers(1, async |key: ObjectKey| self.roll_out(&key).await);
        let kubelets = self.kubelets.run_workers(4, async |key: ObjectKey| self.run_pod(&key).await);
        tokio::join!(rollouts, kubelets, self.changes());
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Gives a deployment one replica set of its size.
    async fn roll_out(&self, key: &ObjectKey) -> Result<(), HandlerError> {
        let Some(owner) = self.deployments.lister().get(key) else { return Ok(()) };
        let spec = owner.decode()?.spec.clone().unwrap_or_default();
        let name = format!("{}-1", key.name());
        let api: Api<ReplicaSet> = self.api();
        let written = match self.sets.lister().get(&ObjectKey::new(key.namespace(), &name)) {
            Some(set) if set.decode()?.spec.as_ref().and_then(|s| s.replicas) == spec.replicas => {
                return Ok(());
            }
            Some(_) => {
                let patch = Patch::Merge(json!({"spec": {"replicas": spec.replicas}}));
                api.patch(&name, &PatchParams::default(), &patch).await?
            }
            None => {
                let set = json!({
                    "metadata": {"name": name, "ownerReferences": [owner.controller_owner_ref()?]},
                    "spec": {"replicas": spec.replicas, "selector": spec.selector, "template": spec.template},
                });
                api.create(&PostParams::default(), &serde_json::from_value(set)?).await?
            }
        };
        Ok(self.sets.reached(&written).await?)
    }

    /// Does what a scheduler and a kubelet do: binds the pod to a node, starts it, and removes it when it is deleted.
    async fn run_pod(&self, key: &ObjectKey) -> Result<(), HandlerError> {
        let Some(pod) = self.pods.lister().get(key) else { return Ok(()) };
        let api: Api<Pod> = self.api();
        if pod.is_deleting() {
            let removed = api.delete(key.name(), &DeleteParams::default().grace_period(0)).await;
            return removed.map(drop).or_else(ignore_conflict);
        }
        let decoded = pod.decode()?;
        let placed = decoded.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let running =
            decoded.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        if !placed {
            let Some(node) = self.node_for(&pod) else { return Err("no node is ready".into()) };
            return self.bind(&pod, &node).await.or_else(ignore_conflict);
        }
        if !running {
            let patch = Patch::Merge(
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
            );
            let started = api.patch_status(key.name(), &PatchParams::default(), &patch).await;
            return started.map(drop).or_else(ignore_conflict);
        }
        Ok(())
    }

    /// A ready node, the same for the same pod.
    fn node_for(&self, pod: &Object<Pod>) -> Option<String> {
        let nodes = self.nodes.lister().list();
        let ready: Vec<_> = nodes.iter().filter(|node| is_ready(node)).collect();
        let choice =
            pod.name().bytes().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        ready.get(choice % ready.len().max(1)).map(|node| node.name().to_owned())
    }

    async fn bind(&self, pod: &Object<Pod>, node: &str) -> Result<(), kube::Error> {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name()},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        let api: Api<Pod> = self.api();
        api.create_subresource::<_, Value>("binding", pod.name(), &PostParams::default(), &binding)
            .await
            .map(drop)
    }

    /// Scales deployments, deletes pods, lets nodes fail and recover.
    async fn changes(&self) {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        loop {
            tokio::time::sleep(PACE.mul_f64(0.5 + rng.f64())).await;
            let change = match rng.u8(..10) {
                0..=4 => self.scale(&mut rng).await,
                5..=7 => self.delete_pod(&mut rng).await,
                _ => self.toggle_node(&mut rng).await,
            };
            if let Err(error) = change {
                tracing::debug!(%error, "a change of the demo failed");
            }
        }
    }

    async fn scale(&self, rng: &mut fastrand::Rng) -> Result<(), kube::Error> {
        let (name, usual) = DEPLOYMENTS[rng.usize(..DEPLOYMENTS.len())];
        let patch = Patch::Merge(json!({"spec": {"replicas": usual + rng.i32(-2..=3)}}));
        self.api::<Deployment>().patch(name, &PatchParams::default(), &patch).await.map(drop)
    }

    async fn delete_pod(&self, rng: &mut fastrand::Rng) -> Result<(), kube::Error> {
        let pods = self.pods.lister().list();
        let Some(pod) = pods.iter().nth(rng.usize(..pods.len().max(1))) else { return Ok(()) };
        self.api::<Pod>().delete(pod.name(), &DeleteParams::default()).await.map(drop)
    }

    /// Repairs a failed node, or lets one fail and deletes its pods.
    async fn toggle_node(&self, rng: &mut fastrand::Rng) -> Result<(), kube::Error> {
        let nodes = self.nodes.lister().list();
        let failed = nodes.iter().find(|node| !is_ready(node));
        let (node, ready) = match failed {
            Some(node) => (node, "True"),
            None => match nodes.iter().nth(rng.usize(..nodes.len().max(1))) {
                Some(node) => (node, "False"),
                None => return Ok(()),
            },
        };
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let api: Api<Node> = Api::all(self.client.clone());
        api.patch_status(node.name(), &PatchParams::default(), &Patch::Merge(status)).await?;
        if ready == "False" {
            for pod in self.pods.lister().list().iter().filter(|pod| is_on(pod, node.name())) {
                self.api::<Pod>().delete(pod.name(), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}

fn is_on(pod: &Object<Pod>, node: &str) -> bool {
    pod.view::<Value>().is_ok_and(|pod| pod["spec"]["nodeName"] == node)
}

fn is_ready(node: &Object<Node>) -> bool {
    let conditions =
        node.view::<Value>().map(|node| node["status"]["conditions"].clone()).unwrap_or_default();
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    conditions.as_array().is_some_and(|conditions| conditions.iter().any(ready))
}

/// Ignores that an object was deleted or changed meanwhile.
fn ignore_conflict(error: kube::Error) -> Result<(), HandlerError> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 404 | 409) => Ok(()),
        other => Err(other.into()),
    }
}

fn deployment(name: &str, replicas: i32) -> Value {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": format!("registry.example.com/{name}:1"),
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}});
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    })
}
