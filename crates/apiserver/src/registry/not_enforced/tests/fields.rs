//! The fields of everything that the server itself acts on, from the table of types.

use std::collections::BTreeSet;

use super::Effect::{self, For, Test, Text, Warned};
use super::assert_exists;
use crate::schema::{Shape, Type, types};

/// Types whose fields are described once, or by the type that contains them.
const LEAVES: [&str; 3] =
    ["meta.v1.LabelSelector", "apiextensions.v1.JSONSchemaProps", "meta.v1.ManagedFieldsEntry"];

const PROXIES: Effect = For("kube-proxy, network plugins");
const KUBELETS: Effect = For("kubelet, kube-scheduler");

type Fields = &'static [(&'static str, Effect)];

/// The types whose behaviour is the server's own. A path that ends with `*` stands for everything below it.
const TYPES: &[(&str, Fields)] = &[
    ("meta.v1.ObjectMeta", METADATA),
    ("meta.v1.DeleteOptions", DELETE_OPTIONS),
    ("apiextensions.v1.CustomResourceDefinitionSpec", DEFINITION),
    ("apiextensions.v1.JSONSchemaProps", SCHEMA),
    ("apiextensions.v1.ValidationRule", RULE),
    ("core.v1.LimitRangeSpec", LIMIT_RANGE),
    ("core.v1.ResourceQuotaSpec", QUOTA),
    ("core.v1.NamespaceSpec", &[("finalizers", Test("namespaces_wait_for_finalize_if_emptying_is_off"))]),
    ("core.v1.ConfigMap", CONFIG_MAP),
    ("core.v1.Secret", SECRET),
    ("core.v1.ServiceAccount", &[("*", KUBELETS)]),
    ("core.v1.ServiceSpec", SERVICE),
    ("core.v1.PodSpec", POD),
    ("policy.v1.PodDisruptionBudgetSpec", BUDGET),
    ("policy.v1.Eviction", &[("deleteOptions.*", Test("an_eviction_deletes_with_its_options"))]),
    ("scheduling.v1.PriorityClass", PRIORITY_CLASS),
    ("storage.v1.StorageClass", STORAGE_CLASS),
    ("node.v1.RuntimeClass", RUNTIME_CLASS),
    ("certificates.v1.CertificateSigningRequestSpec", SIGNING_REQUEST),
    ("authentication.v1.TokenRequestSpec", TOKEN_REQUEST),
    ("authentication.v1.TokenReviewSpec", TOKEN_REVIEW),
    ("apiregistration.v1.APIServiceSpec", API_SERVICE),
];

const METADATA: Fields = &[
    ("annotations", For("programs of users")),
    ("creationTimestamp", Test("the_server_alone_sets_identity_and_times")),
    ("deletionGracePeriodSeconds", Test("the_server_alone_sets_identity_and_times")),
    ("deletionTimestamp", Test("the_server_alone_sets_identity_and_times")),
    ("finalizers", Test("a_finalizer_holds_an_object_of_every_kind")),
    ("generateName", Test("a_name_can_be_generated_for_every_kind")),
    ("generation", Test("the_server_alone_sets_identity_and_times")),
    ("labels", Test("selectors_match_labels_and_fields")),
    ("managedFields", Test("a_writer_owns_what_it_set_and_takes_what_it_changes")),
    ("name", Test("names_by_rule")),
    ("namespace", Test("the_body_belongs_to_the_namespace_of_the_url")),
    ("ownerReferences[].apiVersion", Test("owners_of_unknown_kinds_count_as_existing")),
    ("ownerReferences[].blockOwnerDeletion", Test("a_finalizer_of_a_dependent_blocks_foreground_deletion")),
    ("ownerReferences[].controller", Test("one_owner_may_be_the_controller")),
    ("ownerReferences[].kind", Test("owners_of_unknown_kinds_count_as_existing")),
    ("ownerReferences[].name", Test("background_deletion_deletes_dependents_after_the_owner")),
    ("ownerReferences[].uid", Test("an_object_whose_owner_does_not_exist_is_deleted")),
    ("resourceVersion", Test("a_put_with_an_old_version_conflicts_for_every_kind")),
    ("selfLink", Test("the_server_alone_sets_identity_and_times")),
    ("uid", Test("a_put_with_another_uid_conflicts")),
];

