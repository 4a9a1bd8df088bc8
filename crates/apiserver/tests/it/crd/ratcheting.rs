//! The behaviours that the conformance suite of Kubernetes 1.36 checks under "CRD Validation Ratcheting": values that a new schema makes
//! invalid stay accepted as long as they do not change.

use serde_json::{Value, json};

use super::{WIDGET, cluster, definition, message};
use crate::cluster::{APPLY, Cluster};

const OBJECT: &str = "/apis/example.com/v1/namespaces/default/widgets/a?fieldManager=manager";

/// A server with a CRD that accepts every field.
async fn free() -> Cluster {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster(with_schema(schema)).await
}

fn with_schema(schema: Value) -> Value {
    definition(&[
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}),
    ])
}

/// Replaces the schema of the CRD.
async fn restrict(c: &Cluster, properties: Value) {
    let (_, now) = c.get(WIDGET).await;
    let mut next = with_schema(json!({"type": "object", "properties": properties}));
    next["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    let (code, status) = c.put(WIDGET, next).await;
    assert_eq!(code, 200, "{status}");
}

async fn apply(c: &Cluster, content: &Value) -> (u16, Value) {
    let mut object = content.clone();
    object["apiVersion"] = json!("example.com/v1");
    object["kind"] = json!("Widget");
    object["metadata"]["name"] = json!("a");
    c.patch(OBJECT, APPLY, object).await
}

async fn accepted(c: &Cluster, content: &Value) {
    let (code, status) = apply(c, content).await;
    assert!(code == 200 || code == 201, "{status}");
}

/// Expects a rejection that names these fields.
async fn rejected(c: &Cluster, content: &Value, fields: &[&str]) {
    let (code, status) = apply(c, content).await;
    assert_eq!(code, 422, "{status}");
    for field in fields {
        let named = |cause: &Value| cause["field"] == *field;
        let causes = status["details"]["causes"].as_array().expect("causes");
        assert!(causes.iter().any(named), "{field}: {}", message(&status));
    }
}

/// The schemas of places whose values can be found again in the former object: a field, a field of an object, of an element with a key, and
/// of a value of a map.
fn correlatable(field: Value) -> Value {
    let with = |more: Value| {
        let mut object =
            json!({"type": "object", "properties": {"field": field, "other": {"type": "string"}}});
        object["properties"].as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        object
    };
    let mut element = with(json!({"key": {"type": "string"}}));
    element["required"] = json!(["key"]);
    json!({"field": field, "other": {"type": "string"}, "struct": with(json!({})),
        "list": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"], "items": element},
        "map": {"type": "object", "maxProperties": 5, "additionalProperties": with(json!({}))}})
}

/// An object with `value` in each of these places.
fn filled(value: &str) -> Value {
    json!({"field": value, "struct": {"field": value},
        "list": [{"key": "foo", "field": value}, {"key": "bar", "field": value}],
        "map": {"foo": {"field": value}, "bar": {"field": value}}})
}

fn lists(item: &Value) -> Value {
    json!({"atomic": {"type": "array", "items": item},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": item}})
}

fn with_label(mut object: Value) -> Value {
    object["metadata"] = json!({"labels": {"foo": "bar"}});
    object
}

const BY_SCHEMA: [&str; 6] =
    ["field", "struct.field", "list[0].field", "list[1].field", "map.foo.field", "map.bar.field"];
const BY_RULE: [&str; 6] =
    ["field", "struct.field", "list[0].field", "list[1].field", "map[foo].field", "map[bar].field"];

fn rule(rule: &str) -> Value {
    json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [{"rule": rule}]})
}

#[tokio::test(start_paused = true)]
async fn schema_errors_of_unchanged_correlatable_values_are_ignored() {
    let c = free().await;
    accepted(&c, &filled("foo")).await;
    restrict(&c, correlatable(json!({"type": "string", "enum": ["notfoo"]}))).await;
    accepted(&c, &with_label(filled("foo"))).await;
}

#[tokio::test(start_paused = true)]
async fn schema_errors_of_elements_without_keys_are_reported() {
    let c = free().await;
    let old = json!({"set": ["foo", "bar"], "atomic": ["foo", "bar"]});
    accepted(&c, &old).await;
    restrict(&c, lists(&json!({"type": "string", "enum": ["notfoo", "notbar"]}))).await;
    let new = json!({"set": ["foo", "bar", "notfoo"], "atomic": ["foo", "bar", "notfoo"]});
    rejected(&c, &with_label(new), &["atomic[0]", "atomic[1]", "set[0]", "set[1]"]).await;
    accepted(&c, &with_label(old)).await;
}

#[tokio::test(start_paused = true)]
async fn schema_errors_of_changed_values_are_reported() {
    let c = free().await;
    accepted(&c, &filled("foo")).await;
    restrict(&c, correlatable(json!({"type": "string", "enum": ["foo"]}))).await;
    rejected(&c, &filled("notfoo"), &BY_SCHEMA).await;
}

#[tokio::test(start_paused = true)]
async fn rules_about_unchanged_correlatable_values_are_ignored() {
    let c = free().await;
    accepted(&c, &filled("notfoo")).await;
    restrict(&c, correlatable(rule("self == 'foo'"))).await;
    let mut new = filled("notfoo");
    new["other"] = json!("any");
    new["struct"]["other"] = json!("any");
    new["map"]["foo"]["other"] = json!("any");
    new["list"] = json!([{"key": "baz", "field": "foo", "other": "any"}, {"key": "foo", "field": "notfoo", "other": "any"},
        {"key": "bar", "field": "notfoo"}]);
    accepted(&c, &new).await;
}

#[tokio::test(start_paused = true)]
async fn rules_about_elements_without_keys_are_enforced() {
    let c = free().await;
    accepted(&c, &json!({"set": ["foo", "bar"], "atomic": ["foo", "bar"]})).await;
    restrict(&c, lists(&rule("self != 'foo'"))).await;
    let new = json!({"set": ["foo", "bar", "notfoo"], "atomic": ["foo", "bar", "notfoo"]});
    rejected(&c, &with_label(new), &["atomic[0]", "set[0]"]).await;
}

#[tokio::test(start_paused = true)]
async fn rules_about_changed_values_are_enforced() {
    let c = free().await;
    accepted(&c, &filled("foo")).await;
    restrict(&c, correlatable(rule("self == 'foo'"))).await;
    rejected(&c, &filled("notfoo"), &BY_RULE).await;
}

#[tokio::test(start_paused = true)]
async fn transition_rules_are_enforced_for_unchanged_values() {
    let c = free().await;
    accepted(&c, &filled("foo")).await;
    restrict(&c, correlatable(rule("self != oldSelf"))).await;
    rejected(&c, &with_label(filled("foo")), &BY_RULE).await;
}

#[tokio::test(start_paused = true)]
async fn an_optional_old_self_is_absent_for_new_values() {
    let c = free().await;
    let mut field = rule("!oldSelf.hasValue() || self != oldSelf.value()");
    field["x-kubernetes-validations"][0]["optionalOldSelf"] = json!(true);
    restrict(&c, correlatable(field)).await;
    accepted(&c, &filled("foo")).await;
    rejected(&c, &with_label(filled("foo")), &BY_RULE).await;
    accepted(&c, &filled("new")).await;
}
