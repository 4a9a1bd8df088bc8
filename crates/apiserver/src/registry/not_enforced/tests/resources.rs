//! Every served resource and subresource.

use std::collections::BTreeSet;

use super::super::{MadeBy, NOT_ENFORCED};
use super::Effect::{self, For, Test, Warned};
use super::assert_exists;
use crate::registry::Registry;

const CONTROLLERS: Effect = For("kube-controller-manager");
const NODES: Effect = For("kubelet, kube-scheduler");
const NETWORK: Effect = For("kube-proxy, network plugins");
const VOLUMES: Effect = For("kube-controller-manager, CSI drivers");
const DEVICES: Effect = For("kube-scheduler, kubelet");
const PROGRAMS: Effect = For("programs of users");

/// Group, resource, effect.
const RESOURCES: &[(&str, &str, Effect)] = &[
    ("", "bindings", Test("a_binding_can_be_posted_to_its_collection")),
    ("", "componentstatuses", Test("component_statuses_can_only_be_read")),
    ("", "configmaps", PROGRAMS),
    ("", "endpoints", NETWORK),
    ("", "events", PROGRAMS),
    ("", "limitranges", Test("limit_ranges_bound_containers_pods_and_claims")),
    ("", "namespaces", Test("deleting_a_namespace_deletes_its_objects")),
    ("", "namespaces/finalize", Test("namespaces_wait_for_finalize_if_emptying_is_off")),
    ("", "nodes", Test("new_nodes_are_not_ready")),
    ("", "persistentvolumeclaims", VOLUMES),
    ("", "persistentvolumes", VOLUMES),
    ("", "pods", NODES),
    ("", "pods/binding", Test("a_pod_is_bound_once")),
    ("", "pods/ephemeralcontainers", Test("ephemeral_containers_can_be_added_and_nothing_else")),
    ("", "pods/eviction", Test("a_budget_is_charged_until_it_is_used_up")),
    ("", "pods/resize", Test("a_resize_changes_amounts_of_cpu_and_memory")),
    ("", "podtemplates", PROGRAMS),
    ("", "replicationcontrollers", CONTROLLERS),
    ("", "replicationcontrollers/scale", Test("every_scale_shows_and_sets_the_replica_count")),
    ("", "resourcequotas", Test("objects_beyond_a_quota_are_rejected")),
    ("", "secrets", PROGRAMS),
    ("", "serviceaccounts", Test("a_pod_runs_as_an_account_that_exists")),
    ("", "serviceaccounts/token", Test("a_token_request_returns_a_token_of_its_service_account")),
    ("", "services", Test("services_keep_their_address")),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", Warned),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", Warned),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", Warned),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", Warned),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", Warned),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", Warned),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Test("a_definition_is_established_before_its_create_completes"),
    ),
    ("apiregistration.k8s.io", "apiservices", Warned),
    ("apps", "controllerrevisions", CONTROLLERS),
    ("apps", "daemonsets", CONTROLLERS),
    ("apps", "deployments", CONTROLLERS),
    ("apps", "deployments/scale", Test("every_scale_shows_and_sets_the_replica_count")),
    ("apps", "replicasets", CONTROLLERS),
    ("apps", "replicasets/scale", Test("every_scale_shows_and_sets_the_replica_count")),
    ("apps", "statefulsets", CONTROLLERS),
    ("apps", "statefulsets/scale", Test("every_scale_shows_and_sets_the_replica_count")),
    ("authentication.k8s.io", "selfsubjectreviews", Test("a_caller_may_impersonate_another_user")),
    ("authentication.k8s.io", "tokenreviews", Test("a_token_request_returns_a_token_of_its_service_account")),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        Test("reviews_allow_everything_and_are_not_stored"),
    ),
    ("authorization.k8s.io", "selfsubjectaccessreviews", Test("reviews_allow_everything_and_are_not_stored")),
    ("authorization.k8s.io", "selfsubjectrulesreviews", Test("reviews_allow_everything_and_are_not_stored")),
    ("authorization.k8s.io", "subjectaccessreviews", Test("reviews_allow_everything_and_are_not_stored")),
    ("autoscaling", "horizontalpodautoscalers", CONTROLLERS),
    ("batch", "cronjobs", CONTROLLERS),
    ("batch", "jobs", CONTROLLERS),
    ("certificates.k8s.io", "certificatesigningrequests", CONTROLLERS),
    (
        "certificates.k8s.io",
        "certificatesigningrequests/approval",
        Test("writes_of_status_and_approval_are_kept"),
    ),
    ("coordination.k8s.io", "leases", PROGRAMS),
    ("discovery.k8s.io", "endpointslices", NETWORK),
    ("events.k8s.io", "events", PROGRAMS),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", Warned),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", Warned),
    ("networking.k8s.io", "ingressclasses", Test("ingresses_get_the_newest_default_class")),
    ("networking.k8s.io", "ingresses", For("ingress controllers")),
    ("networking.k8s.io", "ipaddresses", CONTROLLERS),
    ("networking.k8s.io", "networkpolicies", NETWORK),
    ("networking.k8s.io", "servicecidrs", Warned),
    ("node.k8s.io", "runtimeclasses", Test("runtime_classes_set_overhead_and_nodes")),
    ("policy", "poddisruptionbudgets", Test("a_budget_is_charged_until_it_is_used_up")),
    ("rbac.authorization.k8s.io", "clusterrolebindings", Warned),
    ("rbac.authorization.k8s.io", "clusterroles", Warned),
    ("rbac.authorization.k8s.io", "rolebindings", Warned),
    ("rbac.authorization.k8s.io", "roles", Warned),
    ("resource.k8s.io", "deviceclasses", DEVICES),
    ("resource.k8s.io", "resourceclaims", DEVICES),
    ("resource.k8s.io", "resourceclaimtemplates", CONTROLLERS),
    ("resource.k8s.io", "resourceslices", DEVICES),
    ("scheduling.k8s.io", "priorityclasses", Test("priorities_come_from_classes")),
    ("storage.k8s.io", "csidrivers", VOLUMES),
    ("storage.k8s.io", "csinodes", VOLUMES),
    ("storage.k8s.io", "csistoragecapacities", NODES),
    ("storage.k8s.io", "storageclasses", Test("claims_get_the_default_storage_class")),
    ("storage.k8s.io", "volumeattachments", VOLUMES),
    ("storage.k8s.io", "volumeattributesclasses", VOLUMES),
];

