//! Disruption budgets and autoscalers.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::container::among;
use super::numbers::share;
use super::read::{each, path_segment, required, text};
use super::selector;
use crate::registry::Object;
use crate::registry::conversion::as_v2;
use crate::status::{FieldError, FieldErrors};

const METRICS: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// A budget as Go prints it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Budget<'b> {
    min_available: &'b Value,
    selector: &'b Value,
    max_unavailable: &'b Value,
    unhealthy_pod_eviction_policy: &'b Value,
}

pub(in crate::registry) fn budget(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    let mut errors = FieldErrors::new();
    if !least.is_null() && !most.is_null() {
        let shown = Budget {
            min_available: least,
            selector: &spec["selector"],
            max_unavailable: most,
            unhealthy_pod_eviction_policy: &spec["unhealthyPodEvictionPolicy"],
        };
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", shown, why));
    }
    for (field, value) in [("spec.minAvailable", least), ("spec.maxUnavailable", most)] {
        errors.extend(share(value, field));
        if let Some(percent) = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<u32>().ok())
            && percent > 100
        {
            errors.push(FieldError::invalid(field, value, "must not be greater than 100%"));
        }
    }
    let empty = Map::new();
    errors.extend(selector::validate(spec["selector"].as_object().unwrap_or(&empty), "spec.selector"));
    let policy = text(spec, "unhealthyPodEvictionPolicy");
    let field = "spec.unhealthyPodEvictionPolicy".to_owned();
    errors.extend(among(policy, &["AlwaysAllow", "IfHealthyBudget"], field));
    errors
}

pub(in crate::registry) fn autoscaler(object: &Object) -> FieldErrors {
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    let mut errors = FieldErrors::new();
    let least = spec["minReplicas"].as_i64();
    if let Some(least) = least.filter(|least| *least < 1) {
        let why = "must be greater than or equal to 1";
        errors.push(FieldError::invalid("spec.minReplicas", least, why));
    }
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if most < 1 {
        errors.push(FieldError::required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if least.is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", most, why));
    }
    let target = &spec["scaleTargetRef"];
    for field in ["kind", "name"] {
        errors.extend(required(path_segment, text(target, field), &format!("spec.scaleTargetRef.{field}")));
    }
    let version = text(target, "apiVersion");
    if !version.contains('/') && text(target, "kind") != "ReplicationController" {
        let why = "apiVersion must specify API group";
        errors.push(FieldError::invalid("spec.scaleTargetRef.apiVersion", version, why));
    }
    let mut scalable = false;
    for (i, metric) in each(spec, "metrics") {
        scalable |= matches!(text(metric, "type"), "Object" | "External");
        errors.extend(metric_faults(metric, &format!("spec.metrics[{i}]")));
    }
    if least == Some(0) && !scalable {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden("spec.metrics", why));
    }
    for direction in ["scaleUp", "scaleDown"] {
        errors.extend(scaling(&spec["behavior"][direction], &format!("spec.behavior.{direction}")));
    }
    errors
}

/// Errors name the fields of `v2`, as in kube-apiserver.
pub(in crate::registry) fn autoscaler_v1(object: &Object) -> FieldErrors {
    autoscaler(&as_v2(object))
}

fn metric_faults(metric: &Value, at: &str) -> FieldErrors {
    let source = match text(metric, "type") {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        other => {
            let field = format!("{at}.type");
            // Reported for the type, and again for the name of the source.
            let unknown = FieldError::not_supported(&field, other, &METRICS);
            let missing = FieldError::required(&field, "must specify a metric source type");
            return if other.is_empty() {
                [missing, unknown.clone(), unknown].into()
            } else {
                [unknown.clone(), unknown].into()
            };
        }
    };
    let at = format!("{at}.{source}");
    if !metric[source].is_object() {
        return [FieldError::required(at, "must populate information for the given metric source")].into();
    }
    let (metric, target) = (&metric[source], &metric[source]["target"]);
    let mut errors = FieldErrors::new();
    let of_resource = source == "resource" || source == "containerResource";
    if of_resource && text(metric, "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), "must specify a resource name"));
    }
    if !of_resource && text(&metric["metric"], "name").is_empty() {
        errors.push(FieldError::required(format!("{at}.metric.name"), "must specify a metric name"));
    }
    let kind = text(target, "type");
    let field = format!("{at}.target.type");
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&field, kind, why));
    }
    let utilization = target["averageUtilization"].as_i64();
    if let Some(share) = utilization.filter(|share| *share < 1) {
        let field = format!("{at}.target.averageUtilization");
        errors.push(FieldError::invalid(field, share, "must be greater than 0"));
    }
    if of_resource && utilization.is_none() && target["averageValue"].is_null() {
        let why = "must set either a target raw value or a target utilization";
        errors.push(FieldError::required(format!("{at}.target.averageUtilization"), why));
    }
    if source == "pods" && target["averageValue"].is_null() {
        let why = "must specify a positive target averageValue";
        errors.push(FieldError::required(format!("{at}.target.averageValue"), why));
    }
    errors
}

fn scaling(rules: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if let Some(window) = rules["stabilizationWindowSeconds"].as_i64().filter(|window| *window < 0) {
        let field = format!("{at}.stabilizationWindowSeconds");
        errors.push(FieldError::invalid(field, window, "must be greater than or equal to zero"));
    }
    let policies = ["Disabled", "Max", "Min"];
    errors.extend(among(text(rules, "selectPolicy"), &policies, format!("{at}.selectPolicy")));
    for (i, policy) in each(rules, "policies") {
        let at = format!("{at}.policies[{i}]");
        errors.extend(among(text(policy, "type"), &["Percent", "Pods"], format!("{at}.type")));
        for field in ["value", "periodSeconds"] {
            let number = policy[field].as_i64().unwrap_or_default();
            if number < 1 {
                errors.push(FieldError::invalid(
                    format!("{at}.{field}"),
                    number,
                    "must be greater than zero",
                ));
            }
        }
    }
    errors
}