const DELETE_OPTIONS: Fields = &[
    ("dryRun", Test("dry_runs_change_nothing")),
    ("gracePeriodSeconds", Test("a_grace_period_is_that_of_the_options_or_the_pod")),
    // kube-apiserver ignores it too, unless an alpha feature is enabled.
    ("ignoreStoreReadErrorWithClusterBreakingPotential", Test("delete_options_are_read_in_every_format")),
    ("orphanDependents", Test("a_policy_is_a_finalizer_and_contradictions_are_rejected")),
    ("preconditions.*", Test("preconditions_of_deletes_are_checked")),
    ("propagationPolicy", Test("a_policy_is_a_finalizer_and_contradictions_are_rejected")),
];

const DEFINITION: Fields = &[
    ("conversion.*", Test("conversion_webhooks_are_rejected")),
    ("group", Test("names_and_group_are_checked")),
    ("names.*", Test("discovery_has_subresources_and_names")),
    ("preserveUnknownFields", Test("schemas_must_be_structural")),
    ("scope", Test("some_fields_of_a_definition_are_immutable")),
    ("versions[].additionalPrinterColumns[].*", Test("custom_resources_have_tables_and_partial_metadata")),
    ("versions[].deprecated", Test("deprecated_versions_warn")),
    ("versions[].deprecationWarning", Test("deprecated_versions_warn")),
    ("versions[].name", Test("versions_are_unique_and_one_is_stored")),
    ("versions[].schema.openAPIV3Schema", Test("schemas_are_enforced_on_every_write")),
    ("versions[].selectableFields[].jsonPath", Test("fields_of_stored_objects_become_selectable")),
    ("versions[].served", Test("versions_can_be_added_and_removed")),
    ("versions[].storage", Test("a_new_storage_version_is_recorded_and_the_old_one_must_stay")),
    ("versions[].subresources.scale.*", Test("scale_follows_its_paths")),
    ("versions[].subresources.status", Test("a_status_write_requires_the_version_and_keeps_metadata")),
];

/// `schemas_must_be_structural` checks that keywords without support are rejected.
const SCHEMA: Fields = &[
    ("$ref", Test("keywords_that_are_not_enforced_are_rejected")),
    ("$schema", Text),
    ("additionalItems", Test("keywords_that_are_not_enforced_are_rejected")),
    ("additionalProperties", Test("unknown_fields_are_pruned_at_every_depth")),
    ("allOf", Test("combined_schemas_are_checked")),
    ("anyOf", Test("combined_schemas_are_checked")),
    ("default", Test("defaults_replace_absent_fields_and_disallowed_nulls")),
    ("definitions", Test("keywords_that_are_not_enforced_are_rejected")),
    ("dependencies", Test("keywords_that_are_not_enforced_are_rejected")),
    ("description", Text),
    ("enum", Test("enums_are_checked")),
    ("example", Text),
    ("exclusiveMaximum", Test("numbers_are_checked")),
    ("exclusiveMinimum", Test("numbers_are_checked")),
    ("externalDocs.*", Text),
    ("format", Test("each_format_accepts_valid_and_rejects_invalid_text")),
    ("id", Test("keywords_that_are_not_enforced_are_rejected")),
    ("items", Test("counts_are_checked")),
    ("maxItems", Test("counts_are_checked")),
    ("maxLength", Test("strings_are_checked")),
    ("maxProperties", Test("counts_are_checked")),
    ("maximum", Test("numbers_are_checked")),
    ("minItems", Test("counts_are_checked")),
    ("minLength", Test("strings_are_checked")),
    ("minProperties", Test("counts_are_checked")),
    ("minimum", Test("numbers_are_checked")),
    ("multipleOf", Test("numbers_are_checked")),
    ("not", Test("combined_schemas_are_checked")),
    ("nullable", Test("types_are_checked")),
    ("oneOf", Test("combined_schemas_are_checked")),
    ("pattern", Test("strings_are_checked")),
    ("patternProperties", Test("keywords_that_are_not_enforced_are_rejected")),
    ("properties", Test("types_are_checked")),
    ("required", Test("schemas_are_enforced_on_every_write")),
    ("title", Text),
    ("type", Test("types_are_checked")),
    ("uniqueItems", Test("keywords_that_are_not_enforced_are_rejected")),
    ("x-kubernetes-embedded-resource", Test("the_metadata_of_an_embedded_object_is_checked")),
    ("x-kubernetes-int-or-string", Test("types_are_checked")),
    ("x-kubernetes-list-map-keys", Test("duplicates_in_sets_and_maps_are_errors")),
    ("x-kubernetes-list-type", Test("duplicates_in_sets_and_maps_are_errors")),
    ("x-kubernetes-map-type", Test("sets_and_maps_merge_and_other_lists_do_not")),
    ("x-kubernetes-preserve-unknown-fields", Test("unknown_content_is_owned_field_by_field")),
    ("x-kubernetes-validations[].*", Test("objects_that_break_a_rule_are_rejected")),
];

