//! Autoscalers of `autoscaling/v1`, which are stored as those of `v2`.
//!
//! `v1` only has a target for the utilization of CPU. As in kube-apiserver, it shows the other fields of `v2` in annotations, in the
//! form of `v2beta1`, so that a client of `v1` that writes an object back does not lose them.

use serde_json::{Map, Value, json};

use super::{GroupVersion, StoredAs};
use crate::registry::Object;

pub(in crate::registry) static AUTOSCALER_AS_V2: StoredAs = StoredAs {
    group_version: GroupVersion { group: "autoscaling", version: "v2" },
    plural: "horizontalpodautoscalers",
    show: to_v1,
    store: to_v2,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Annotations of older servers that are dropped.
const OBSOLETE: [&str; 2] = [
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// The target of an autoscaler without metrics, in percent.
const DEFAULT_UTILIZATION: i64 = 80;

/// Fields of one type of metric: the name in an annotation, and the path in `v2`.
type Fields = &'static [(&'static str, &'static [&'static str])];

/// The fields of a metric in the spec.
fn spec_fields(source: &str) -> Fields {
    match source {
        "resource" | "containerResource" => &[
            ("name", &["name"]),
            ("container", &["container"]),
            ("targetAverageUtilization", &["target", "averageUtilization"]),
            ("targetAverageValue", &["target", "averageValue"]),
        ],
        "pods" => &[
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("targetAverageValue", &["target", "averageValue"]),
        ],
        "object" => &[
            ("target", &["describedObject"]),
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("targetValue", &["target", "value"]),
            ("averageValue", &["target", "averageValue"]),
        ],
        _ => &[
            ("metricName", &["metric", "name"]),
            ("metricSelector", &["metric", "selector"]),
            ("targetValue", &["target", "value"]),
            ("targetAverageValue", &["target", "averageValue"]),
        ],
    }
}

/// The fields of a metric in the status.
fn status_fields(source: &str) -> Fields {
    match source {
        "resource" | "containerResource" => &[
            ("name", &["name"]),
            ("container", &["container"]),
            ("currentAverageUtilization", &["current", "averageUtilization"]),
            ("currentAverageValue", &["current", "averageValue"]),
        ],
        "pods" => &[
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("currentAverageValue", &["current", "averageValue"]),
        ],
        "object" => &[
            ("target", &["describedObject"]),
            ("metricName", &["metric", "name"]),
            ("selector", &["metric", "selector"]),
            ("currentValue", &["current", "value"]),
            ("averageValue", &["current", "averageValue"]),
        ],
        _ => &[
            ("metricName", &["metric", "name"]),
            ("metricSelector", &["metric", "selector"]),
            ("currentValue", &["current", "value"]),
            ("currentAverageValue", &["current", "averageValue"]),
        ],
    }
}

/// A `v1` autoscaler as one of `v2`, for rules that are written for `v2`.
pub(in crate::registry) fn as_v2(object: &Object) -> Object {
    let mut object = object.clone();
    to_v2(object.root_mut());
    object
}

/// Makes a `v1` autoscaler what it is after it was stored.
pub(in crate::registry) fn normalize_v1(object: &mut Object) {
    to_v2(object.root_mut());
    to_v1(object.root_mut());
}

