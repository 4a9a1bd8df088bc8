//! The warnings about what is not enforced, on every way to write an object.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::super::{MadeBy, NOT_ENFORCED, NotEnforced};
use crate::api::Api;
use crate::http::handle;
use crate::registry::{Registry, Resource};
use crate::server::ApiServer;

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// A valid object of a kind, which makes no promise if the kind can be without one.
fn sample(resource: &Resource) -> Value {
    let samples: Value = serde_json::from_str(include_str!("../../../../tests/samples.json")).expect("JSON");
    let mut object = samples[format!("{}/{}", resource.api_version(), resource.kind)].clone();
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.as_str().into();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = "a".into();
    }
    object
}

/// An object that makes the promise, and what the warning has to name.
fn promising(row: &NotEnforced, resource: &Resource) -> (Value, String) {
    let mut object = sample(resource);
    let named = match &row.made_by {
        MadeBy::Object => resource.kind.clone(),
        MadeBy::Field("/spec/service") => {
            object["spec"]["service"] = json!({"namespace": "default", "name": "s"});
            "spec.service".to_owned()
        }
        MadeBy::Field(other) => panic!("{other} is not enforced: add a value"),
        MadeBy::Element { field: "adminAccess", .. } => {
            let devices = json!({"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "adminAccess": true}}]});
            match resource.kind.as_str() {
                "ResourceClaim" => object["spec"]["devices"] = devices,
                _ => object["spec"]["spec"]["devices"] = devices,
            }
            "adminAccess".to_owned()
        }
        MadeBy::Element { field, .. } => panic!("{field} is not enforced: add a value"),
        MadeBy::Metadata { map, key, promises } => {
            let value = ["true", "restricted"].into_iter().find(|value| promises(value)).expect("a value");
            object["metadata"][*map] = json!({*key: value});
            format!("metadata.{map}[{key}]")
        }
    };
    (object, named)
}

async fn send(
    api: &Arc<Api>,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value, Vec<String>) {
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", media);
    let request = request.body(Full::<Bytes>::from(body.to_string())).expect("a request");
    let response = handle(Arc::clone(api), request).await.expect("a response");
    let text = |value: &http::HeaderValue| value.to_str().expect("ASCII").to_owned();
    let (code, warnings) =
        (response.status().as_u16(), response.headers().get_all("Warning").iter().map(text).collect());
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default(), warnings)
}

fn collection(resource: &Resource) -> String {
    let namespace = if resource.namespaced { "namespaces/default/" } else { "" };
    let root = if resource.group.is_core() { "api" } else { "apis" };
    format!("/{root}/{}/{namespace}{}", resource.api_version(), resource.plural)
}

#[tokio::test(start_paused = true)]
async fn every_write_of_what_is_not_enforced_gets_a_warning() {
    let registry = Registry::built_in();
    for row in NOT_ENFORCED {
        for kind in row.kinds {
            let resource = registry.all().find(|r| r.group.as_str() == row.group && r.kind == *kind).unwrap();
            let api = ApiServer::builder().in_process().await.expect("the server starts").api;
            let (object, named) = promising(row, resource);
            let path = collection(resource);
            let one = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
            let label = json!({"metadata": {"labels": {"x": "y"}}});
            let applied = format!("{one}?fieldManager=m&force=true");
            for (method, path, media, body) in [
                ("POST", format!("{path}?dryRun=All"), JSON, &object),
                ("POST", path.clone(), JSON, &object),
                ("PATCH", format!("{one}?dryRun=All"), MERGE, &label),
                ("PATCH", one.clone(), MERGE, &label),
                ("PATCH", applied, APPLY, &object),
            ] {
                let (code, response, warnings) = send(&api, method, &path, media, body).await;
                assert!(code < 300, "{method} {path}: {response}");
                let found = warnings.iter().any(|text| {
                    text.contains(&named)
                        && text.contains("stored but not enforced")
                        && text.contains(row.why)
                });
                assert!(found, "{method} {path}: {warnings:?}");
            }
            let (_, current, _) = send(&api, "GET", &one, JSON, &json!({})).await;
            let (code, response, warnings) = send(&api, "PUT", &one, JSON, &current).await;
            assert!(
                code == 200 && warnings.iter().any(|text| text.contains(row.why)),
                "{response} {warnings:?}"
            );
        }
    }
}

/// A warning about everything would be ignored.
#[tokio::test(start_paused = true)]
async fn objects_without_such_a_promise_get_no_warning() {
    let registry = Registry::built_in();
    let api = ApiServer::builder().in_process().await.expect("the server starts").api;
    for kind in ["APIService", "Namespace", "StorageClass", "IngressClass", "ServiceAccount", "ResourceClaim"]
    {
        let resource = registry.all().find(|r| r.kind == kind).unwrap();
        let mut object = sample(resource);
        object["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "privileged"});
        object["metadata"]["annotations"] = json!({"storageclass.kubernetes.io/is-default-class": "false"});
        let (code, response, warnings) = send(&api, "POST", &collection(resource), JSON, &object).await;
        assert_eq!((code, warnings), (201, vec![]), "{response}");
    }
}
