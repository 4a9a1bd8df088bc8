//! The table of built-in resources, in the order of discovery.
//!
//! A row is everything the server knows about one built-in resource. Other code uses the [`Resource`] made from the row, and looks a
//! resource up by name only for admission plugins and for the objects of the server itself.

mod row;

use self::row::{READ_ONCE, Row, WITHOUT_DELETE_COLLECTION, cluster, namespaced};
use super::columns::{cluster, networking, pods, policies, storage, workloads};
use super::conversion::{AUTOSCALER_AS_V2, EVENTS_AS_CORE};
use super::group_version::GroupVersion;
use super::lifecycle::{Lifecycle, Review};
use super::resource::Resource;
use super::rules;
use super::scale::ScalePaths;
use super::subresource::Subresource::*;

const CORE: GroupVersion<'static> = GroupVersion { group: "", version: "v1" };
const API_EXTENSIONS: GroupVersion<'static> = GroupVersion { group: "apiextensions.k8s.io", version: "v1" };
const API_REGISTRATION: GroupVersion<'static> =
    GroupVersion { group: "apiregistration.k8s.io", version: "v1" };
const APPS: GroupVersion<'static> = GroupVersion { group: "apps", version: "v1" };
const AUTOSCALING: GroupVersion<'static> = GroupVersion { group: "autoscaling", version: "v2" };
const AUTOSCALING_V1: GroupVersion<'static> = GroupVersion { group: "autoscaling", version: "v1" };
const AUTHENTICATION: GroupVersion<'static> = GroupVersion { group: "authentication.k8s.io", version: "v1" };
const AUTHORIZATION: GroupVersion<'static> = GroupVersion { group: "authorization.k8s.io", version: "v1" };
const EVENTS: GroupVersion<'static> = GroupVersion { group: "events.k8s.io", version: "v1" };
const BATCH: GroupVersion<'static> = GroupVersion { group: "batch", version: "v1" };
const CERTIFICATES: GroupVersion<'static> = GroupVersion { group: "certificates.k8s.io", version: "v1" };
const NETWORKING: GroupVersion<'static> = GroupVersion { group: "networking.k8s.io", version: "v1" };
const POLICY: GroupVersion<'static> = GroupVersion { group: "policy", version: "v1" };
const RBAC: GroupVersion<'static> = GroupVersion { group: "rbac.authorization.k8s.io", version: "v1" };
const STORAGE: GroupVersion<'static> = GroupVersion { group: "storage.k8s.io", version: "v1" };
const ADMISSION: GroupVersion<'static> =
    GroupVersion { group: "admissionregistration.k8s.io", version: "v1" };
const SCHEDULING: GroupVersion<'static> = GroupVersion { group: "scheduling.k8s.io", version: "v1" };
const COORDINATION: GroupVersion<'static> = GroupVersion { group: "coordination.k8s.io", version: "v1" };
const NODE: GroupVersion<'static> = GroupVersion { group: "node.k8s.io", version: "v1" };
const DISCOVERY: GroupVersion<'static> = GroupVersion { group: "discovery.k8s.io", version: "v1" };
const RESOURCE: GroupVersion<'static> = GroupVersion { group: "resource.k8s.io", version: "v1" };
const FLOW_CONTROL: GroupVersion<'static> =
    GroupVersion { group: "flowcontrol.apiserver.k8s.io", version: "v1" };