fn to_v1(object: &mut Map<String, Value>) {
    let mut annotations = Map::new();
    let mut keep = |name: &str, value: &Value| annotations.insert(name.to_owned(), value.to_string().into());
    if let Some(spec) = section(object, "spec") {
        let mut others = list(spec.remove("metrics"));
        if let Some(at) = others.iter().position(|metric| cpu_utilization(metric, "target").is_some()) {
            let percent = cpu_utilization(&others[at], "target").cloned().unwrap_or_default();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        others.retain(|metric| cpu_utilization(metric, "target").is_none());
        if !others.is_empty() {
            let metrics: Value = others.iter().map(|metric| annotated(metric, spec_fields)).collect();
            keep(METRICS, &metrics);
        }
        if let Some(behavior) = spec.remove("behavior") {
            keep(BEHAVIOR, &recased(&behavior, str::to_ascii_uppercase));
        }
    }
    if let Some(status) = section(object, "status") {
        let current = list(status.remove("currentMetrics"));
        if let Some(percent) =
            current.iter().filter_map(|metric| cpu_utilization(metric, "current")).next_back()
        {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        if !current.is_empty() {
            let metrics: Value = current.iter().map(|metric| annotated(metric, status_fields)).collect();
            keep(CURRENT_METRICS, &metrics);
        }
        let conditions = list(status.remove("conditions"));
        if !conditions.is_empty() {
            keep(CONDITIONS, &conditions.into());
        }
    }
    drop_annotations(object);
    add_annotations(object, annotations);
}

fn to_v2(object: &mut Map<String, Value>) {
    let annotation = |name: &str| {
        let text = object.get("metadata")?.get("annotations")?.get(name)?.as_str()?;
        serde_json::from_str::<Value>(text).ok()
    };
    let others = list(annotation(METRICS));
    let current = annotation(CURRENT_METRICS).map(|metrics| list(Some(metrics)));
    let (behavior, conditions) = (annotation(BEHAVIOR), annotation(CONDITIONS));
    if let Some(spec) = section(object, "spec") {
        let mut metrics: Vec<Value> = others.iter().map(expanded_target).collect();
        match spec.remove("targetCPUUtilizationPercentage") {
            Some(percent) if !percent.is_null() => metrics.push(cpu_target(percent)),
            _ if metrics.is_empty() => metrics.push(cpu_target(DEFAULT_UTILIZATION.into())),
            _ => {}
        }
        spec.insert("metrics".to_owned(), metrics.into());
        if let Some(behavior) = behavior.filter(Value::is_object) {
            spec.insert("behavior".to_owned(), recased(&behavior, str::to_ascii_lowercase));
        }
    }
    if let Some(status) = section(object, "status") {
        let percent = status.remove("currentCPUUtilizationPercentage").filter(|percent| !percent.is_null());
        let metrics = match (current, percent) {
            (Some(current), _) => current.iter().map(|metric| expanded(metric, status_fields)).collect(),
            (None, Some(percent)) => {
                let current = json!({"name": "cpu", "current": {"averageUtilization": percent}});
                vec![json!({"type": "Resource", "resource": current})]
            }
            (None, None) => Vec::new(),
        };
        status.insert(
            "currentMetrics".to_owned(),
            if metrics.is_empty() { Value::Null } else { metrics.into() },
        );
        if let Some(conditions) = conditions.filter(Value::is_array) {
            status.insert("conditions".to_owned(), conditions);
        }
    }
    drop_annotations(object);
}

fn section<'o>(object: &'o mut Map<String, Value>, name: &str) -> Option<&'o mut Map<String, Value>> {
    object.get_mut(name)?.as_object_mut()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Target or current utilization of CPU, of a metric that `v1` has a field for.
fn cpu_utilization<'m>(metric: &'m Value, side: &str) -> Option<&'m Value> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let percent = &metric["resource"][side]["averageUtilization"];
    Some(percent).filter(|percent| is_cpu && !percent.is_null())
}

fn cpu_target(percent: Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// The field of a metric that has the details of its type.
fn source(metric: &Value) -> Option<&'static str> {
    match metric["type"].as_str()? {
        "Resource" => Some("resource"),
        "ContainerResource" => Some("containerResource"),
        "Pods" => Some("pods"),
        "Object" => Some("object"),
        "External" => Some("external"),
        _ => None,
    }
}

/// A metric in the form of annotations.
fn annotated(metric: &Value, fields: fn(&str) -> Fields) -> Value {
    let Some(source) = source(metric) else { return metric.clone() };
    let mut details = Map::new();
    for (name, path) in fields(source) {
        let value = path.iter().fold(&metric[source], |value, field| &value[*field]);
        if !value.is_null() {
            details.insert((*name).to_owned(), value.clone());
        }
    }
    json!({"type": metric["type"], source: details})
}

/// A metric in the form of `v2`.
fn expanded(metric: &Value, fields: fn(&str) -> Fields) -> Value {
    let Some(source) = source(metric) else { return metric.clone() };
    let mut details = json!({});
    for (name, path) in fields(source) {
        let value = &metric[source][*name];
        if !value.is_null() {
            *path.iter().fold(&mut details, |details, field| &mut details[*field]) = value.clone();
        }
    }
    json!({"type": metric["type"], source: details})
}

/// A metric of the spec in the form of `v2`, with the type of its target.
fn expanded_target(metric: &Value) -> Value {
    let mut metric = expanded(metric, spec_fields);
    let Some(source) = source(&metric) else { return metric };
    let target = &mut metric[source]["target"];
    let has = |field: &str| !target[field].is_null();
    let kind = match source {
        _ if has("averageUtilization") => "Utilization",
        "object" if has("averageValue") => "AverageValue",
        "object" | "external" if has("value") => "Value",
        _ => "AverageValue",
    };
    target["type"] = kind.into();
    metric
}

