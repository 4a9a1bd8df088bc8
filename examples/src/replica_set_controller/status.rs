//! The status of a set.

use super::pods;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::api::{Api, PostParams};
use kube_informer::{Object, SharedInformer};
use kube_workqueue::HandlerError;

/// Writes in a row that may meet somebody else's; then the queue takes over, with its delays.
const ATTEMPTS: usize = 5;

/// Writes what there is into the status of a set, if it says something else, and waits for the cache to show it.
pub(super) async fn write(
    client: &kube::Client,
    sets: &SharedInformer<ReplicaSet>,
    set: &Object<ReplicaSet>,
    pods: &[Object<Pod>],
) -> Result<(), HandlerError> {
    let api: Api<ReplicaSet> = Api::namespaced(client.clone(), set.namespace().unwrap_or("default"));
    let mut latest = ReplicaSet::clone(&*set.decode()?);
    for _ in 0..ATTEMPTS {
        // The generation that was acted on, also if there is a newer one by now.
        let status = status_of(set, pods, latest.status.as_ref());
        if latest.status.as_ref() == Some(&status) {
            return Ok(());
        }
        latest.status = Some(status);
        match api.replace_status(set.name(), &PostParams::default(), &latest).await {
            Ok(written) => return Ok(sets.reached(&written).await?),
            Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 409 => match api.get_opt(set.name()).await? {
                Some(newer) if newer.metadata.uid == latest.metadata.uid => latest = newer,
                _ => return Ok(()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Err("the status keeps changing under us; trying again later".into())
}

fn status_of(
    set: &Object<ReplicaSet>,
    pods: &[Object<Pod>],
    before: Option<&ReplicaSetStatus>,
) -> ReplicaSetStatus {
    let active = pods::active(pods.to_vec());
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let (replicas, ready) =
        (count(active.len()), count(active.iter().filter(|pod| pods::is_ready(pod)).count()));
    // What an older self, or a newer one of a restarted controller, has seen is not unseen again.
    let observed = before.and_then(|status| status.observed_generation).max(set.generation());
    ReplicaSetStatus {
        replicas,
        ready_replicas: Some(ready).filter(|&n| n > 0),
        available_replicas: Some(ready).filter(|&n| n > 0),
        fully_labeled_replicas: Some(replicas).filter(|&n| n > 0),
        observed_generation: observed,
        conditions: before.and_then(|status| status.conditions.clone()),
        terminating_replicas: None,
    }
}