const TABLE: &[Row] = &[
    namespaced(CORE, "Binding", "bindings").binding(),
    cluster(CORE, "ComponentStatus", "componentstatuses")
        .short_names(&["cs"])
        .verbs(READ_ONCE)
        .rules(&rules::COMPONENT_STATUS)
        .columns(&cluster::COMPONENT_STATUS),
    namespaced(CORE, "ConfigMap", "configmaps")
        .short_names(&["cm"])
        .rules(&rules::CONFIG_MAP)
        .columns(&cluster::CONFIG_MAP),
    namespaced(CORE, "Endpoints", "endpoints")
        .short_names(&["ep"])
        .rules(&rules::ENDPOINTS)
        .columns(&networking::ENDPOINTS),
    namespaced(CORE, "Event", "events")
        .short_names(&["ev"])
        .rules(&rules::EVENT)
        .columns(&cluster::EVENT)
        .uncached(),
    namespaced(CORE, "LimitRange", "limitranges").short_names(&["limits"]).rules(&rules::LIMIT_RANGE),
    cluster(CORE, "Namespace", "namespaces")
        .short_names(&["ns"])
        .lifecycle(Lifecycle::Namespace)
        .verbs(WITHOUT_DELETE_COLLECTION)
        .subresources(&[Finalize, Status])
        .rules(&rules::NAMESPACE)
        .columns(&cluster::NAMESPACE),
    cluster(CORE, "Node", "nodes")
        .short_names(&["no"])
        .subresources(&[Status])
        .rules(&rules::NODE)
        .columns(&cluster::NODE),
    namespaced(CORE, "PersistentVolumeClaim", "persistentvolumeclaims")
        .short_names(&["pvc"])
        .subresources(&[Status])
        .rules(&rules::CLAIM)
        .columns(&storage::CLAIM),
    cluster(CORE, "PersistentVolume", "persistentvolumes")
        .short_names(&["pv"])
        .subresources(&[Status])
        .rules(&rules::VOLUME)
        .columns(&storage::VOLUME),
    namespaced(CORE, "Pod", "pods")
        .short_names(&["po"])
        .in_all()
        .lifecycle(Lifecycle::Pod)
        .subresources(&[Binding, EphemeralContainers, Eviction, Resize, Status])
        .rules(&rules::POD)
        .columns(&pods::POD),
    namespaced(CORE, "PodTemplate", "podtemplates")
        .rules(&rules::POD_TEMPLATE)
        .columns(&workloads::POD_TEMPLATE),
    namespaced(CORE, "ReplicationController", "replicationcontrollers")
        .short_names(&["rc"])
        .in_all()
        .subresources(&[Scale, Status])
        .scale(ScalePaths::with_label_map)
        .rules(&rules::REPLICATION_CONTROLLER)
        .columns(&workloads::REPLICATION_CONTROLLER),
    namespaced(CORE, "ResourceQuota", "resourcequotas")
        .short_names(&["quota"])
        .subresources(&[Status])
        .rules(&rules::QUOTA)
        .columns(&policies::QUOTA),
    namespaced(CORE, "Secret", "secrets").rules(&rules::SECRET).columns(&cluster::SECRET),
    namespaced(CORE, "ServiceAccount", "serviceaccounts")
        .short_names(&["sa"])
        .subresources(&[Token])
        .rules(&rules::SERVICE_ACCOUNT)
        .columns(&policies::NAME_AND_AGE),
    namespaced(CORE, "Service", "services")
        .short_names(&["svc"])
        .in_all()
        .subresources(&[Status])
        .rules(&rules::SERVICE)
        .columns(&cluster::SERVICE),
    cluster(API_EXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions")
        .short_names(&["crd", "crds"])
        .api_extension()
        .lifecycle(Lifecycle::CustomResourceDefinition)
        .subresources(&[Status])
        .rules(&rules::CUSTOM_RESOURCE_DEFINITION),
    cluster(API_REGISTRATION, "APIService", "apiservices")
        .api_extension()
        .subresources(&[Status])
        .rules(&rules::API_SERVICE)
        .columns(&networking::API_SERVICE),
    namespaced(APPS, "ControllerRevision", "controllerrevisions")
        .rules(&rules::REVISION)
        .columns(&workloads::REVISION),
    namespaced(APPS, "DaemonSet", "daemonsets")
        .short_names(&["ds"])
        .in_all()
        .subresources(&[Status])
        .rules(&rules::DAEMON_SET)
        .columns(&workloads::DAEMON_SET),
    namespaced(APPS, "Deployment", "deployments")
        .short_names(&["deploy"])
        .in_all()
        .subresources(&[Scale, Status])
        .scale(ScalePaths::with_label_selector)
        .rules(&rules::DEPLOYMENT)
        .columns(&workloads::DEPLOYMENT),
    namespaced(APPS, "ReplicaSet", "replicasets")
        .short_names(&["rs"])
        .in_all()
        .subresources(&[Scale, Status])
        .scale(ScalePaths::with_label_selector)
        .rules(&rules::REPLICA_SET)
        .columns(&workloads::REPLICA_SET),
    namespaced(APPS, "StatefulSet", "statefulsets")
        .short_names(&["sts"])
        .in_all()
        .subresources(&[Scale, Status])
        .scale(ScalePaths::with_label_selector)
        .rules(&rules::STATEFUL_SET)
        .columns(&workloads::STATEFUL_SET),
    namespaced(AUTOSCALING, "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .short_names(&["hpa"])
        .in_all()
        .subresources(&[Status])
        .rules(&rules::AUTOSCALER)
        .columns(&policies::AUTOSCALER),
    namespaced(AUTOSCALING_V1, "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .short_names(&["hpa"])
        .in_all()
        .subresources(&[Status])
        .rules(&rules::AUTOSCALER_V1)
        .columns(&policies::AUTOSCALER_V1)
        .stored_as(&AUTOSCALER_AS_V2),
    cluster(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews").review(Review::SelfSubject),
    cluster(AUTHENTICATION, "TokenReview", "tokenreviews").review(Review::Token),
    namespaced(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews").review(Review::Access),
    cluster(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews").review(Review::Access),
    cluster(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews").review(Review::Rules),
    cluster(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews").review(Review::Access),
    namespaced(EVENTS, "Event", "events")
        .short_names(&["ev"])
        .rules(&rules::EVENT_V1)
        .columns(&cluster::EVENT)
        .uncached()
        .stored_as(&EVENTS_AS_CORE),
    namespaced(BATCH, "CronJob", "cronjobs")
        .short_names(&["cj"])
        .in_all()
        .subresources(&[Status])
        .rules(&rules::CRON_JOB)
        .columns(&workloads::CRON_JOB),
    namespaced(BATCH, "Job", "jobs")
        .in_all()
        .subresources(&[Status])
        .rules(&rules::JOB)
        .columns(&workloads::JOB),
    cluster(CERTIFICATES, "CertificateSigningRequest", "certificatesigningrequests")
        .short_names(&["csr"])
        .subresources(&[Approval, Status])
        .rules(&rules::SIGNING_REQUEST)
        .columns(&policies::SIGNING_REQUEST),
    cluster(NETWORKING, "IngressClass", "ingressclasses")
        .rules(&rules::INGRESS_CLASS)
        .columns(&networking::INGRESS_CLASS),
    namespaced(NETWORKING, "Ingress", "ingresses")
        .short_names(&["ing"])
        .subresources(&[Status])
        .rules(&rules::INGRESS)
        .columns(&networking::INGRESS),
    cluster(NETWORKING, "IPAddress", "ipaddresses")
        .short_names(&["ip"])
        .rules(&rules::IP_ADDRESS)
        .columns(&networking::IP_ADDRESS),
    namespaced(NETWORKING, "NetworkPolicy", "networkpolicies")
        .short_names(&["netpol"])
        .rules(&rules::NETWORK_POLICY)
        .columns(&networking::NETWORK_POLICY),
    cluster(NETWORKING, "ServiceCIDR", "servicecidrs")
        .subresources(&[Status])
        .rules(&rules::STATUS_ONLY)
        .columns(&networking::SERVICE_CIDR),
    namespaced(POLICY, "PodDisruptionBudget", "poddisruptionbudgets")
        .short_names(&["pdb"])
        .subresources(&[Status])
        .rules(&rules::BUDGET)
        .columns(&policies::BUDGET),
    cluster(RBAC, "ClusterRoleBinding", "clusterrolebindings")
        .rules(&rules::CLUSTER_ROLE_BINDING)
        .columns(&policies::BINDING),
    cluster(RBAC, "ClusterRole", "clusterroles").rules(&rules::CLUSTER_ROLE),
    namespaced(RBAC, "RoleBinding", "rolebindings").rules(&rules::ROLE_BINDING).columns(&policies::BINDING),
    namespaced(RBAC, "Role", "roles").rules(&rules::ROLE),
    cluster(STORAGE, "CSIDriver", "csidrivers").rules(&rules::CSI_DRIVER).columns(&storage::DRIVER),
    cluster(STORAGE, "CSINode", "csinodes").rules(&rules::CSI_NODE).columns(&storage::NODE),
    namespaced(STORAGE, "CSIStorageCapacity", "csistoragecapacities")
        .rules(&rules::VERSION_REQUIRED)
        .columns(&storage::CAPACITY),
    cluster(STORAGE, "StorageClass", "storageclasses")
        .short_names(&["sc"])
        .rules(&rules::STORAGE_CLASS)
        .columns(&storage::CLASS),
    cluster(STORAGE, "VolumeAttachment", "volumeattachments")
        .subresources(&[Status])
        .rules(&rules::ATTACHMENT)
        .columns(&storage::ATTACHMENT),
    cluster(STORAGE, "VolumeAttributesClass", "volumeattributesclasses")
        .short_names(&["vac"])
        .rules(&rules::RETURNS_OBJECT)
        .columns(&storage::ATTRIBUTES_CLASS),
    cluster(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .api_extension()
        .rules(&rules::ADMISSION)
        .columns(&policies::MUTATING_POLICY),
    cluster(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .api_extension()
        .rules(&rules::ADMISSION)
        .columns(&policies::POLICY_BINDING),
    cluster(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
        .api_extension()
        .rules(&rules::WEBHOOKS)
        .columns(&policies::WEBHOOKS),
    cluster(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .api_extension()
        .subresources(&[Status])
        .rules(&rules::VALIDATING_POLICY)
        .columns(&policies::VALIDATING_POLICY),
    cluster(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .api_extension()
        .rules(&rules::ADMISSION)
        .columns(&policies::POLICY_BINDING),
    cluster(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .api_extension()
        .rules(&rules::WEBHOOKS)
        .columns(&policies::WEBHOOKS),
    cluster(SCHEDULING, "PriorityClass", "priorityclasses")
        .short_names(&["pc"])
        .rules(&rules::PRIORITY_CLASS)
        .columns(&policies::PRIORITY_CLASS),
    namespaced(COORDINATION, "Lease", "leases").rules(&rules::LEASE).columns(&cluster::LEASE),
    cluster(NODE, "RuntimeClass", "runtimeclasses")
        .rules(&rules::RUNTIME_CLASS)
        .columns(&policies::RUNTIME_CLASS),
    namespaced(DISCOVERY, "EndpointSlice", "endpointslices")
        .rules(&rules::ENDPOINT_SLICE)
        .columns(&networking::ENDPOINT_SLICE),
    cluster(RESOURCE, "DeviceClass", "deviceclasses")
        .rules(&rules::RETURNS_OBJECT)
        .columns(&policies::NAME_AND_AGE),
    namespaced(RESOURCE, "ResourceClaim", "resourceclaims")
        .subresources(&[Status])
        .rules(&rules::RESOURCE_CLAIM)
        .columns(&policies::RESOURCE_CLAIM),
    namespaced(RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates")
        .rules(&rules::RESOURCE_CLAIM_TEMPLATE)
        .columns(&policies::NAME_AND_AGE),
    cluster(RESOURCE, "ResourceSlice", "resourceslices")
        .rules(&rules::RESOURCE_SLICE)
        .columns(&policies::RESOURCE_SLICE),
    cluster(FLOW_CONTROL, "FlowSchema", "flowschemas")
        .subresources(&[Status])
        .rules(&rules::FLOW_CONTROL)
        .columns(&policies::FLOW),
    cluster(FLOW_CONTROL, "PriorityLevelConfiguration", "prioritylevelconfigurations")
        .subresources(&[Status])
        .rules(&rules::FLOW_CONTROL)
        .columns(&policies::PRIORITY_LEVEL),
];

/// Whether a group has built-in resources.
pub(crate) fn is_built_in(group: &str) -> bool {
    TABLE.iter().any(|row| row.group_version.group == group)
}

/// Every built-in resource, ready to serve.
pub(super) fn resources() -> impl Iterator<Item = Resource> {
    TABLE.iter().map(Row::resource)
}