#[test]
fn every_served_resource_has_an_effect_or_a_warning() {
    let registry = Registry::built_in();
    let mut served = BTreeSet::new();
    for resource in registry.all() {
        let group = resource.group.as_str().to_owned();
        served.insert((group.clone(), resource.plural.clone()));
        for subresource in &resource.subresources {
            // Every resource with a status keeps it, which another test checks for all.
            if subresource.name() != "status" {
                served.insert((group.clone(), format!("{}/{}", resource.plural, subresource.name())));
            }
        }
    }
    let listed: BTreeSet<(String, String)> =
        RESOURCES.iter().map(|(group, name, _)| ((*group).to_owned(), (*name).to_owned())).collect();
    assert_eq!(
        served, listed,
        "add the effect of a new resource, or a row to the list of what is not enforced"
    );
    for (group, name, effect) in RESOURCES {
        assert_exists(*effect, name);
        let plural = name.split('/').next().unwrap_or_default();
        let resource = registry.all().find(|r| r.group.as_str() == *group && r.plural == plural).unwrap();
        let row = NOT_ENFORCED.iter().find(|row| row.group == *group && row.kinds.contains(&&*resource.kind));
        let of_part =
            row.is_some_and(|row| matches!(row.made_by, MadeBy::Metadata { .. } | MadeBy::Element { .. }));
        assert_eq!(*effect == Warned, row.is_some() && !of_part, "{group}/{name}");
    }
}

#[test]
fn every_row_is_about_a_served_kind() {
    let registry = Registry::built_in();
    for row in NOT_ENFORCED {
        for kind in row.kinds {
            let found = registry.all().find(|r| r.group.as_str() == row.group && r.kind == *kind);
            assert!(
                found.is_some_and(|resource| !resource.not_enforced.is_empty()),
                "{kind} of {}",
                row.group
            );
        }
    }
}
