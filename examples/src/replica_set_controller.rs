//! A complete controller: keeps as many pods running as each ReplicaSet asks for.
//!
//! 1. Events only decide *which* set is reconciled. The changes to make follow from the cache.
//! 2. It never creates too many pods, although its cache lags behind and responses get lost: a set is reconciled again when
//!    the cache shows all writes of the previous reconcile. A pod gets its name before the create request, so that a pod
//!    whose response got lost is found by its name.
//! 3. A reconcile that fails is retried with growing delays.
//! 4. When it is stopped, it finishes the sets in flight.
//!
//! Left out for brevity: adoption of orphaned pods, and `minReadySeconds`.

use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetStatus},
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_informer::{IndexError, InformerFactory, Object};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, EventType, RunController, controlled_by,
};
use std::cmp::Reverse;

/// Number of pods that are created or deleted in one reconcile; a larger difference takes several.
const BURST: usize = 50;

/// A controller that reads through the informers of a factory, which it may share with others, and writes with a client.
pub fn replica_set_controller(
    factory: &InformerFactory,
    client: kube::Client,
) -> Result<RunController, IndexError> {
    let (sets, pods) = (factory.of::<ReplicaSet>(), factory.of::<Pod>());
    // By the uid of their set: a set that was deleted and recreated does not inherit pods.
    let by_owner = pods.index_controller()?;
    let lister = pods.lister();
    let controller = Controller::new(&sets, client).named("replicasets").owns(&pods).concurrency(4);
    Ok(controller.run(move |set: Object<ReplicaSet>, context: Context| {
        let lister = lister.clone();
        async move {
            if set.is_deleting() {
                return Ok(Action::done());
            }
            let scaled = scale(&set, lister.by(&by_owner, &set.uid())?, &context).await;
            // Also after a failure: the status describes the actual state.
            let status = status(&set, &lister.by(&by_owner, &set.uid())?)?;
            context.update_status(&set, &status).await?;
            scaled
        }
    }))
}

/// Creates missing pods, or deletes surplus ones.
async fn scale(
    set: &Object<ReplicaSet>,
    pods: Vec<Object<Pod>>,
    context: &Context,
) -> Result<Action, BoxError> {
    let (mut active, want) = (active(pods), wanted(&*set.decode()?));
    if active.len() < want {
        for _ in 0..(want - active.len()).min(BURST) {
            let pod = from_template(set)?;
            match context.create(&pod).await {
                Ok(pod) => {
                    let note = format!("Created pod: {}", pod.metadata.name.unwrap_or_default());
                    context.event(set, EventType::Normal, "SuccessfulCreate", &note);
                }
                Err(error) => {
                    let note = format!("Error creating: {error}");
                    context.event(set, EventType::Warning, "FailedCreate", &note);
                    return Err(error.into());
                }
            }
        }
    } else {
        active.sort_by_cached_key(deletion_rank);
        for pod in active.iter().take((active.len() - want).min(BURST)) {
            context.delete(pod).await?;
            let note = format!("Deleted pod: {}", pod.name());
            context.event(set, EventType::Normal, "SuccessfulDelete", &note);
        }
    }
    Ok(Action::done())
}

/// Number of pods that a set asks for.
fn wanted(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// A pod from the template of a set, with a new name.
fn from_template(set: &Object<ReplicaSet>) -> Result<Pod, BoxError> {
    let template = set.decode()?.spec.as_ref().and_then(|spec| spec.template.clone());
    let PodTemplateSpec { metadata, spec } = template.unwrap_or_default();
    let ObjectMeta { labels, annotations, finalizers, .. } = metadata.unwrap_or_default();
    let name = Some(format!("{}-{:05x}", set.name(), fastrand::u32(..1 << 20)));
    let metadata = ObjectMeta { name, labels, annotations, finalizers, ..ObjectMeta::default() };
    Ok(controlled_by(Pod { metadata, spec, status: None }, set)?)
}

/// Pods that are neither terminating nor finished. One that cannot be decoded counts, so that it is not replaced.
fn active(mut pods: Vec<Object<Pod>>) -> Vec<Object<Pod>> {
    pods.retain(|pod| !pod.is_deleting() && !matches!(phase(pod).as_str(), "Succeeded" | "Failed"));
    pods
}

fn phase(pod: &Object<Pod>) -> String {
    let status = pod.decode().ok().and_then(|pod| pod.status.clone());
    status.and_then(|status| status.phase).unwrap_or_default()
}

fn is_ready(pod: &Object<Pod>) -> bool {
    let Ok(pod) = pod.decode() else { return false };
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Unscheduled, pending and unready pods are deleted first, then the youngest.
fn deletion_rank(pod: &Object<Pod>) -> impl Ord + use<> {
    let decoded = pod.decode().ok();
    let scheduled = decoded.as_ref().is_some_and(|pod| {
        pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref().is_some_and(|node| !node.is_empty()))
    });
    let created = decoded.and_then(|pod| pod.metadata.creation_timestamp.clone());
    (scheduled, phase(pod) == "Running", is_ready(pod), Reverse(created), pod.key().clone())
}

fn status(set: &Object<ReplicaSet>, pods: &[Object<Pod>]) -> Result<ReplicaSetStatus, BoxError> {
    let pods = active(pods.to_vec());
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let (replicas, ready) = (count(pods.len()), count(pods.iter().filter(|pod| is_ready(pod)).count()));
    let mut status = set.decode()?.status.clone().unwrap_or_default();
    status.replicas = replicas;
    status.ready_replicas = Some(ready).filter(|&n| n > 0);
    status.available_replicas = status.ready_replicas;
    status.fully_labeled_replicas = Some(replicas).filter(|&n| n > 0);
    status.observed_generation = set.generation();
    Ok(status)
}
