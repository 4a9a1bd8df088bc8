//! A small controller that writes back what it finds wrong.

use crate::{cluster::Cluster, cluster::send, history::color_name, log::Log, totals::Fault};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube_informer::{Lister, Object, ObjectKey};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The color that no object may keep, and the one it gets.
const WRONG: u64 = 0;
const RIGHT: u64 = 1;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gives objects another color, over the same network that everybody has.
///
/// It reads its cache, writes the next state of what it found there, and is told if that is no longer the newest.
/// At rest no object has the wrong color, whatever got lost on the way; and what it did not mean to change stays.
#[derive(Clone)]
pub(crate) struct Operator {
    lister: Lister<Value>,
    cluster: Arc<Cluster>,
    client: kube::Client,
    way: Way,
    log: Arc<Log>,
}

/// How an operator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It sends the whole object.
    Put,
    /// It edits what its cache holds, and applies fields that its cache does not hold.
    Edit,
}

/// One write: the request, and the version it is for if it is for one only.
struct Attempt {
    request: Request<Body>,
    on: Option<u64>,
}

impl Operator {
    pub(crate) fn new(lister: Lister<Value>, cluster: &Arc<Cluster>, way: Way, log: &Arc<Log>) -> Self {
        let client = cluster.network().writer();
        Self { lister, cluster: Arc::clone(cluster), client, way, log: Arc::clone(log) }
    }

    /// Looks at one object.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Result<(), &'static str> {
        let Some(object) = self.lister.get(key) else { return Ok(()) };
        if object.labels().get("color") != Some(&color_name(WRONG)) {
            return Ok(());
        }
        let Attempt { request, on } = match self.way {
            Way::Put => self.put(&object),
            Way::Edit => self.edit(&object),
        };
        drop(object);
        let epoch = self.cluster.truth().lock().history.epoch();
        let answer = async {
            let response = self.client.send(request).await.ok()?;
            let code = response.status().as_u16();
            Some((code, response.into_body().collect().await.ok()?.to_bytes()))
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(|_| "no answer")?;
        match answer.ok_or("the connection broke")? {
            // A page for people says nothing about the object.
            (200, body) if !body.starts_with(b"{") => Err("not an answer of the server"),
            (200, body) if self.cluster.truth().lock().history.epoch() == epoch => {
                self.cluster.confirm(&body);
                if self.way == Way::Edit {
                    self.check_edit(key, &body, on);
                }
                Ok(())
            }
            // Another store was put in place of that one.
            (200, _) => Ok(()),
            (409 | 422, _) => {
                self.log.strike(Fault::Conflict);
                Err("somebody was faster")
            }
            // It may be gone: then the cache will hear of it, and there is nothing to do.
            _ => Err("refused"),
        }
    }

    fn put(&self, object: &Object<Value>) -> Attempt {
        let key = object.key();
        let mut next = self.cluster.object(key, self.cluster.next_stamp(), RIGHT);
        next["metadata"]["resourceVersion"] = object.resource_version().to_string().into();
        next["metadata"]["uid"] = object.uid().to_string().into();
        let request = send(Method::PUT, &self.cluster.path(key), "application/json", &next);
        Attempt { request, on: object.resource_version().number() }
    }

    fn edit(&self, object: &Object<Value>) -> Attempt {
        let (path, stamp) = (self.cluster.path(object.key()), self.cluster.next_stamp().to_string());
        let paint = |content: &mut Value| {
            for place in ["/metadata/labels", "/data"] {
                set(content, place, "color", color_name(RIGHT));
                set(content, place, "n", stamp.clone());
            }
        };
        if let Ok(patch) = object.edit(paint) {
            let request = send(Method::PATCH, &path, "application/json-patch+json", &json!(patch));
            return Attempt { request, on: object.resource_version().number() };
        }
        self.log.strike(Fault::EditRefused);
        let apply = object.edit_via_apply("operator", paint).expect("no identity is painted");
        let path = format!("{path}?fieldManager={}&force=true", apply.manager());
        Attempt {
            request: send(Method::PATCH, &path, "application/apply-patch+yaml", apply.document()),
            on: None,
        }
    }

    /// An edit changed the state it was made for, if it was made for one, and nothing but what was edited.
    fn check_edit(&self, key: &ObjectKey, body: &[u8], on: Option<u64>) {
        let after: Value = serde_json::from_slice(body).unwrap_or_default();
        let version = after["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        let version: u64 = version.unwrap_or(0);
        let known = self.cluster.truth().lock();
        let state = known.history.at(known.history.epoch(), version.saturating_sub(1));
        // An apply is for any version: it puts labels in the place of those of an odd object, which are a text.
        let Some(before) = state.and_then(|state| state.get(key)).filter(|write| !write.odd) else { return };
        if on.is_some_and(|on| on != before.version) {
            return self.log.fail(format_args!("{key}: an edit of @{on:?} changed @{}", before.version));
        }
        let before: Value = serde_json::from_slice(&before.json).unwrap_or_default();
        if unedited(before) != unedited(after) {
            self.log.fail(format_args!("{key} @{version}: an edit changed more than was edited"));
        }
    }

    /// No object has the wrong color.
    pub(crate) fn check(&self) -> Result<(), String> {
        let known = self.cluster.truth().lock();
        let wrong = known.history.current().values().find(|write| !write.odd && write.color == WRONG);
        wrong.map_or(Ok(()), |write| Err(format!("{} n={} still has the wrong color", write.key, write.n)))
    }
}

fn set(content: &mut Value, place: &str, field: &str, value: String) {
    let mut at = content;
    for name in place.split('/').skip(1) {
        at = &mut at[name];
    }
    at[field] = value.into();
}

/// What an edit of the operator leaves as it is, without what the server writes with every change.
fn unedited(mut object: Value) -> Value {
    for (place, fields) in [
        ("", &["kind", "apiVersion"][..]),
        ("/metadata", &["resourceVersion", "generation", "managedFields"]),
        ("/metadata/labels", &["color", "n"]),
        ("/data", &["color", "n"]),
    ] {
        let inside = object.pointer_mut(place).and_then(Value::as_object_mut);
        inside.into_iter().for_each(|inside| inside.retain(|name, _| !fields.contains(&name.as_str())));
    }
    object
}
