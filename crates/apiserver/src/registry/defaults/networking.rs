//! Endpoints, endpoint slices, network policies and ingress classes.

use serde_json::{Value, json};

use super::super::Object;
use super::{child, default_to, each};

pub(in super::super) fn endpoints(object: &mut Object) {
    for subset in each(object.root_mut(), "subsets") {
        for port in each(subset, "ports") {
            default_to(port, "protocol", "TCP");
        }
    }
}

pub(in super::super) fn endpoint_slice(object: &mut Object) {
    for port in each(object.root_mut(), "ports") {
        default_to(port, "name", "");
        default_to(port, "protocol", "TCP");
    }
}

/// The default types of a policy: ingress, and egress if it has egress rules.
pub(in super::super) fn network_policy(object: &mut Object) {
    let spec = object.section_mut("spec");
    for rules in ["ingress", "egress"] {
        for rule in each(spec, rules) {
            for port in each(rule, "ports") {
                default_to(port, "protocol", "TCP");
            }
        }
    }
    let outward = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    default_to(spec, "policyTypes", if outward { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
}

pub(in super::super) fn ingress_class(object: &mut Object) {
    let spec = object.section_mut("spec");
    if let Some(parameters) = spec.get_mut("parameters").and_then(Value::as_object_mut) {
        default_to(parameters, "scope", "Cluster");
    }
}

pub(in super::super) fn webhooks(object: &mut Object) {
    let mutating = object.str_at("/kind") == "MutatingWebhookConfiguration";
    for hook in each(object.root_mut(), "webhooks") {
        default_to(hook, "failurePolicy", "Fail");
        default_to(hook, "matchPolicy", "Equivalent");
        default_to(hook, "timeoutSeconds", 10);
        child(hook, "namespaceSelector");
        child(hook, "objectSelector");
        if mutating {
            default_to(hook, "reinvocationPolicy", "Never");
        }
        for rule in each(hook, "rules") {
            default_to(rule, "scope", "*");
        }
        let service = hook.get_mut("clientConfig").and_then(|config| config.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            default_to(service, "port", 443);
        }
    }
}

/// Policies have a failure policy; they, and their bindings, say what they match.
pub(in super::super) fn admission_policy(object: &mut Object) {
    let is_policy = object.str_at("/kind").ends_with("Policy");
    let spec = object.section_mut("spec");
    if is_policy {
        default_to(spec, "failurePolicy", "Fail");
    }
    for field in ["matchConstraints", "matchResources"] {
        let Some(matched) = spec.get_mut(field).and_then(Value::as_object_mut) else { continue };
        default_to(matched, "matchPolicy", "Equivalent");
        child(matched, "namespaceSelector");
        child(matched, "objectSelector");
        for list in ["resourceRules", "excludeResourceRules"] {
            each(matched, list).for_each(|rule| default_to(rule, "scope", "*"));
        }
    }
}
