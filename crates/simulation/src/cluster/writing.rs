//! Writing through the API, as somebody close to the server does: no network is in the way.

use super::{Cluster, Flavor};
use crate::{
    history::{Written, color_name, data},
    totals::Fault,
};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use kube_embedded_apiserver::storage::{Document, Storage};
use kube_informer::ObjectKey;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the answer to a write says about the object.
#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

/// Media types of bodies.
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl Cluster {
    /// Creates an object or gives it another state, in one of the ways there are.
    pub(crate) async fn put(&self, key: &ObjectKey, color: u64, odd: bool) -> Option<Arc<Written>> {
        if odd {
            return self.put_odd(key, color).await;
        }
        let _permit = self.truth.permit(1)?;
        let known = self.truth.lock().history.current().get(key).cloned();
        let way = self.lock().rng.u8(0..8);
        let mut object = self.object(key, self.next_stamp(), color);
        let request = match (&known, way) {
            (None, 0) => apply(&self.path(key), &object),
            (None, _) => send(Method::POST, &self.collection(key), JSON, &object),
            (Some(write), 0..4) => {
                object["metadata"]["resourceVersion"] = write.version.to_string().into();
                send(Method::PUT, &self.path(key), JSON, &object)
            }
            (Some(_), 4) if self.flavor == Flavor::BuiltIn => {
                send(Method::PUT, &self.path(key), JSON, &object)
            }
            (Some(_), 5) => apply(&self.path(key), &object),
            (Some(_), _) => send(Method::PATCH, &self.path(key), MERGE, &object),
        };
        let answer = self.write(request).await?;
        self.confirm(&answer)
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) -> Option<Arc<Written>> {
        let _permit = self.truth.permit(1)?;
        if !self.truth.lock().history.current().contains_key(key) {
            return None;
        }
        self.write(send(Method::DELETE, &self.path(key), JSON, &json!({}))).await?;
        let known = self.truth.lock();
        let last = known.history.last_of(key).filter(|write| write.gone);
        if last.is_none() {
            self.log.fail(format_args!("the server says it deleted {key}, and its store has it"));
        }
        last.cloned()
    }

    /// An object that no server would take today lies in the store.
    async fn put_odd(&self, key: &ObjectKey, color: u64) -> Option<Arc<Written>> {
        let known = self.truth.lock().history.current().get(key).cloned();
        let known = match known {
            Some(known) => known,
            None => Box::pin(self.put(key, color, false)).await?,
        };
        let _permit = self.truth.permit(1)?;
        let mut object: Value = serde_json::from_slice(&known.json).ok()?;
        let stamp = self.next_stamp();
        object["metadata"]["labels"] = json!("none");
        object["data"] = data(stamp, color, true);
        let stored = format!("{}{}/{}", self.flavor.prefix(), key.namespace()?, key.name());
        let document = Document::encode(&object, []).ok()?;
        let storage = self.lock().storage.clone();
        let written = storage.update(&stored, known.version, document).await.ok()?;
        self.log.strike(Fault::Odd);
        self.backup();
        let known = self.truth.lock();
        known.history.last_of(key).filter(|write| write.version == written.revision).cloned()
    }

    /// Something else is written, so often.
    pub(crate) async fn advance(&self, by: u64) {
        let Some(_permit) = self.truth.permit(by) else { return };
        for _ in 0..by {
            self.write(noise(self.next_stamp())).await;
        }
    }

    /// Sends a write to the server; `None` if it refuses.
    pub(super) async fn write(&self, request: Request<Body>) -> Option<Vec<u8>> {
        let server = self.server()?;
        let response: Response<Body> = match server.client().send(request).await {
            Ok(response) => response,
            Err(error) => {
                self.log.fail(format_args!("the server does not answer a write: {error}"));
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
            // The kind is gone, or somebody else was faster.
            404 | 409 => None,
            _ => {
                let said = String::from_utf8_lossy(&body);
                self.log.fail(format_args!("the server refuses a write with {code}: {said}"));
                None
            }
        }
    }

    /// What was answered is what was stored.
    pub(crate) fn confirm(&self, answer: &[u8]) -> Option<Arc<Written>> {
        let answered = serde_json::from_slice::<Answered<'_>>(answer).ok();
        let known = self.truth.lock();
        let write = answered.as_ref().and_then(|answered| {
            let version = answered.metadata.resource_version.parse().ok()?;
            known.history.written(answered.metadata.uid.into(), version)
        });
        if write.is_none() {
            let said = String::from_utf8_lossy(answer);
            self.log.fail(format_args!("the server answered a write that its store does not have: {said}"));
        }
        write.cloned()
    }

    pub(crate) fn object(&self, key: &ObjectKey, stamp: u64, color: u64) -> Value {
        let kind = self.flavor.kind();
        json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {
                "name": key.name(), "namespace": key.namespace(),
                "labels": {"n": stamp.to_string(), "color": color_name(color)},
            },
            "data": data(stamp, color, false),
        })
    }

    fn collection(&self, key: &ObjectKey) -> String {
        let namespace = key.namespace().unwrap_or_default();
        match self.flavor {
            Flavor::BuiltIn => format!("/api/v1/namespaces/{namespace}/configmaps"),
            Flavor::Custom => format!("/apis/sim.example/v1/namespaces/{namespace}/things"),
        }
    }

    pub(crate) fn path(&self, key: &ObjectKey) -> String {
        format!("{}/{}", self.collection(key), key.name())
    }
}

/// A write of something else.
pub(crate) fn noise(number: u64) -> Request<Body> {
    let lease = json!({"spec": {"holderIdentity": format!("{number}")}});
    send(Method::PATCH, NOISE, MERGE, &lease)
}

/// Something that is written besides.
const NOISE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/noise";

fn apply(path: &str, object: &Value) -> Request<Body> {
    send(Method::PATCH, &format!("{path}?fieldManager=simulation&force=true"), APPLY, object)
}

pub(crate) fn send(method: Method, path: &str, media_type: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    request.body(body.to_string().into_bytes().into()).expect("a path and a header of plain text")
}
