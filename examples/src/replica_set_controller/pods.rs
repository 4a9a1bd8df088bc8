//! The pods of a set.

use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube_informer::Object;
use serde::Deserialize;

/// Number of pods that a set asks for.
pub(super) fn wanted(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// A pod from the template of a set.
pub(super) fn from_template(set: &ReplicaSet, owner: OwnerReference, name: &str) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone());
    let PodTemplateSpec { metadata, spec } = template.unwrap_or_default();
    let ObjectMeta { labels, annotations, finalizers, .. } = metadata.unwrap_or_default();
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: set.metadata.namespace.clone(),
        labels,
        annotations,
        finalizers,
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec, status: None }
}

/// The fields of a pod that are used here: decoding them is much cheaper than decoding the pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct View {
    metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    creation_timestamp: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl View {
    /// A pod that cannot be decoded counts as active, so that it is not replaced.
    fn of(pod: &Object<Pod>) -> Self {
        pod.view().unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}

/// Whether the pod is ready.
pub(super) fn is_ready(pod: &Object<Pod>) -> bool {
    View::of(pod).is_ready()
}

/// Pods that are neither terminating nor finished.
pub(super) fn active(mut pods: Vec<Object<Pod>>) -> Vec<Object<Pod>> {
    pods.retain(|pod| !pod.is_deleting() && !View::of(pod).is_finished());
    pods
}

/// Pods in the order of deletion: unscheduled and unready ones first, then the youngest.
pub(super) fn deletion_order(mut pods: Vec<Object<Pod>>) -> Vec<Object<Pod>> {
    pods.sort_by_cached_key(|pod| {
        let view = View::of(pod);
        let progress = (view.spec.node_name.is_some(), view.status.phase == "Running", view.is_ready());
        (progress, std::cmp::Reverse(view.metadata.creation_timestamp), pod.key().clone())
    });
    pods
}
