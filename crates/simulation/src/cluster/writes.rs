//! Writes through the API of the server, without the simulated network.

use super::{Cluster, ResourceType};
use crate::{
    history::{Write, color_name, data, spec},
    totals::Fault,
};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use kube_embedded_apiserver::storage::{Document, Storage};
use kube_informer::ObjectKey;
use kube_informer_wire::MediaType;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The object in the response to a write.
#[derive(Deserialize)]
struct WriteResponse<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl Cluster {
    /// Creates or updates an object, with a random verb.
    pub(crate) async fn put(&self, key: &ObjectKey, color: u64, invalid: bool) -> Option<Arc<Write>> {
        // Protobuf has no form for an object of the wrong types.
        if invalid && self.encoding == MediaType::Json {
            return self.put_invalid(key, color).await;
        }
        let _permit = self.truth.permit(1)?;
        let current = self.truth.lock().history.current().get(key).cloned();
        let verb = self.lock().rng.u8(0..8);
        let mut object = self.object(key, self.next_stamp(), color);
        let request = match (&current, verb) {
            (None, 0) => apply(&self.path(key), &object),
            (None, _) => json_request(Method::POST, &self.collection(key), JSON, &object),
            (Some(write), 0..4) => {
                object["metadata"]["resourceVersion"] = write.version.to_string().into();
                json_request(Method::PUT, &self.path(key), JSON, &object)
            }
            (Some(_), 4) if self.resource == ResourceType::BuiltIn => {
                json_request(Method::PUT, &self.path(key), JSON, &object)
            }
            (Some(_), 5) => apply(&self.path(key), &object),
            (Some(_), _) => json_request(Method::PATCH, &self.path(key), MERGE, &object),
        };
        let response = self.write(request).await?;
        self.check_response(&response)
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) -> Option<Arc<Write>> {
        let _permit = self.truth.permit(1)?;
        if !self.truth.lock().history.current().contains_key(key) {
            return None;
        }
        self.write(json_request(Method::DELETE, &self.path(key), JSON, &json!({}))).await?;
        let truth = self.truth.lock();
        let last = truth.history.last_write_of(key).filter(|write| write.deleted);
        if last.is_none() {
            self.log.fail(format_args!("the server responds that it deleted {key}, but its store has it"));
        }
        last.cloned()
    }

    /// Writes an object to the store that the server would reject.
    async fn put_invalid(&self, key: &ObjectKey, color: u64) -> Option<Arc<Write>> {
        let current = self.truth.lock().history.current().get(key).cloned();
        let current = match current {
            Some(current) => current,
            None => Box::pin(self.put(key, color, false)).await?,
        };
        let _permit = self.truth.permit(1)?;
        let mut object: Value = serde_json::from_slice(&current.json).ok()?;
        let stamp = self.next_stamp();
        object["metadata"]["labels"] = json!("none");
        object["data"] = data(stamp, color, true);
        if self.has_selectable_field() {
            object["spec"]["shade"] = spec(color)["shade"].clone();
        }
        let storage_key = format!("{}{}/{}", self.resource.prefix(), key.namespace()?, key.name());
        let document = Document::encode(&object, []).ok()?;
        let storage = self.lock().storage.clone();
        let written = storage.update(&storage_key, current.version, document).await.ok()?;
        self.log.record_fault(Fault::InvalidObject);
        self.backup();
        let truth = self.truth.lock();
        truth.history.last_write_of(key).filter(|write| write.version == written.revision).cloned()
    }

    /// Writes an object of another resource `by` times.
    pub(crate) async fn advance(&self, by: u64) {
        let Some(_permit) = self.truth.permit(by) else { return };
        for _ in 0..by {
            self.write(unrelated_write(self.next_stamp())).await;
        }
    }

    /// Sends a write to the server. Returns the body of its response, or `None` for 404 and 409.
    pub(super) async fn write(&self, request: Request<Body>) -> Option<Vec<u8>> {
        let server = self.server()?;
        let response: Response<Body> = match server.client().send(request).await {
            Ok(response) => response,
            Err(error) => {
                self.log.fail(format_args!("the server does not respond to a write: {error}"));
                return None;
            }
        };
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.ok()?.to_bytes().to_vec();
        match code {
            200..300 => {
                self.backup();
                Some(body)
            }
            // The CRD is deleted, or another client has written the object.
            404 | 409 => None,
            _ => {
                let body = String::from_utf8_lossy(&body);
                self.log.fail(format_args!("the server rejects a write with {code}: {body}"));
                None
            }
        }
    }

    /// Checks that the store has the object of a response.
    pub(crate) fn check_response(&self, body: &[u8]) -> Option<Arc<Write>> {
        let response = serde_json::from_slice::<WriteResponse<'_>>(body).ok();
        let truth = self.truth.lock();
        let write = response.as_ref().and_then(|response| {
            let version = response.metadata.resource_version.parse().ok()?;
            truth.history.find_write(response.metadata.uid.into(), version)
        });
        if write.is_none() {
            let body = String::from_utf8_lossy(body);
            self.log.fail(format_args!("the store does not have the object of a response: {body}"));
        }
        write.cloned()
    }

    pub(crate) fn object(&self, key: &ObjectKey, stamp: u64, color: u64) -> Value {
        let kind = self.resource.kind();
        let mut object = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": key.name(), "namespace": key.namespace(),
                "labels": {"n": stamp.to_string(), "color": color_name(color)},
                "annotations": {"note": stamp.to_string(), "other": "kept"},
            },
            "data": data(stamp, color, false),
        });
        if self.has_selectable_field() {
            object["spec"] = spec(color);
            let item =
                |number: u64| json!({"name": format!("i{number}"), "secret": format!("{stamp}-{number}")});
            object["spec"]["items"] = (0..4).map(item).collect();
        }
        object
    }

    fn collection(&self, key: &ObjectKey) -> String {
        let namespace = key.namespace().unwrap_or_default();
        match self.resource {
            ResourceType::BuiltIn => format!("/api/v1/namespaces/{namespace}/configmaps"),
            ResourceType::Custom => format!("/apis/sim.example/v1/namespaces/{namespace}/things"),
        }
    }

    pub(crate) fn path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection(key), key.name())
    }
}

/// A write of another resource.
pub(crate) fn unrelated_write(number: u64) -> Request<Body> {
    let lease = json!({"spec": {"holderIdentity": format!("{number}")}});
    json_request(Method::PATCH, LEASE, MERGE, &lease)
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/noise";

fn apply(path: &str, object: &Value) -> Request<Body> {
    json_request(Method::PATCH, &format!("{path}?fieldManager=simulation&force=true"), APPLY, object)
}

pub(crate) fn json_request(method: Method, path: &str, media_type: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    request.body(body.to_string().into_bytes().into()).expect("a valid request")
}
