//! Roles, role bindings and service accounts.

use serde::Serialize;
use serde_json::Value;

use super::container::among;
use super::read::{each, is_empty, path_segment, required, text};
use crate::registry::Object;
use crate::registry::names::subdomain;
use crate::status::{FieldError, FieldErrors};

const GROUP: &str = "rbac.authorization.k8s.io";
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub(in crate::registry) fn role(object: &Object) -> FieldErrors {
    rules(object, true)
}

pub(in crate::registry) fn cluster_role(object: &Object) -> FieldErrors {
    let mut errors = rules(object, false);
    if object.at("/aggregationRule").is_some_and(|rule| is_empty(&rule["clusterRoleSelectors"])) {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required("aggregationRule.clusterRoleSelectors", why));
    }
    errors
}

fn rules(object: &Object, namespaced: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (i, rule) in each(object.value(), "rules") {
        let at = |field: &str| format!("rules[{i}].{field}");
        if is_empty(&rule["verbs"]) {
            errors.push(FieldError::required(at("verbs"), "verbs must contain at least one value"));
        }
        let urls = &rule["nonResourceURLs"];
        if !is_empty(urls) {
            let why = if namespaced {
                "namespaced rules cannot apply to non-resource URLs"
            } else {
                "rules cannot apply to both regular resources and non-resource URLs"
            };
            let mixed =
                ["apiGroups", "resources", "resourceNames"].iter().any(|field| !is_empty(&rule[*field]));
            if namespaced || mixed {
                errors.push(FieldError::invalid(at("nonResourceURLs"), urls, why));
            }
            continue;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if is_empty(&rule[field]) {
                let why = format!("resource rules must supply at least one {what}");
                errors.push(FieldError::required(at(field), &why));
            }
        }
    }
    errors
}

pub(in crate::registry) fn role_binding(object: &Object) -> FieldErrors {
    binding(object, &["Role", "ClusterRole"], true)
}

pub(in crate::registry) fn cluster_role_binding(object: &Object) -> FieldErrors {
    binding(object, &["ClusterRole"], false)
}

fn binding(object: &Object, kinds: &[&str], namespaced: bool) -> FieldErrors {
    let role = object.at("/roleRef").unwrap_or(&Value::Null);
    let mut errors: FieldErrors =
        among(text(role, "apiGroup"), &[GROUP], "roleRef.apiGroup".to_owned()).into_iter().collect();
    if !kinds.contains(&text(role, "kind")) {
        errors.push(FieldError::not_supported("roleRef.kind", text(role, "kind"), kinds));
    }
    errors.extend(required(path_segment, text(role, "name"), "roleRef.name"));
    for (i, subject) in each(object.value(), "subjects") {
        errors.extend(subject_faults(subject, &format!("subjects[{i}]"), namespaced));
    }
    errors
}

fn subject_faults(subject: &Value, at: &str, namespaced: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (kind, name, group) = (text(subject, "kind"), text(subject, "name"), text(subject, "apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(required(subdomain, name, &format!("{at}.name")));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(format!("{at}.apiGroup"), group, &[""]));
            }
            // In a role binding, the namespace of a service account defaults to that of the binding.
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(format!("{at}.namespace"), ""));
            }
        }
        "User" | "Group" => errors.extend(among(group, &[GROUP], format!("{at}.apiGroup"))),
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(format!("{at}.kind"), other, &kinds));
        }
    }
    errors
}

/// A reference as Go prints it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RoleReference<'r> {
    #[serde(rename = "APIGroup")]
    api_group: &'r str,
    kind: &'r str,
    name: &'r str,
}

/// The role of a binding cannot be changed: that could grant more than the writer has.
pub(in crate::registry) fn role_reference_kept(new: &Object, old: &Object) -> FieldErrors {
    let (is, was) = (new.at("/roleRef"), old.at("/roleRef"));
    if is == was {
        return FieldErrors::new();
    }
    let part = |field: &str| is.map(|role| text(role, field)).unwrap_or_default();
    let shown = RoleReference { api_group: part("apiGroup"), kind: part("kind"), name: part("name") };
    [FieldError::invalid("roleRef", shown, "cannot change roleRef")].into()
}

/// The annotation is deprecated. A write that does not set it gets no warning.
pub(in crate::registry) fn service_account_warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let has = |account: &Object| {
        account.metadata().get("annotations").is_some_and(|all| all.get(ENFORCE_MOUNTABLE_SECRETS).is_some())
    };
    let text = format!(
        "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    );
    (has(new) && !old.is_some_and(has)).then_some(text).into_iter().collect()
}
