//! `DefaultStorageClass` and `DefaultIngressClass`: claims and ingresses that name no class get the default one.

use std::sync::Arc;

use serde_json::Value;

use super::index::Index;
use crate::registry::Object;

/// Annotations of a default storage class. The second is the older form.
const DEFAULT_STORAGE_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
/// The annotations that named a class before there were fields.
pub(super) const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Sets the storage class of a new claim.
pub(super) fn of_claim(classes: &Index, claim: &mut Object) {
    set(claim, "storageClassName", STORAGE_CLASS, || newest(classes, &DEFAULT_STORAGE_CLASS));
}

/// Sets the class of a new ingress.
pub(super) fn of_ingress(classes: &Index, ingress: &mut Object) {
    set(ingress, "ingressClassName", INGRESS_CLASS, || newest(classes, &DEFAULT_INGRESS_CLASS));
}

/// An empty class is a class: it says that the object has none.
fn set(object: &mut Object, field: &str, annotation: &str, class: impl FnOnce() -> Option<Arc<Object>>) {
    let names_class = object.at("/spec").and_then(|spec| spec.get(field)).is_some_and(|name| !name.is_null());
    if names_class || annotation_of(object, annotation).is_some() {
        return;
    }
    if let Some(name) = class().and_then(|class| class.name().map(str::to_owned)) {
        object.section_mut("spec").insert(field.to_owned(), name.into());
    }
}

/// Of several default classes the newest counts; of equally new ones, the first by name.
fn newest(classes: &Index, annotations: &[&str]) -> Option<Arc<Object>> {
    let is_default = |class: &Arc<Object>| {
        annotations.iter().any(|annotation| annotation_of(class, annotation) == Some("true"))
    };
    let mut defaults: Vec<_> = classes.all().into_iter().filter(is_default).collect();
    // Stable, and the index is in order of names. Times in this form sort as text.
    defaults.sort_by(|a, b| b.meta_str("creationTimestamp").cmp(a.meta_str("creationTimestamp")));
    defaults.into_iter().next()
}

fn annotation_of<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.metadata().get("annotations")?.get(name).and_then(Value::as_str)
}
