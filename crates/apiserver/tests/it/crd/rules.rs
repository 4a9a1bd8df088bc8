//! CEL rules of CRDs: checked when the CRD is written, evaluated for every write of an object.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, cluster, definition, message, version, widget};
use crate::cluster::Cluster;

const A: &str = "/apis/example.com/v1/namespaces/default/widgets/a";

/// A CRD with these properties and rules of `spec`, and the status subresource.
fn with_rules(properties: Value, rules: Value) -> Value {
    let mut version = version("v1", properties);
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = rules;
    version["subresources"] = json!({"status": {}});
    definition(&[version])
}

/// The widget `a` with this spec, at its current version.
async fn next(c: &Cluster, spec: Value) -> Value {
    let (_, now) = c.get(A).await;
    let mut next = widget("a", spec);
    next["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    next
}

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    causes.map(|c| format!("{} {} {}", c["reason"], c["field"], c["message"]).replace('"', "")).collect()
}

#[tokio::test(start_paused = true)]
async fn rules_with_errors_are_rejected_when_the_crd_is_written() {
    let c = Cluster::new().await;
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
    let invalid = with_rules(json!({"size": {"type": "integer"}}), json!([{"rule": "self.sise > 1"}]));
    let (code, status) = c.post(DEFINITIONS, invalid).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
    let expected = format!(
        "{at}.rule: Invalid value: {{\"Rule\":\"self.sise > 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
         \"FieldPath\":\"\",\"OptionalOldSelf\":null}}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'\n | \
         self.sise > 1\n | ....^"
    );
    assert!(message(&status).contains(&expected), "{status}");

    let list = json!({"list": {"type": "array", "items": {"type": "string"}}});
    let expensive = with_rules(list, json!([{"rule": "self.list.all(a, self.list.all(b, a != b))"}]));
    let (code, status) = c.post(DEFINITIONS, expensive).await;
    assert_eq!(code, 422);
    let first = &causes(&status)[0];
    let expected = format!(
        "FieldValueForbidden {at}.rule Forbidden: estimated rule cost exceeds budget by factor of more than 100x"
    );
    assert!(first.starts_with(&expected), "{first}");
}

#[tokio::test(start_paused = true)]
async fn objects_that_break_a_rule_are_rejected() {
    let properties = json!({"min": {"type": "integer"}, "max": {"type": "integer"},
        "name": {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self != 'bad'"}]}});
    let rules = json!([
        {"rule": "self.min <= self.max", "messageExpression": "'%d > %d'.format([self.min, self.max])", "fieldPath": ".min"},
        {"rule": "self.max < 100", "message": "too large", "reason": "FieldValueForbidden"}]);
    let c = cluster(with_rules(properties, rules)).await;
    let (code, status) = c.post(WIDGETS, widget("a", json!({"min": 500, "max": 200, "name": "bad"}))).await;
    assert_eq!(code, 422);
    assert_eq!(
        causes(&status),
        [
            "FieldValueInvalid spec.min Invalid value: 500 > 200",
            "FieldValueForbidden spec Forbidden: too large",
            "FieldValueInvalid spec.name Invalid value: \\bad\\: failed rule: self != 'bad'",
        ]
    );
    // Rules rely on valid types and bounds.
    let (_, status) = c.post(WIDGETS, widget("a", json!({"min": "x", "max": 1}))).await;
    assert_eq!(
        causes(&status).last().map(String::as_str),
        Some(
            "FieldValueInvalid <nil> Invalid value: null: some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation"
        )
    );
    assert_eq!(c.post(WIDGETS, widget("a", json!({"min": 1, "max": 2, "name": "ok"}))).await.0, 201);
    // A rule that cannot be evaluated is an error too.
    let (code, status) = c.post(WIDGETS, widget("b", json!({"min": 1}))).await;
    assert_eq!(code, 422);
    let first = &causes(&status)[0];
    assert_eq!(
        first,
        "FieldValueInvalid spec Invalid value: \\object\\: no such key: max evaluating rule: self.min <= self.max"
    );
}

#[tokio::test(start_paused = true)]
async fn transition_rules_compare_with_the_stored_object() {
    let properties = json!({"size": {"type": "integer", "x-kubernetes-validations": [
        {"rule": "self >= oldSelf", "message": "must not shrink"},
        {"rule": "oldSelf.hasValue() || self < 10", "optionalOldSelf": true, "message": "must start small"}]}});
    let c = cluster(with_rules(properties, json!([]))).await;
    let (code, status) = c.post(WIDGETS, widget("a", json!({"size": 50}))).await;
    assert_eq!(
        (code, causes(&status)),
        (422, vec!["FieldValueInvalid spec.size Invalid value: 50: must start small".to_owned()])
    );
    assert_eq!(c.post(WIDGETS, widget("a", json!({"size": 5}))).await.0, 201);
    assert_eq!(c.put(A, next(&c, json!({"size": 50})).await).await.0, 200);
    let (code, status) = c.put(A, next(&c, json!({"size": 40})).await).await;
    assert_eq!(
        (code, causes(&status)),
        (422, vec!["FieldValueInvalid spec.size Invalid value: 40: must not shrink".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn unchanged_invalid_values_stay_accepted_with_a_warning() {
    let properties = json!({"size": {"type": "integer"}, "color": {"type": "string"}});
    let c = cluster(with_rules(properties.clone(), json!([]))).await;
    assert_eq!(c.post(WIDGETS, widget("a", json!({"size": 50, "color": "red"}))).await.0, 201);
    // The rule comes later.
    let mut properties = properties;
    properties["size"]["x-kubernetes-validations"] = json!([{"rule": "self < 10"}]);
    let (_, now) = c.get(super::WIDGET).await;
    let mut restricted = with_rules(properties, json!([]));
    restricted["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    assert_eq!(c.put(super::WIDGET, restricted).await.0, 200);
    let (code, _, warnings) =
        c.request_with_warnings("PUT", A, next(&c, json!({"size": 50, "color": "blue"})).await).await;
    assert_eq!(
        (code, warnings),
        (200, vec!["299 - \"spec.size: Invalid value: 50: failed rule: self < 10\"".to_owned()])
    );
    assert_eq!(c.put(A, next(&c, json!({"size": 51, "color": "blue"})).await).await.0, 422);
    assert_eq!(c.put(A, next(&c, json!({"size": 5, "color": "blue"})).await).await.0, 200);
    assert_eq!(c.put(A, next(&c, json!({"size": 50, "color": "blue"})).await).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn rules_apply_to_the_status_subresource() {
    let mut version = version("v1", json!({"size": {"type": "integer"}}));
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object",
        "properties": {"ready": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0", "message": "negative"}]}}});
    let c = cluster(definition(&[version])).await;
    assert_eq!(c.post(WIDGETS, widget("a", json!({"size": 1}))).await.0, 201);
    let mut object = next(&c, json!({})).await;
    object["status"] = json!({"ready": -1});
    let (code, status) = c.put(&format!("{A}/status"), object).await;
    assert_eq!(
        (code, causes(&status)),
        (422, vec!["FieldValueInvalid status.ready Invalid value: -1: negative".to_owned()])
    );
}
