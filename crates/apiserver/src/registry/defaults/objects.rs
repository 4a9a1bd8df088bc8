//! Namespaces, secrets, volumes and nodes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::Object;
use super::{child, default_to};

/// The label by which a namespace can be selected by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(in super::super) fn namespace(object: &mut Object) {
    if let Some(name) = object.name().map(str::to_owned) {
        let labels = child(object.metadata_mut(), "labels");
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

pub(in super::super) fn new_namespace(object: &mut Object) {
    let finalizers = object.section_mut("spec").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|f| f == "kubernetes")
    {
        list.push("kubernetes".into());
    }
    object.section_mut("status").insert("phase".to_owned(), "Active".into());
}

/// Only `/finalize` removes the finalizers of a namespace.
pub(in super::super) fn keep_namespace_finalizers(new: &mut Object, old: &Object) {
    new.copy_field("spec", old);
}

/// `stringData` is write-only: it is merged into `data`.
pub(in super::super) fn secret(object: &mut Object) {
    default_to(object.root_mut(), "type", "Opaque");
    if let Some(Value::Object(plain)) = object.root_mut().remove("stringData") {
        let data = object.section_mut("data");
        for (key, value) in plain {
            let text = value.as_str().unwrap_or_default();
            data.insert(key, STANDARD.encode(text).into());
        }
    }
}

pub(in super::super) fn claim(object: &mut Object) {
    default_to(object.section_mut("spec"), "volumeMode", "Filesystem");
}

/// kube-apiserver also adds a finalizer that a controller removes; without that controller the claim could never be deleted.
pub(in super::super) fn new_claim(object: &mut Object) {
    object.section_mut("status").insert("phase".to_owned(), "Pending".into());
}

pub(in super::super) fn volume(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_to(spec, "volumeMode", "Filesystem");
    if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_to(path, "type", "");
    }
}

pub(in super::super) fn new_volume(object: &mut Object) {
    let now = object.meta_str("creationTimestamp").to_owned();
    let status = object.section_mut("status");
    status.insert("phase".to_owned(), "Pending".into());
    status.insert("lastPhaseTransitionTime".to_owned(), now.into());
}
