//! What the API promises and this server does not do: the only list of it.
//!
//! The response to every write of an object with such a promise has a `Warning` that names it. The tests of this module walk all served
//! resources, fields and parameters, and fail for one that is neither in this list nor covered by a named test.

use serde_json::Value;

use super::Object;

/// A promise of a kind that has no effect here.
#[derive(Debug)]
pub(crate) struct NotEnforced {
    pub(super) group: &'static str,
    pub(super) kinds: &'static [&'static str],
    pub(super) made_by: MadeBy,
    /// Completes the sentence "this server …".
    pub(super) why: &'static str,
}

/// The part of an object that makes the promise.
#[derive(Debug)]
pub(super) enum MadeBy {
    /// Every object of the kind.
    Object,
    /// A field that is not null, by its JSON pointer.
    Field(&'static str),
    /// A field in a list, for which the function returns true.
    Element { field: &'static str, is_set: fn(&Object) -> bool },
    /// A label or an annotation, with a value for which the function returns true.
    Metadata { map: &'static str, key: &'static str, promises: fn(&str) -> bool },
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const POD_SECURITY: &str = "does not run the admission plugin PodSecurity";

const fn pod_security(key: &'static str) -> NotEnforced {
    NotEnforced {
        group: "",
        kinds: &["Namespace"],
        made_by: MadeBy::Metadata { map: "labels", key, promises: |level| level != "privileged" },
        why: POD_SECURITY,
    }
}

/// All of them.
pub(super) const NOT_ENFORCED: &[NotEnforced] = &[
    NotEnforced {
        group: ADMISSION,
        kinds: &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
        made_by: MadeBy::Object,
        why: "calls no webhooks",
    },
    NotEnforced {
        group: ADMISSION,
        kinds: &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
        made_by: MadeBy::Object,
        why: "evaluates no policies",
    },
    NotEnforced {
        group: "flowcontrol.apiserver.k8s.io",
        kinds: &["FlowSchema", "PriorityLevelConfiguration"],
        made_by: MadeBy::Object,
        why: "queues no requests by priority",
    },
    NotEnforced {
        group: "apiregistration.k8s.io",
        kinds: &["APIService"],
        made_by: MadeBy::Field("/spec/service"),
        why: "forwards no requests to other servers",
    },
    NotEnforced {
        group: "rbac.authorization.k8s.io",
        kinds: &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
        made_by: MadeBy::Object,
        why: "authorizes every request",
    },
    NotEnforced {
        group: "networking.k8s.io",
        kinds: &["ServiceCIDR"],
        made_by: MadeBy::Object,
        why: "takes the addresses of Services from 10.96.0.0/16",
    },
    NotEnforced {
        group: "resource.k8s.io",
        kinds: &["ResourceClaim", "ResourceClaimTemplate"],
        made_by: MadeBy::Element { field: "adminAccess", is_set: asks_for_admin_access },
        why: "does not check the label resource.kubernetes.io/admin-access of the namespace",
    },
    NotEnforced {
        group: "",
        kinds: &["ServiceAccount"],
        made_by: MadeBy::Metadata {
            map: "annotations",
            key: "kubernetes.io/enforce-mountable-secrets",
            // As Go parses a bool.
            promises: |value| ["1", "t", "T", "true", "TRUE", "True"].contains(&value),
        },
        why: "lets pods use every secret",
    },
    pod_security("pod-security.kubernetes.io/enforce"),
    pod_security("pod-security.kubernetes.io/audit"),
    pod_security("pod-security.kubernetes.io/warn"),
];

/// Whether a claim, or a template of claims, asks for devices that others use.
fn asks_for_admin_access(claim: &Object) -> bool {
    let requests = ["/spec/devices/requests", "/spec/spec/devices/requests"].map(|path| claim.at(path));
    let requests = requests.into_iter().flatten().filter_map(Value::as_array).flatten();
    requests.into_iter().any(|request| request["exactly"]["adminAccess"] == true)
}

/// The promises of a built-in kind that have no effect.
pub(super) fn of_kind(group: &str, kind: &str) -> Vec<&'static NotEnforced> {
    NOT_ENFORCED.iter().filter(|row| row.group == group && row.kinds.contains(&kind)).collect()
}

impl NotEnforced {
    /// The warning about an object that makes the promise.
    pub(super) fn warning(&self, kind: &str, object: &Object) -> Option<String> {
        let why = self.why;
        match &self.made_by {
            MadeBy::Object => Some(format!("{kind} is stored but not enforced: this server {why}")),
            MadeBy::Field(pointer) => {
                let is_set = object.at(pointer).is_some_and(|value| !value.is_null());
                let field = pointer.trim_start_matches('/').replace('/', ".");
                is_set.then(|| format!("{field} of {kind} is stored but not enforced: this server {why}"))
            }
            MadeBy::Element { field, is_set } => is_set(object)
                .then(|| format!("{field} of {kind} is stored but not enforced: this server {why}")),
            MadeBy::Metadata { map, key, promises } => {
                let value = object.metadata().get(*map)?.get(*key).and_then(Value::as_str)?;
                let text = format!("metadata.{map}[{key}] is stored but not enforced: this server {why}");
                promises(value).then_some(text)
            }
        }
    }
}

#[cfg(test)]
mod tests;
