//! `StorageObjectInUseProtection`: a finalizer keeps claims, volumes and classes of volume attributes while they are in use. The
//! controllers of kube-controller-manager remove it.

use serde_json::{Value, json};

use crate::registry::Object;

pub(super) const CLAIM: &str = "kubernetes.io/pvc-protection";
pub(super) const VOLUME: &str = "kubernetes.io/pv-protection";
pub(super) const ATTRIBUTES_CLASS: &str = "kubernetes.io/vac-protection";

/// Adds a finalizer to a new object.
pub(super) fn protect(object: &mut Object, finalizer: &str) {
    let finalizers = object.metadata_mut().entry("finalizers").or_insert(Value::Null);
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|present| present == finalizer)
    {
        list.push(finalizer.into());
    }
}
