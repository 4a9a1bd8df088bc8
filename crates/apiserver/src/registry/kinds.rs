//! The table of built-in kinds, in the order of discovery.

use super::api_version;
use super::columns::columns_for;
use super::conversion::{Conversion, EVENTS};
use super::resource::{Resource, Schema};
use super::rules::rules_for;
use super::scale::ScalePaths;
use crate::schema::types;
use crate::storage::TypeHead;

const NAMESPACED: bool = true;
const CLUSTER: bool = false;

const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Reviews are answered, not kept.
const REVIEW_VERBS: &[&str] = &["create"];
/// Namespaces cannot be deleted by the dozen.
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    short_names: &'static str,
    categories: &'static str,
    subresources: &'static str,
}

#[allow(clippy::too_many_arguments, reason = "the columns of the table below")]
const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    short_names: &'static str,
    categories: &'static str,
    subresources: &'static str,
) -> Row {
    Row { group, version, kind, plural, namespaced, short_names, categories, subresources }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("", "v1", "ConfigMap", "configmaps", NAMESPACED, "cm", "", ""),
    row("", "v1", "Endpoints", "endpoints", NAMESPACED, "ep", "", ""),
    row("", "v1", "Event", "events", NAMESPACED, "ev", "", ""),
    row("", "v1", "LimitRange", "limitranges", NAMESPACED, "limits", "", ""),
    row("", "v1", "Namespace", "namespaces", CLUSTER, "ns", "", "finalize status"),
    row("", "v1", "Node", "nodes", CLUSTER, "no", "", "status"),
    row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED, "pvc", "", "status"),
    row("", "v1", "PersistentVolume", "persistentvolumes", CLUSTER, "pv", "", "status"),
    row("", "v1", "Pod", "pods", NAMESPACED, "po", "all", "binding ephemeralcontainers eviction resize status"),
    row("", "v1", "PodTemplate", "podtemplates", NAMESPACED, "", "", ""),
    row("", "v1", "ReplicationController", "replicationcontrollers", NAMESPACED, "rc", "all", "scale status"),
    row("", "v1", "ResourceQuota", "resourcequotas", NAMESPACED, "quota", "", "status"),
    row("", "v1", "Secret", "secrets", NAMESPACED, "", "", ""),
    row("", "v1", "ServiceAccount", "serviceaccounts", NAMESPACED, "sa", "", ""),
    row("", "v1", "Service", "services", NAMESPACED, "svc", "all", "status"),
    row("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", CLUSTER, "crd crds", "api-extensions", "status"),
    row("apps", "v1", "ControllerRevision", "controllerrevisions", NAMESPACED, "", "", ""),
    row("apps", "v1", "DaemonSet", "daemonsets", NAMESPACED, "ds", "all", "status"),
    row("apps", "v1", "Deployment", "deployments", NAMESPACED, "deploy", "all", "scale status"),
    row("apps", "v1", "ReplicaSet", "replicasets", NAMESPACED, "rs", "all", "scale status"),
    row("apps", "v1", "StatefulSet", "statefulsets", NAMESPACED, "sts", "all", "scale status"),
    row("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", NAMESPACED, "hpa", "all", "status"),
    row("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", CLUSTER, "", "", ""),
    row("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", CLUSTER, "", "", ""),
    row("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", NAMESPACED, "", "", ""),
    row("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", CLUSTER, "", "", ""),
    row("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", CLUSTER, "", "", ""),
    row("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", CLUSTER, "", "", ""),
    row("events.k8s.io", "v1", "Event", "events", NAMESPACED, "ev", "", ""),
    row("batch", "v1", "CronJob", "cronjobs", NAMESPACED, "cj", "all", "status"),
    row("batch", "v1", "Job", "jobs", NAMESPACED, "", "all", "status"),
    row("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", CLUSTER, "csr", "", "approval status"),
    row("networking.k8s.io", "v1", "IngressClass", "ingressclasses", CLUSTER, "", "", ""),
    row("networking.k8s.io", "v1", "Ingress", "ingresses", NAMESPACED, "ing", "", "status"),
    row("networking.k8s.io", "v1", "IPAddress", "ipaddresses", CLUSTER, "ip", "", ""),
    row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", NAMESPACED, "netpol", "", ""),
    row("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", CLUSTER, "", "", "status"),
    row("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, "pdb", "", "status"),
    row("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", CLUSTER, "", "", ""),
    row("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", CLUSTER, "", "", ""),
    row("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", NAMESPACED, "", "", ""),
    row("rbac.authorization.k8s.io", "v1", "Role", "roles", NAMESPACED, "", "", ""),
    row("storage.k8s.io", "v1", "CSIDriver", "csidrivers", CLUSTER, "", "", ""),
    row("storage.k8s.io", "v1", "CSINode", "csinodes", CLUSTER, "", "", ""),
    row("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", NAMESPACED, "", "", ""),
    row("storage.k8s.io", "v1", "StorageClass", "storageclasses", CLUSTER, "sc", "", ""),
    row("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", CLUSTER, "", "", "status"),
    row("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses", CLUSTER, "vac", "", ""),
    row("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", CLUSTER, "", "api-extensions", ""),
    row("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", CLUSTER, "", "api-extensions", ""),
    row("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", CLUSTER, "", "api-extensions", ""),
    row("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", CLUSTER, "", "api-extensions", "status"),
    row("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", CLUSTER, "", "api-extensions", ""),
    row("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", CLUSTER, "", "api-extensions", ""),
    row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", CLUSTER, "pc", "", ""),
    row("coordination.k8s.io", "v1", "Lease", "leases", NAMESPACED, "", "", ""),
    row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", CLUSTER, "", "", ""),
    row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", NAMESPACED, "", "", ""),
    row("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", CLUSTER, "", "", ""),
    row("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", NAMESPACED, "", "", "status"),
    row("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", NAMESPACED, "", "", ""),
    row("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", CLUSTER, "", "", ""),
    row("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", CLUSTER, "", "", "status"),
    row("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", CLUSTER, "", "", "status"),
];

/// Whether a group has kinds of its own, without definitions.
pub(crate) fn is_built_in(group: &str) -> bool {
    TABLE.iter().any(|row| row.group == group)
}

/// Every built-in resource, ready to serve.
pub(super) fn built_in() -> impl Iterator<Item = Resource> {
    TABLE.iter().map(|row| Resource {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        kind: row.kind.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: words(row.short_names),
        categories: words(row.categories),
        namespaced: row.namespaced,
        verbs: match row.plural {
            "namespaces" => NAMESPACE_VERBS,
            plural if plural.ends_with("reviews") => REVIEW_VERBS,
            _ => ALL_VERBS,
        },
        subresources: row.subresources.split_whitespace().collect(),
        head: TypeHead::new(&api_version(row.group, row.version), row.kind),
        list_kind: format!("{}List", row.kind),
        schema: types().kind(row.group, row.version, row.kind).map_or(Schema::Free, Schema::Table),
        rules: rules_for(row.group, row.kind),
        columns: columns_for(row.group, row.kind),
        conversion: (row.group == "events.k8s.io").then_some(Conversion::Renamed(&EVENTS)),
        scale: row.subresources.contains("scale").then(|| ScalePaths::built_in(row.group)),
        custom: None,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