const RULE: Fields = &[
    ("fieldPath", Test("objects_that_break_a_rule_are_rejected")),
    ("message", Test("objects_that_break_a_rule_are_rejected")),
    ("messageExpression", Test("objects_that_break_a_rule_are_rejected")),
    ("optionalOldSelf", Test("an_optional_old_self_is_absent_for_new_values")),
    ("reason", Test("objects_that_break_a_rule_are_rejected")),
    ("rule", Test("objects_that_break_a_rule_are_rejected")),
];

const LIMIT_RANGE: Fields = &[
    ("limits[].default", Test("limit_ranges_give_defaults")),
    ("limits[].defaultRequest", Test("limit_ranges_give_defaults")),
    ("limits[].*", Test("limit_ranges_bound_containers_pods_and_claims")),
];

const QUOTA: Fields = &[
    ("hard", Test("objects_beyond_a_quota_are_rejected")),
    ("scopeSelector.matchExpressions[].*", Test("scopes_select_pods")),
    ("scopes", Test("scopes_select_pods")),
];

const CONFIG_MAP: Fields = &[
    ("binaryData", For("programs of users")),
    ("data", For("programs of users")),
    ("immutable", Test("immutable_data_does_not_change")),
];

const SECRET: Fields = &[
    ("data", For("programs of users")),
    ("immutable", Test("immutable_data_does_not_change")),
    ("stringData", Test("string_data_becomes_data")),
    ("type", Test("the_type_of_a_secret_does_not_change")),
];

const SERVICE: Fields = &[
    ("allocateLoadBalancerNodePorts", Test("node_ports_are_assigned_and_belong_to_one_service")),
    ("clusterIP", Test("an_address_belongs_to_one_service")),
    ("clusterIPs", Test("an_address_belongs_to_one_service")),
    ("healthCheckNodePort", Test("node_ports_are_assigned_and_belong_to_one_service")),
    ("ipFamilies", Test("the_families_of_a_service_are_those_of_the_server")),
    ("ipFamilyPolicy", Test("the_families_of_a_service_are_those_of_the_server")),
    ("ports[].nodePort", Test("node_ports_are_assigned_and_belong_to_one_service")),
    ("type", Test("a_service_keeps_its_address_and_ports_while_its_type_has_them")),
    ("*", PROXIES),
];

const POD: Fields = &[
    ("ephemeralContainers[].*", Test("ephemeral_containers_can_be_added_and_nothing_else")),
    ("nodeName", Test("a_pod_is_bound_once")),
    ("overhead", Test("runtime_classes_set_overhead_and_nodes")),
    ("preemptionPolicy", Test("priorities_come_from_classes")),
    ("priority", Test("priorities_come_from_classes")),
    ("priorityClassName", Test("priorities_come_from_classes")),
    ("runtimeClassName", Test("runtime_classes_set_overhead_and_nodes")),
    ("terminationGracePeriodSeconds", Test("a_grace_period_is_that_of_the_options_or_the_pod")),
    ("*", KUBELETS),
];

const BUDGET: Fields = &[
    ("maxUnavailable", For("kube-controller-manager")),
    ("minAvailable", For("kube-controller-manager")),
    ("selector", Test("a_budget_is_charged_until_it_is_used_up")),
    ("unhealthyPodEvictionPolicy", Test("unready_pods_follow_the_policy_of_the_budget")),
];

const PRIORITY_CLASS: Fields = &[
    ("description", Text),
    ("globalDefault", Test("one_priority_class_is_the_default")),
    ("preemptionPolicy", Test("priorities_come_from_classes")),
    ("value", Test("priorities_come_from_classes")),
];

