//! A small controller that writes to the server.

use crate::{cluster::Cluster, cluster::json_request, history::color_name, log::Log, totals::Fault};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube_informer::{Lister, Object, ObjectKey};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The color that the controller replaces, and the one that it sets.
pub(crate) const WRONG: u64 = 0;
const RIGHT: u64 = 1;

/// Time limit for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A controller that changes the color of objects, over the same network as the informers.
///
/// It reads its cache and writes a new state of the objects there; the server rejects a write of a stale state.
/// After convergence no object has the wrong color, whichever requests and responses were lost, and nothing else was
/// changed.
#[derive(Clone)]
pub(crate) struct Operator {
    lister: Lister<Value>,
    cluster: Arc<Cluster>,
    client: kube::Client,
    mode: WriteMode,
    log: Arc<Log>,
}

/// How the controller writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// With a PUT of the whole object.
    Put,
    /// With `Object::edit`, or with server-side apply for fields that its cache does not hold.
    Edit,
}

/// A write that is ready to be sent.
struct Attempt {
    request: Request<Body>,
    /// The only version that the server may change, unless it may change any.
    expected: Option<u64>,
    /// The change that a JSON patch makes.
    edit: Option<Edit>,
    /// The number in the labels of the cached object.
    stamp: Option<u64>,
}

/// A change of an object. It names elements of an array by their content, not by their position, so that its effect on a
/// cached object, which a transform made smaller, is compared with its effect on the object that the server has.
#[derive(Debug, Clone)]
struct Edit {
    kind: EditKind,
    stamp: u64,
    /// Whether the resource has `spec`.
    has_spec: bool,
}

/// What an edit changes, apart from the color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditKind {
    Nothing,
    Annotate,
    ChangeItem,
    AddItem,
    RemoveItem,
}

impl Edit {
    fn new(stamp: u64, has_spec: bool) -> Self {
        let kinds = match has_spec {
            true => &[
                EditKind::Nothing,
                EditKind::Annotate,
                EditKind::ChangeItem,
                EditKind::AddItem,
                EditKind::RemoveItem,
            ][..],
            false => &[EditKind::Nothing, EditKind::Annotate],
        };
        Self { kind: kinds[stamp as usize % kinds.len()], stamp, has_spec }
    }

    /// The change of the color only.
    fn of_color(&self) -> Self {
        Self { kind: EditKind::Nothing, ..self.clone() }
    }

    fn apply(&self, content: &mut Value) {
        let stamp = self.stamp.to_string();
        for pointer in ["/metadata/labels", "/data"] {
            set(content, pointer, "color", color_name(RIGHT));
            set(content, pointer, "n", stamp.clone());
        }
        if self.has_spec {
            set(content, "/spec", "shade", color_name(RIGHT));
        }
        if self.kind == EditKind::Annotate {
            set(content, "/metadata/annotations", "edited", stamp.clone());
        }
        let Some(items) = content.pointer_mut("/spec/items").and_then(Value::as_array_mut) else { return };
        match self.kind {
            EditKind::Nothing | EditKind::Annotate => {}
            EditKind::ChangeItem => {
                let item = items.iter_mut().find(|item| item["name"] == "i1");
                item.into_iter().for_each(|item| item["edited"] = stamp.clone().into());
            }
            EditKind::AddItem => items.push(json!({"name": format!("e{stamp}")})),
            EditKind::RemoveItem => items.retain(|item| item["name"] != "i2"),
        }
    }
}

