//! The behaviours that the conformance suite of Kubernetes 1.36 checks under "CustomResourceValidationRules".

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, cluster, definition, message};
use crate::cluster::Cluster;

const A: &str = "/apis/example.com/v1/namespaces/default/widgets/a";

/// A CRD with this schema of the whole object.
fn with_schema(schema: Value) -> Value {
    definition(&[
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}),
    ])
}

fn with_spec(spec: Value) -> Value {
    with_schema(json!({"type": "object", "properties": {"spec": spec}}))
}

/// Rules about sums, sorted lists, and every pair of a list's elements.
fn numbers() -> Value {
    let list = |most: u32| json!({"type": "array", "maxItems": most, "items": {"type": "integer"}});
    with_spec(json!({"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "up": list(1000), "also": list(1000), "same": list(700)},
        "x-kubernetes-validations": [
            {"rule": "self.a + self.b > 0"},
            {"rule": "self.up.isSorted() && self.also.isSorted() && (self.up.sum() + self.also.sum()) % 2 == 0"},
            {"rule": "self.same.all(x, self.same.all(y, x == y))"}]}))
}

fn widget(spec: Value) -> Value {
    super::widget("a", spec)
}

async fn rejected_definition(definition: Value) -> String {
    let c = Cluster::new().await;
    let (code, status) = c.post(DEFINITIONS, definition).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
    message(&status).to_owned()
}

#[tokio::test(start_paused = true)]
async fn objects_that_satisfy_the_rules_are_created() {
    let c = cluster(numbers()).await;
    let valid = json!({"a": 1, "b": 0, "up": [3, 4], "also": [5, 10], "same": [2, 2]});
    let (code, created) = c.post(WIDGETS, widget(valid)).await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test(start_paused = true)]
async fn objects_that_do_not_satisfy_the_rules_are_rejected() {
    let c = cluster(numbers()).await;
    let (code, status) = c.post(WIDGETS, widget(json!({"a": 0, "b": 0}))).await;
    assert_eq!(code, 422);
    assert!(message(&status).contains("spec: Invalid value: failed rule: self.a + self.b > 0"), "{status}");
    assert_eq!(c.get(A).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_rule_about_an_unknown_property_is_rejected() {
    let text =
        rejected_definition(with_spec(json!({"type": "object", "properties": {"x": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.z == 100"}]})))
        .await;
    assert!(text.contains("undefined field 'z'"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_with_a_syntax_error_is_rejected() {
    let text = rejected_definition(with_spec(
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "self = 42"}]}),
    ))
    .await;
    assert!(text.contains("Syntax error: token recognition error at: '= '"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_may_cost_too_much_is_rejected() {
    let inner = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(s, s == 'constant')"}]});
    let text = rejected_definition(with_spec(
        json!({"type": "object", "properties": {"x": {"type": "array", "items": inner}}}),
    ))
    .await;
    assert!(text.contains("exceeds budget by factor of"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_costs_too_much_is_rejected() {
    let c = cluster(numbers()).await;
    let spec = json!({"a": 1, "b": 1, "up": [], "also": [], "same": vec![20; 700]});
    let (code, status) = c.post(WIDGETS, widget(spec)).await;
    assert_eq!(code, 422);
    assert!(message(&status).contains("call cost exceeds limit"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn an_update_that_breaks_a_transition_rule_is_rejected() {
    let num = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf"}]});
    let c = cluster(with_spec(json!({"type": "object", "properties": {"num": num}}))).await;
    let (code, created) = c.post(WIDGETS, widget(json!({"num": 10}))).await;
    assert_eq!(code, 201, "{created}");
    let mut next = created.clone();
    next["spec"]["num"] = json!(9);
    let (code, status) = c.put(A, next.clone()).await;
    assert_eq!(code, 422);
    assert!(message(&status).contains("spec.num: Invalid value: 9: failed rule: self > oldSelf"), "{status}");
    next["spec"]["num"] = json!(11);
    assert_eq!(c.put(A, next).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_default_must_satisfy_the_rules() {
    let size = json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 2", "message": "small"}]});
    let text = rejected_definition(with_spec(json!({"type": "object", "properties": {"size": size}}))).await;
    let expected =
        "spec.validation.openAPIV3Schema.properties[spec].properties[size].default: Invalid value: 1: small";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn rules_inside_alternatives_are_rejected() {
    let rules = json!([{"rule": "true"}]);
    for (keyword, at) in [("allOf", "allOf[0]"), ("anyOf", "anyOf[0]"), ("oneOf", "oneOf[0]"), ("not", "not")]
    {
        let inner = json!({"properties": {"x": {"x-kubernetes-validations": rules}}});
        let alternatives = if keyword == "not" { inner } else { json!([inner]) };
        let mut spec = json!({"type": "object", "properties": {"x": {"type": "string"}}});
        spec[keyword] = alternatives;
        let text = rejected_definition(with_spec(spec)).await;
        let expected =
            format!("{at}.properties[x].x-kubernetes-validations: Forbidden: must be empty to be structural");
        assert!(text.contains(&expected), "{text}");
    }
}

/// On a socket, requests run between others: an expensive one is repeated in the CPU pool.
#[tokio::test]
async fn expensive_rules_are_evaluated_apart_from_other_requests() {
    let server = kube_embedded_apiserver::ApiServer::builder().start().await.expect("the server starts");
    let c = Cluster { server: server.local().clone(), client: server.client().expect("a client") };
    assert_eq!(c.post(DEFINITIONS, numbers()).await.0, 201);
    let with_last = |name: &str, last: i64| {
        let mut same = vec![20; 200];
        same[199] = last;
        super::widget(name, json!({"a": 1, "b": 1, "up": [], "also": [], "same": same}))
    };
    assert_eq!(c.post(WIDGETS, with_last("a", 20)).await.0, 201);
    assert_eq!(c.post(WIDGETS, with_last("b", 21)).await.0, 422);
    assert_eq!((c.get(A).await.0, c.get(&format!("{WIDGETS}/b")).await.0), (200, 404));
    server.shutdown().await;
}
