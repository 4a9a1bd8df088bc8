//! Workloads: resources that create pods from a template.

use serde_json::{Map, Value, json};

use super::super::Object;
use super::pod::pod_spec;
use super::{child, default_to, each};

fn template(object: &mut Object) -> &mut Map<String, Value> {
    let spec = object.section_mut("spec");
    let template = child(spec, "template");
    pod_spec(child(template, "spec"));
    spec
}

pub(in super::super) fn pod_template(object: &mut Object) {
    pod_spec(child(object.section_mut("template"), "spec"));
}

pub(in super::super) fn deployment(object: &mut Object) {
    let spec = template(object);
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    let strategy = child(spec, "strategy");
    default_to(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_to(rolling, "maxSurge", "25%");
        default_to(rolling, "maxUnavailable", "25%");
    }
}

pub(in super::super) fn replica_set(object: &mut Object) {
    default_to(template(object), "replicas", 1);
}

/// Selector and labels of a replication controller default to the labels of its template.
pub(in super::super) fn replication_controller(object: &mut Object) {
    let spec = template(object);
    default_to(spec, "replicas", 1);
    let labels = spec["template"].get("metadata").and_then(|metadata| metadata.get("labels")).cloned();
    let Some(labels) = labels else { return };
    default_to(spec, "selector", labels.clone());
    object.metadata_mut().entry("labels").or_insert(labels);
}

pub(in super::super) fn stateful_set(object: &mut Object) {
    let spec = template(object);
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "podManagementPolicy", "OrderedReady");
    for claim in each(spec, "volumeClaimTemplates") {
        default_to(claim, "apiVersion", "v1");
        default_to(claim, "kind", "PersistentVolumeClaim");
        default_to(child(claim, "spec"), "volumeMode", "Filesystem");
        default_to(child(claim, "status"), "phase", "Pending");
    }
    let policy = child(spec, "persistentVolumeClaimRetentionPolicy");
    default_to(policy, "whenDeleted", "Retain");
    default_to(policy, "whenScaled", "Retain");
    let strategy = child(spec, "updateStrategy");
    default_to(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        default_to(child(strategy, "rollingUpdate"), "partition", 0);
    }
}

pub(in super::super) fn daemon_set(object: &mut Object) {
    let spec = template(object);
    default_to(spec, "revisionHistoryLimit", 10);
    let strategy = child(spec, "updateStrategy");
    default_to(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default_to(rolling, "maxSurge", 0);
        default_to(rolling, "maxUnavailable", 1);
    }
}

/// The deprecated annotation with the generation of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(in super::super) fn new_daemon_set(object: &mut Object) {
    count_template(object, 1);
}

/// The generation of the template increases when the template changes, whatever the client sends.
pub(in super::super) fn keep_template_generation(new: &mut Object, old: &Object) {
    let counted = old.metadata().get("annotations").and_then(|a| a[TEMPLATE_GENERATION].as_str());
    let counted: i64 = counted.and_then(|text| text.parse().ok()).unwrap_or(1);
    let changed = new.at("/spec/template") != old.at("/spec/template");
    count_template(new, counted + i64::from(changed));
}

fn count_template(object: &mut Object, count: i64) {
    let annotations = child(object.metadata_mut(), "annotations");
    annotations.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
}

fn job_spec(spec: &mut Map<String, Value>) {
    pod_spec(child(child(spec, "template"), "spec"));
    default_to(spec, "backoffLimit", 6);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    default_to(spec, "podReplacementPolicy", "TerminatingOrFailed");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        default_to(spec, "completions", 1);
    }
    default_to(spec, "parallelism", 1);
    default_to(spec, "manualSelector", false);
}

/// The labels of a job default to those of its pods.
pub(in super::super) fn job(object: &mut Object) {
    job_spec(object.section_mut("spec"));
    if !object.metadata().contains_key("labels")
        && let Some(labels) = object.at("/spec/template/metadata/labels").cloned()
    {
        object.metadata_mut().insert("labels".to_owned(), labels);
    }
}

/// A new job selects its pods by its uid, unless `manualSelector` is set.
pub(in super::super) fn new_job(object: &mut Object) {
    let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let (uid, name) = (owned(object.uid()), owned(object.name()));
    let spec = object.section_mut("spec");
    if spec.get("manualSelector") != Some(&Value::Bool(true)) {
        let labels = child(child(child(spec, "template"), "metadata"), "labels");
        for prefix in ["batch.kubernetes.io/", ""] {
            labels.insert(format!("{prefix}controller-uid"), uid.clone().into());
            labels.insert(format!("{prefix}job-name"), name.clone().into());
        }
        spec.insert(
            "selector".to_owned(),
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
        );
    }
    job(object);
}

pub(in super::super) fn cron_job(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "concurrencyPolicy", "Allow");
    default_to(spec, "suspend", false);
    default_to(spec, "successfulJobsHistoryLimit", 3);
    default_to(spec, "failedJobsHistoryLimit", 1);
    let template = child(child(spec, "jobTemplate"), "spec");
    pod_spec(child(child(template, "template"), "spec"));
}