const STORAGE_CLASS: Fields = &[
    ("allowVolumeExpansion", Test("a_claim_grows_if_its_class_allows_it")),
    ("*", For("kube-controller-manager, CSI drivers")),
];

const RUNTIME_CLASS: Fields = &[
    ("handler", KUBELETS),
    ("overhead.*", Test("runtime_classes_set_overhead_and_nodes")),
    ("scheduling.*", Test("runtime_classes_set_overhead_and_nodes")),
];

const SIGNING_REQUEST: Fields = &[
    ("expirationSeconds", For("kube-controller-manager")),
    ("extra", Test("writes_of_status_and_approval_are_kept")),
    ("groups", Test("writes_of_status_and_approval_are_kept")),
    ("request", For("kube-controller-manager")),
    ("signerName", For("kube-controller-manager")),
    ("uid", Test("writes_of_status_and_approval_are_kept")),
    ("usages", For("kube-controller-manager")),
    ("username", Test("writes_of_status_and_approval_are_kept")),
];

const TOKEN_REQUEST: Fields = &[
    ("audiences", Test("a_token_request_returns_a_token_of_its_service_account")),
    ("boundObjectRef.*", Test("a_token_ends_with_the_objects_that_it_is_bound_to")),
    ("expirationSeconds", Test("tokens_are_valid_until_they_expire_and_for_their_audience")),
];

const TOKEN_REVIEW: Fields = &[("*", Test("a_token_request_returns_a_token_of_its_service_account"))];

const API_SERVICE: Fields = &[
    ("group", Test("api_services_are_stored_and_requests_are_not_forwarded")),
    ("groupPriorityMinimum", Test("api_services_are_stored_and_requests_are_not_forwarded")),
    ("service.*", Warned),
    ("version", Test("api_services_are_stored_and_requests_are_not_forwarded")),
    // How to reach the service.
    ("*", Warned),
];

/// The paths of all fields of a type, without the type and the metadata of an object.
fn paths(of: &Type, above: &str, is_top: bool, found: &mut BTreeSet<String>) {
    for field in of.fields() {
        if is_top && ["apiVersion", "kind", "metadata", "status"].contains(&field.name) {
            continue;
        }
        visit(&field.shape, format!("{above}{}", field.name), found);
    }
}

fn visit(shape: &Shape, path: String, found: &mut BTreeSet<String>) {
    match shape {
        Shape::Struct(name, _) if !LEAVES.contains(name) => {
            let inner = types().named(name).expect("a type of the table");
            if inner.fields().is_empty() {
                found.insert(path);
            } else {
                paths(inner, &format!("{path}."), false, found);
            }
        }
        Shape::List(inner, ..) if matches!(&**inner, Shape::Struct(name, _) if !LEAVES.contains(name)) => {
            visit(inner, format!("{path}[]"), found);
        }
        _ => {
            found.insert(path);
        }
    }
}

/// The row for a path: the one of its name, or else the longest pattern that fits.
fn row<'f>(fields: &'f [(&'static str, Effect)], path: &str) -> Option<&'f (&'static str, Effect)> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start) || path == start.trim_end_matches(['.', '[', ']']),
        None => path == pattern,
    };
    fields
        .iter()
        .filter(|(pattern, _)| fits(pattern))
        .max_by_key(|(pattern, _)| (!pattern.ends_with('*'), pattern.len()))
}

#[test]
fn every_field_that_the_server_obeys_has_an_effect_or_a_warning() {
    for (name, fields) in TYPES {
        let of = types().named(name).unwrap_or_else(|| panic!("no type {name}"));
        let mut found = BTreeSet::new();
        paths(of, "", true, &mut found);
        assert!(!found.is_empty(), "{name}");
        let mut used = BTreeSet::new();
        for path in &found {
            let (pattern, effect) = row(fields, path).unwrap_or_else(|| {
                panic!("{path} of {name}: say which test checks it, or add it to the list of what is not enforced")
            });
            used.insert(*pattern);
            assert_exists(*effect, path);
        }
        let stale: Vec<&str> =
            fields.iter().map(|(pattern, _)| *pattern).filter(|p| !used.contains(p)).collect();
        assert!(stale.is_empty(), "{name} has no such fields: {stale:?} (it has {found:?})");
    }
}