impl Operator {
    pub(crate) fn new(
        lister: Lister<Value>,
        cluster: &Arc<Cluster>,
        mode: WriteMode,
        log: &Arc<Log>,
    ) -> Self {
        let client = cluster.network().writer();
        Self { lister, cluster: Arc::clone(cluster), client, mode, log: Arc::clone(log) }
    }

    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Result<(), &'static str> {
        let Some(object) = self.lister.get(key) else { return Ok(()) };
        if object.labels().get("color") != Some(&color_name(WRONG)) {
            return Ok(());
        }
        let attempt = match self.mode {
            WriteMode::Put => self.put(&object),
            WriteMode::Edit => self.edit(&object),
        };
        drop(object);
        let epoch = self.cluster.truth().lock().history.epoch();
        let (expected, edit, stamp) = (attempt.expected, attempt.edit, attempt.stamp);
        let response = async {
            let response = self.client.send(attempt.request).await.ok()?;
            let code = response.status().as_u16();
            Some((code, response.into_body().collect().await.ok()?.to_bytes()))
        };
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, response).await.map_err(|_| "no response")?;
        match response.ok_or("the connection was reset")? {
            (200, body) if !body.starts_with(b"{") => Err("not a response of the server"),
            (200, body) if self.cluster.truth().lock().history.epoch() == epoch => {
                self.cluster.check_response(&body);
                if self.mode == WriteMode::Edit {
                    self.check_edit(key, &body, (expected, stamp), edit.as_ref());
                }
                Ok(())
            }
            // A backup was restored meanwhile.
            (200, _) => Ok(()),
            (409 | 422, _) => {
                self.log.record_fault(Fault::Conflict);
                Err("the object is not the newest")
            }
            // If the object was deleted, the retry finds that in the cache.
            _ => Err("rejected"),
        }
    }

    fn put(&self, object: &Object<Value>) -> Attempt {
        let key = object.key();
        let mut next = self.cluster.object(key, self.cluster.next_stamp(), RIGHT);
        next["metadata"]["resourceVersion"] = object.resource_version().to_string().into();
        next["metadata"]["uid"] = object.uid().to_string().into();
        let request = json_request(Method::PUT, &self.cluster.path(key), "application/json", &next);
        Attempt { request, expected: object.resource_version().number(), edit: None, stamp: None }
    }

    fn edit(&self, object: &Object<Value>) -> Attempt {
        let path = self.cluster.path(object.key());
        let stamp = object.labels().get("n").and_then(|n| n.parse().ok());
        let edit = Edit::new(self.cluster.next_stamp(), self.cluster.has_selectable_field());
        for edit in [edit.clone(), edit.of_color()] {
            if let Ok(patch) = object.edit(|content| edit.apply(content)) {
                let media_type = "application/json-patch+json";
                let request = json_request(Method::PATCH, &path, media_type, &json!(patch));
                let expected = object.resource_version().number();
                return Attempt { request, expected, edit: Some(edit), stamp };
            }
            self.log.record_fault(Fault::EditRefused);
        }
        let change = |content: &mut Value| edit.of_color().apply(content);
        let apply = object.edit_via_apply("operator", change).expect("the identity is not changed");
        let path = format!("{path}?fieldManager={}&force=true", apply.manager());
        Attempt {
            request: json_request(Method::PATCH, &path, "application/apply-patch+yaml", apply.document()),
            expected: None,
            edit: None,
            stamp,
        }
    }

    /// Checks that an edit changed the version that it was made for, and had the same effect on the object of the server as
    /// on the cached one, which has the number `stamp`.
    fn check_edit(
        &self,
        key: &ObjectKey,
        body: &[u8],
        (expected, stamp): (Option<u64>, Option<u64>),
        edit: Option<&Edit>,
    ) {
        let after: Value = serde_json::from_slice(body).unwrap_or_default();
        let version = after["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        let version: u64 = version.unwrap_or(0);
        let truth = self.cluster.truth().lock();
        let state = truth.history.at(truth.history.epoch(), version.saturating_sub(1));
        // An apply replaces the labels of an invalid object, which are a string.
        let Some(before) = state.and_then(|state| state.get(key)).filter(|write| !write.invalid) else {
            return;
        };
        if expected.is_some_and(|expected| expected != before.version) {
            return self
                .log
                .fail(format_args!("{key}: an edit of @{expected:?} changed @{}", before.version));
        }
        // The server was restored, and gave the uid and version of the cached object to another state: no test tells them apart.
        if truth.history.is_repeated(before) && stamp.is_some_and(|stamp| stamp != before.stamp) {
            return;
        }
        let mut wanted: Value = serde_json::from_slice(&before.json).unwrap_or_default();
        let same = match edit {
            Some(edit) => {
                edit.apply(&mut wanted);
                without_server_fields(wanted) == without_server_fields(after)
            }
            None => unedited(wanted) == unedited(after),
        };
        if !same {
            self.log.fail(format_args!("{key} @{version}: an edit changed other fields, too: {edit:?}"));
        }
    }

    /// Checks that no object has the wrong color.
    pub(crate) fn check(&self) -> Result<(), String> {
        let truth = self.cluster.truth().lock();
        let wrong = truth.history.current().values().find(|write| !write.invalid && write.color == WRONG);
        wrong.map_or(Ok(()), |write| Err(format!("{} n={} still has the wrong color", write.key, write.n)))
    }
}

fn set(content: &mut Value, pointer: &str, field: &str, value: String) {
    let mut at = content;
    for name in pointer.split('/').skip(1) {
        at = &mut at[name];
    }
    at[field] = value.into();
}

/// The fields that only the server changes.
const SERVER_FIELDS: [(&str, &[&str]); 2] =
    [("", &["kind", "apiVersion"]), ("/metadata", &["resourceVersion", "generation", "managedFields"])];
/// The fields that every edit changes.
const EDITED_FIELDS: [(&str, &[&str]); 3] =
    [("/metadata/labels", &["color", "n"]), ("/data", &["color", "n"]), ("/spec", &["shade"])];

/// The fields that clients change.
fn without_server_fields(mut object: Value) -> Value {
    SERVER_FIELDS.iter().for_each(|(pointer, names)| remove(&mut object, pointer, names));
    object
}

/// The fields that neither an apply nor the server changes.
fn unedited(object: Value) -> Value {
    let mut object = without_server_fields(object);
    EDITED_FIELDS.iter().for_each(|(pointer, names)| remove(&mut object, pointer, names));
    object
}

fn remove(object: &mut Value, pointer: &str, names: &[&str]) {
    let parent = object.pointer_mut(pointer).and_then(Value::as_object_mut);
    parent.into_iter().for_each(|parent| parent.retain(|name, _| !names.contains(&name.as_str())));
}
