//! Objects that the server stores and does not enforce: the response says so.

use serde_json::{Value, json};

use crate::cluster::Cluster;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A valid object of each kind.
fn sample(kind: &str) -> Value {
    let rules =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let webhooks = json!([{"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": rules,
        "clientConfig": {"url": "https://a.example.com/hook"}}]);
    let spec = match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            return json!({"metadata": {"name": "a"}, "webhooks": webhooks});
        }
        "ValidatingAdmissionPolicy" => {
            json!({"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]})
        }
        "ValidatingAdmissionPolicyBinding" => json!({"policyName": "a", "validationActions": ["Deny"]}),
        "MutatingAdmissionPolicy" => {
            json!({"matchConstraints": {"resourceRules": rules}, "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]})
        }
        "MutatingAdmissionPolicyBinding" => json!({"policyName": "a"}),
        other => panic!("{other} is served: add a sample here, and a warning if it is not enforced"),
    };
    json!({"metadata": {"name": "a"}, "spec": spec})
}

/// Walks every resource of the group that configures admission, so that a new one cannot be ignored silently.
#[tokio::test(start_paused = true)]
async fn configurations_without_effect_are_answered_with_a_warning() {
    let c = Cluster::new().await;
    let (_, served) = c.get(GROUP).await;
    let resources = served["resources"].as_array().expect("resources");
    let stored: Vec<&Value> =
        resources.iter().filter(|r| !r["name"].as_str().unwrap_or_default().contains('/')).collect();
    assert_eq!(stored.len(), 6);
    for resource in stored {
        let (kind, plural) =
            (resource["kind"].as_str().expect("a kind"), resource["name"].as_str().expect("a name"));
        let what = if kind.ends_with("WebhookConfiguration") {
            "calls no webhooks"
        } else {
            "evaluates no policies"
        };
        let warning = format!("299 - \"{kind} is stored but not enforced: this server {what}\"");
        let path = format!("{GROUP}/{plural}");
        let (code, created, warnings) = c.request_with_warnings("POST", &path, sample(kind)).await;
        assert_eq!((code, &warnings), (201, &vec![warning.clone()]), "{kind}: {created}");
        let mut next = created;
        next["metadata"]["labels"] = json!({"a": "b"});
        let (code, _, warnings) = c.request_with_warnings("PUT", &format!("{path}/a"), next).await;
        assert_eq!((code, warnings), (200, vec![warning]), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn flow_control_without_effect_is_answered_with_a_warning() {
    let c = Cluster::new().await;
    let subjects = json!([{"kind": "Group", "group": {"name": "system:authenticated"}}]);
    let rules =
        json!([{"subjects": subjects, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]);
    let schema =
        json!({"priorityLevelConfiguration": {"name": "a"}, "matchingPrecedence": 100, "rules": rules});
    let samples = [
        ("FlowSchema", "flowschemas", schema),
        (
            "PriorityLevelConfiguration",
            "prioritylevelconfigurations",
            json!({"type": "Exempt", "exempt": {}}),
        ),
    ];
    for (kind, plural, spec) in samples {
        let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/{plural}");
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let (code, created, warnings) = c.request_with_warnings("POST", &path, object).await;
        let warning = format!(
            "299 - \"{kind} is stored but not enforced: this server queues no requests by priority\""
        );
        assert_eq!((code, warnings), (201, vec![warning]), "{kind}: {created}");
    }
}
