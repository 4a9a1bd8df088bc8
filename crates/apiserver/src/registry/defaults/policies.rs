//! Limit ranges, autoscalers, role bindings, priority classes.

use serde_json::{Map, Value, json};

use super::super::Object;
use super::super::conversion::normalize_v1;
use super::{default_to, each};

const RBAC: &str = "rbac.authorization.k8s.io";

/// For containers, the default limit is the maximum, and the default request is the default limit or the minimum.
pub(in super::super) fn limit_range(object: &mut Object) {
    for item in each(object.section_mut("spec"), "limits") {
        if item.get("type").is_some_and(|kind| kind == "Container") {
            follow(item, "max", "default");
            follow(item, "default", "defaultRequest");
            follow(item, "min", "defaultRequest");
        }
    }
}

fn follow(item: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(source) = item.get(from).and_then(Value::as_object).cloned() else { return };
    if let Some(target) = item.entry(to).or_insert_with(|| json!({})).as_object_mut() {
        for (name, quantity) in source {
            target.entry(name).or_insert(quantity);
        }
    }
}

pub(in super::super) fn autoscaler(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "minReplicas", 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    default_to(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let double = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    // Also for the direction that the client omitted.
    for (direction, policies) in [
        ("scaleUp", json!([{"type": "Pods", "value": 4, "periodSeconds": 15}, double])),
        ("scaleDown", json!([double])),
    ] {
        let rules = super::child(behavior, direction);
        default_to(rules, "selectPolicy", "Max");
        default_to(rules, "policies", policies);
        if direction == "scaleUp" {
            default_to(rules, "stabilizationWindowSeconds", 0);
        }
    }
}

/// The metrics are defaulted by the conversion, which knows those in annotations.
pub(in super::super) fn autoscaler_v1(object: &mut Object) {
    default_to(object.section_mut("spec"), "minReplicas", 1);
    normalize_v1(object);
}

pub(in super::super) fn resource_claim(object: &mut Object) {
    device_requests(object.section_mut("spec"));
}

pub(in super::super) fn resource_claim_template(object: &mut Object) {
    device_requests(super::child(object.section_mut("spec"), "spec"));
}

/// A request that does not say how many devices is for one.
fn device_requests(spec: &mut Map<String, Value>) {
    let Some(devices) = spec.get_mut("devices").and_then(Value::as_object_mut) else { return };
    for request in each(devices, "requests") {
        if let Some(exactly) = request.get_mut("exactly").and_then(Value::as_object_mut) {
            device_count(exactly);
        }
        each(request, "firstAvailable").for_each(device_count);
    }
}

fn device_count(request: &mut Map<String, Value>) {
    default_to(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        default_to(request, "count", 1);
    }
}

pub(in super::super) fn api_service(object: &mut Object) {
    let service = object.section_mut("spec").get_mut("service").and_then(Value::as_object_mut);
    service.into_iter().for_each(|service| default_to(service, "port", 443));
}

/// The API group of users and groups is that of RBAC, that of service accounts is the core group.
pub(in super::super) fn binding(object: &mut Object) {
    let reference = super::child(object.root_mut(), "roleRef");
    if reference.get("apiGroup").is_none_or(|group| group == "") {
        reference.insert("apiGroup".to_owned(), RBAC.into());
    }
    for subject in each(object.root_mut(), "subjects") {
        if subject.get("kind").is_some_and(|kind| kind == "User" || kind == "Group") {
            default_to(subject, "apiGroup", RBAC);
        }
    }
}

pub(in super::super) fn storage_class(object: &mut Object) {
    default_to(object.root_mut(), "reclaimPolicy", "Delete");
    default_to(object.root_mut(), "volumeBindingMode", "Immediate");
}

pub(in super::super) fn priority_class(object: &mut Object) {
    default_to(object.root_mut(), "preemptionPolicy", "PreemptLowerPriority");
}

pub(in super::super) fn csi_driver(object: &mut Object) {
    let spec = object.section_mut("spec");
    default_to(spec, "attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default_to(spec, field, false);
    }
    default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    default_to(spec, "volumeLifecycleModes", json!(["Persistent"]));
}
