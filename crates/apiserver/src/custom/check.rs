//! Validation of CRDs, with the error messages of kube-apiserver.

mod keywords;
mod structural;
mod versions;

use serde_json::Value;

use super::conditions;
use super::definition::{Names, Spec};
use crate::registry::Object;
use crate::registry::label_1035;
use crate::registry::subdomain;
use crate::status::{FieldError, FieldErrors};

/// Suffixes of the groups that are reserved for Kubernetes.
const PROTECTED: [&str; 2] = [".k8s.io", ".kubernetes.io"];
/// The annotation that a CRD in a protected group requires.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Returns the errors of a CRD.
pub(crate) fn validate(object: &Object) -> FieldErrors {
    let spec = match Spec::read(object.at("/spec")) {
        Ok(spec) => spec,
        Err(error) => return [FieldError::invalid("spec", "", error.to_string())].into(),
    };
    let mut errors = FieldErrors::new();
    let name = object.name().unwrap_or_default();
    if name != format!("{}.{}", spec.names.plural, spec.group) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    errors.extend(check_group(&spec.group));
    match spec.scope.as_str() {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    if spec.preserve_unknown_fields {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                   instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    errors.extend(versions::check(&spec, object.at("/spec/versions")));
    for (field, name) in [
        ("plural", &spec.names.plural),
        ("singular", &spec.names.singular),
        ("kind", &spec.names.kind),
        ("listKind", &spec.names.list_kind),
    ] {
        if name.is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    errors.extend(check_names(&spec.names, "spec.names"));
    errors.extend(check_conversion(&spec));
    errors.extend(check_approval(object, &spec));
    errors
}

/// Returns the errors of an update from `old` to `new`.
pub(crate) fn validate_update(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut immutable = |pointer: &str, field: &str| {
        if new.at(pointer) != old.at(pointer) {
            errors.push(FieldError::invalid(field, new.at(pointer), "field is immutable"));
        }
    };
    if conditions::holds(old, "Established") {
        immutable("/spec/scope", "spec.scope");
        immutable("/spec/names/kind", "spec.names.kind");
    }
    immutable("/spec/group", "spec.group");
    immutable("/spec/names/plural", "spec.names.plural");
    errors.extend(check_stored_versions(new));
    errors
}

/// Checks that the CRD still has all stored versions.
fn check_stored_versions(object: &Object) -> FieldErrors {
    let versions = object.at("/spec/versions").and_then(Value::as_array);
    let names: Vec<&str> = versions.into_iter().flatten().filter_map(|v| v["name"].as_str()).collect();
    let stored = object.at("/status/storedVersions").and_then(Value::as_array);
    let stored = stored.into_iter().flatten().filter_map(Value::as_str).enumerate();
    let missing = stored.filter(|(_, version)| !names.contains(version));
    missing
        .map(|(i, version)| {
            let why = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a \
                 storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            FieldError::invalid(format!("status.storedVersions[{i}]"), version, why)
        })
        .collect()
}

fn check_group(group: &str) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    let faults = subdomain(group);
    if !faults.is_empty() {
        return Some(FieldError::invalid("spec.group", group, faults.join(",")));
    }
    (!group.contains('.'))
        .then(|| FieldError::invalid("spec.group", group, "should be a domain with at least one dot"))
}

fn check_names(names: &Names, path: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut label = |field: String, name: &str| {
        let faults = label_1035(name);
        if !name.is_empty() && !faults.is_empty() {
            errors.push(FieldError::invalid(field, name, faults.join(",")));
        }
    };
    label(format!("{path}.plural"), &names.plural);
    label(format!("{path}.singular"), &names.singular);
    for (i, short) in names.short_names.iter().enumerate() {
        label(format!("{path}.shortNames[{i}]"), short);
    }
    for (i, category) in names.categories.iter().enumerate() {
        label(format!("{path}.categories[{i}]"), category);
    }
    for (field, kind) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let faults = label_1035(&kind.to_lowercase());
        if !kind.is_empty() && !faults.is_empty() {
            let why = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            errors.push(FieldError::invalid(format!("{path}.{field}"), kind, why));
        }
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{path}.listKind"), &names.list_kind, why));
    }
    errors
}

/// This server converts between versions only by changing `apiVersion`; it does not call webhooks.
fn check_conversion(spec: &Spec) -> Option<FieldError> {
    let conversion = spec.conversion.as_ref()?;
    match conversion.strategy.as_str() {
        "" => Some(FieldError::required("spec.conversion.strategy", "")),
        "None" if conversion.webhook.is_some() => {
            let why = "should not be set when strategy is not set to Webhook";
            Some(FieldError::forbidden("spec.conversion.webhook", why))
        }
        "Webhook" if spec.versions.len() > 1 => {
            let why = "this server does not call conversion webhooks: use None, which only rewrites apiVersion, or define one version";
            Some(FieldError::invalid("spec.conversion.strategy", "Webhook", why))
        }
        "None" | "Webhook" => None,
        other => Some(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"])),
    }
}

fn check_approval(object: &Object, spec: &Spec) -> Option<FieldError> {
    let group = format!(".{}", spec.group);
    if !PROTECTED.iter().any(|suffix| group.ends_with(suffix)) {
        return None;
    }
    let annotation =
        object.metadata().get("annotations").and_then(|a| a.get(APPROVAL)).and_then(Value::as_str);
    let field = format!("metadata.annotations[{APPROVAL}]");
    match annotation {
        Some(text) if text.starts_with("unapproved") || text.contains("://") => None,
        Some(text) => {
            let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason \
                       starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
            Some(FieldError::invalid(field, text, why))
        }
        None => {
            let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                       https://github.com/kubernetes/enhancements/pull/1111";
            Some(FieldError::required(field, why))
        }
    }
}

#[cfg(test)]
mod tests;