/// The same value with the first letter of each field changed: the annotation has the names of Go's fields.
fn recased(value: &Value, case: fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let renamed = |name: &str| match name.split_at_checked(1) {
                Some((first, rest)) => case(first) + rest,
                None => name.to_owned(),
            };
            fields.map(|(name, value)| (renamed(name), recased(value, case))).collect()
        }
        Value::Array(items) => items.iter().map(|item| recased(item, case)).collect(),
        _ => value.clone(),
    }
}

/// Removes the annotations that stand for fields of `v2`.
fn drop_annotations(object: &mut Map<String, Value>) {
    let Some(metadata) = section(object, "metadata") else { return };
    let Some(annotations) = section(metadata, "annotations") else { return };
    for name in [METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS].iter().chain(&OBSOLETE) {
        annotations.remove(*name);
    }
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

fn add_annotations(object: &mut Map<String, Value>, added: Map<String, Value>) {
    let Some(metadata) = section(object, "metadata").filter(|_| !added.is_empty()) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations.as_object_mut().into_iter().for_each(|annotations| annotations.extend(added.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2(metrics: &Value, status: &Value) -> Map<String, Value> {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": metrics});
        let metadata = json!({"name": "a", "annotations": {"own": "1"}});
        json!({"metadata": metadata, "spec": spec, "status": status}).as_object().unwrap().clone()
    }

    #[test]
    fn the_utilization_of_cpu_is_a_field() {
        let current =
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}]);
        let mut object = v2(&json!([cpu_target(50.into())]), &json!({"currentMetrics": current}));
        to_v1(&mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(object["status"]["currentCPUUtilizationPercentage"], 7);
        assert!(object["spec"].get("metrics").is_none());
        assert!(object["metadata"]["annotations"].get(METRICS).is_none());
    }

    #[test]
    fn other_fields_survive_a_round_trip() {
        let selector = json!({"matchLabels": {"a": "b"}});
        let queue = json!({"name": "queue", "selector": selector});
        let metrics = json!([
            {"type": "Pods", "pods": {"metric": {"name": "packets"}, "target": {"type": "AverageValue", "averageValue": "1k"}}},
            {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "i"}, "metric": {"name": "hits"},
                "target": {"type": "Value", "value": "2k"}}},
            {"type": "External", "external": {"metric": queue, "target": {"type": "AverageValue", "averageValue": "30"}}},
            {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "c",
                "target": {"type": "Utilization", "averageUtilization": 60}}},
            cpu_target(50.into()),
        ]);
        let current = json!([{"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": 7, "averageValue": "70m"}}}]);
        let conditions = json!([{"type": "AbleToScale", "status": "True"}]);
        let mut object = v2(&metrics, &json!({"currentMetrics": current, "conditions": conditions}));
        let policies = json!([{"type": "Pods", "value": 4, "periodSeconds": 60}]);
        object["spec"]["behavior"] =
            json!({"scaleUp": {"stabilizationWindowSeconds": 5, "policies": policies}});
        let original = object.clone();
        to_v1(&mut object);
        let annotations = object["metadata"]["annotations"].as_object().unwrap();
        assert_eq!(annotations.len(), 5, "{annotations:?}");
        assert!(annotations[BEHAVIOR].as_str().unwrap().contains(r#""StabilizationWindowSeconds":5"#));
        assert!(annotations[METRICS].as_str().unwrap().contains(r#""targetAverageValue":"30""#));
        to_v2(&mut object);
        assert_eq!(object, original);
    }

    #[test]
    fn an_autoscaler_without_a_target_gets_one() {
        let mut object = json!({"metadata": {}, "spec": {"maxReplicas": 3}}).as_object().unwrap().clone();
        to_v2(&mut object);
        assert_eq!(object["spec"]["metrics"], json!([cpu_target(80.into())]));
    }

    #[test]
    fn malformed_annotations_are_dropped() {
        let annotations =
            json!({METRICS: "[{]", BEHAVIOR: "7", CONDITIONS: "{}", CURRENT_METRICS: "[1]", "own": "1"});
        let mut object = json!({"metadata": {"annotations": annotations}, "spec": {}, "status": {}});
        to_v2(object.as_object_mut().unwrap());
        assert_eq!(object["metadata"]["annotations"], json!({"own": "1"}));
        assert!(object["spec"].get("behavior").is_none());
    }
}
