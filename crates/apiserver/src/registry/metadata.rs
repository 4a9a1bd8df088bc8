//! Validation of `metadata`, on create and on update.

use std::collections::HashSet;

use serde_json::Value;

use super::names::{NameRule, label, label_value, qualified_name};
use super::{Object, Resource};
use crate::status::{FieldError, FieldErrors};

/// All annotations of an object together, keys and values.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The errors in the metadata of an object.
pub(crate) fn validate_metadata(resource: &Resource, object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let rule = resource.rules.names;
    if let Some(prefix) = object.generate_name() {
        let faults = rule.check(prefix, true);
        errors.extend(faults.into_iter().map(|e| FieldError::invalid("metadata.generateName", prefix, e)));
    }
    match object.name() {
        None => errors.push(FieldError::required("metadata.name", "name or generateName is required")),
        Some(name) => {
            let faults = rule.check(name, false);
            errors.extend(faults.into_iter().map(|e| FieldError::invalid("metadata.name", name, e)));
        }
    }
    errors.extend(labels(object));
    errors.extend(annotations(object));
    errors.extend(owners(object));
    errors.extend(finalizers(object, resource.group.is_core()));
    errors
}

/// The errors in the metadata of an object that is a part of another one. It need not have a name.
pub(crate) fn validate_embedded_metadata(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut check = |field: &str, text: Option<&str>, faults: fn(&str) -> Vec<String>| {
        let text = text.unwrap_or_default();
        let faults = if text.is_empty() { Vec::new() } else { faults(text) };
        errors.extend(
            faults.into_iter().map(|why| FieldError::invalid(format!("metadata.{field}"), text, why)),
        );
    };
    check("generateName", object.generate_name(), |text| NameRule::PathSegment.check(text, true));
    check("name", object.name(), |text| NameRule::PathSegment.check(text, false));
    check("namespace", object.namespace(), label);
    errors.extend(labels(object));
    errors.extend(annotations(object));
    errors.extend(owners(object));
    errors.extend(finalizers(object, false));
    errors
}

/// The errors of the change from `old` to `new`.
pub(crate) fn validate_metadata_update(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if old.is_deleting() {
        let before: HashSet<&str> = old.finalizers().into_iter().collect();
        let added: Vec<&str> = new.finalizers().into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let added = added.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(", ");
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{added}}}"
            );
            errors.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    for field in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (is, was) = (new.metadata().get(field), old.metadata().get(field));
        if is != was {
            let is = is.cloned().unwrap_or(Value::String(String::new()));
            errors.push(FieldError::invalid(format!("metadata.{field}"), is, "field is immutable"));
        }
    }
    // kube-apiserver reports these errors twice, and clients count causes.
    errors.extend(errors.clone());
    errors
}

/// The errors of a map of labels anywhere in an object.
pub(super) fn validate_labels(labels: Option<&Value>, field: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(qualified_name(key).into_iter().map(|e| FieldError::invalid(field, key, e)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(label_value(value).into_iter().map(|e| FieldError::invalid(field, value, e)));
    }
    errors
}

fn labels(object: &Object) -> FieldErrors {
    validate_labels(object.metadata().get("labels"), "metadata.labels")
}

fn annotations(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut total = 0;
    for (key, value) in object.metadata().get("annotations").and_then(Value::as_object).into_iter().flatten()
    {
        // Keys may have capitals; the check is on the lower-cased key.
        let faults = qualified_name(&key.to_lowercase());
        errors.extend(faults.into_iter().map(|e| FieldError::invalid("metadata.annotations", key, e)));
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
    errors
}

fn owners(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut controllers = 0;
    for (i, owner) in
        object.metadata().get("ownerReferences").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        let at = format!("metadata.ownerReferences[{i}]");
        let text = |field| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(format!("{at}.{field}"), "", why));
            }
        }
        controllers += usize::from(owner.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        errors.push(FieldError::invalid("metadata.ownerReferences", controllers, why));
    }
    errors
}

/// `is_core` is whether the object is of the core group, whose finalizers are qualified.
fn finalizers(object: &Object, is_core: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, finalizer) in object.finalizers().into_iter().enumerate() {
        let faults = qualified_name(finalizer);
        errors.extend(faults.into_iter().map(|e| FieldError::invalid("metadata.finalizers", finalizer, e)));
        let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer);
        if is_core && !finalizer.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{i}]"), finalizer, why));
        }
    }
    errors
}
