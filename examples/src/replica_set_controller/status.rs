//! The status of a set.

use super::pods;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetStatus},
    core::v1::Pod,
};
use kube::api::{Api, PostParams};
use kube_informer::{Object, SharedInformer};
use kube_workqueue::HandlerError;

/// Attempts that may conflict with other writes; then the queue retries later.
const ATTEMPTS: usize = 5;

/// Updates the status of a set if it differs, and waits until the cache shows it.
pub(super) async fn write(
    client: &kube::Client,
    sets: &SharedInformer<ReplicaSet>,
    set: &Object<ReplicaSet>,
    pods: &[Object<Pod>],
) -> Result<(), HandlerError> {
    let api: Api<ReplicaSet> = Api::namespaced(client.clone(), set.namespace().unwrap_or("default"));
    let mut latest = ReplicaSet::clone(&*set.decode()?);
    for _ in 0..ATTEMPTS {
        // The generation that was reconciled, even if there is a newer one.
        let status = status_of(set, pods, latest.status.as_ref());
        if latest.status.as_ref() == Some(&status) {
            return Ok(());
        }
        latest.status = Some(status);
        match api.replace_status(set.name(), &PostParams::default(), &latest).await {
            Ok(written) => return Ok(sets.reached(&written).await?),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => match api.get_opt(set.name()).await? {
                Some(newer) if newer.metadata.uid == latest.metadata.uid => latest = newer,
                _ => return Ok(()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Err("the status was changed concurrently; retrying later".into())
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
    // The observed generation never decreases, even with a stale cache.
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
