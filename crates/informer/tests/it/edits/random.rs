//! Random objects, random transforms, random edits: an edit is refused, or the server's object changes exactly as edited.

use super::{comparable, get, patch};
use crate::support::secs;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{EditError, InformerFactory, Kind, Object, Transform};
use serde_json::{Map, Value, json};

const OBJECTS: usize = 16;
const TRANSFORMS: usize = 24;
const EDITS: usize = 4;
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

/// Values with few names, so that transforms and edits meet.
fn value(rng: &mut fastrand::Rng, depth: usize) -> Value {
    match rng.u8(0..4) {
        0 if depth > 0 => (0..rng.usize(0..4)).map(|_| value(rng, depth - 1)).collect(),
        1 | 2 if depth > 0 => fields(rng, depth),
        3 => rng.u8(0..4).into(),
        _ => rng.u8(0..4).to_string().into(),
    }
}

fn name(rng: &mut fastrand::Rng) -> &'static str {
    rng.choice(["a", "b", "c"]).unwrap_or("a")
}

fn fields(rng: &mut fastrand::Rng, depth: usize) -> Value {
    let fields: Map<String, Value> =
        (0..rng.usize(1..4)).map(|_| (name(rng).to_owned(), value(rng, depth - 1))).collect();
    fields.into()
}

fn thing(rng: &mut fastrand::Rng, name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": name, "labels": {"a": "1", "b": "2"}, "annotations": {"a": "1", "c": "3"}},
        "spec": fields(rng, 4), "extra": fields(rng, 3),
    })
}

/// A path from one of the fields that edits go to.
fn path(rng: &mut fastrand::Rng) -> String {
    let roots = ["spec", "spec", "extra", "metadata.labels", "metadata.annotations", "metadata"];
    let mut path = rng.choice(roots).unwrap_or("spec").to_owned();
    for _ in 0..rng.usize(0..4) {
        path += &match rng.u8(0..5) {
            0 => "[*]".to_owned(),
            1 => format!("[{}]", rng.u8(0..3)),
            _ => format!(".{}", name(rng)),
        };
    }
    path
}

fn transform(rng: &mut fastrand::Rng) -> Transform {
    let mut transform = Transform::new();
    if rng.bool() {
        let seed = rng.u64(..);
        // The version decides how an object is changed, so that objects change in different ways.
        transform = transform.function(move |object| {
            let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap_or("0").parse().unwrap();
            let mut rng = fastrand::Rng::with_seed(seed ^ version);
            (0..rng.usize(0..4)).for_each(|_| edit(&mut rng, object));
        });
    }
    for _ in 0..rng.usize(1..6) {
        transform = transform.drop_field(&path(rng)).unwrap();
    }
    transform
}

/// Changes one thing somewhere.
fn edit(rng: &mut fastrand::Rng, object: &mut Value) {
    let place = rng.choice(["/spec", "/spec", "/extra", "/metadata/labels", "/metadata/annotations"]);
    let mut at = match object.pointer_mut(place.unwrap_or("/spec")) {
        Some(found) => found,
        None => return,
    };
    let text_only = place.is_some_and(|place| place.starts_with("/metadata"));
    for _ in 0..rng.usize(0..4) {
        let len = at.as_object().map(Map::len).or(at.as_array().map(Vec::len)).unwrap_or(0);
        if text_only || len == 0 {
            break;
        }
        let pick = rng.usize(0..len);
        at = match at {
            Value::Object(fields) => fields.values_mut().nth(pick).unwrap(),
            Value::Array(elements) => &mut elements[pick],
            _ => unreachable!("it has something in it"),
        };
    }
    let new = if text_only { rng.u8(0..4).to_string().into() } else { value(rng, 2) };
    match at {
        Value::Object(fields) if rng.bool() => drop(fields.remove(name(rng))),
        Value::Object(fields) => drop(fields.insert(name(rng).to_owned(), new)),
        Value::Array(elements) if !elements.is_empty() && rng.bool() => {
            drop(elements.remove(rng.usize(0..elements.len())));
        }
        Value::Array(elements) => elements.insert(rng.usize(0..=elements.len()), new),
        other => *other = new,
    }
}

/// What becomes of the whole when the seen part of it is edited: what was not seen stays where it was. `None` where that
/// has no single meaning.
fn carried_over(whole: &Value, seen: &Value, edited: &Value) -> Option<Value> {
    match (whole, seen, edited) {
        _ if seen == edited => Some(whole.clone()),
        (Value::Object(whole), Value::Object(seen), Value::Object(edited)) => {
            let mut result = whole.clone();
            for name in seen.keys().chain(edited.keys()) {
                match (whole.get(name), seen.get(name), edited.get(name)) {
                    (_, was, now) if was == now => {}
                    (Some(whole), Some(was), Some(now)) => {
                        result.insert(name.clone(), carried_over(whole, was, now)?);
                    }
                    (Some(whole), Some(was), None) if whole == was => drop(result.remove(name)),
                    (None, None, Some(now)) => drop(result.insert(name.clone(), now.clone())),
                    _ => return None,
                }
            }
            Some(result.into())
        }
        _ => (whole == seen).then(|| edited.clone()),
    }
}

async fn define(client: &kube::Client) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        },
    });
    post(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
}

async fn post(client: &kube::Client, path: &str, body: &Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let _: Value = client.request(request.body(serde_json::to_vec(body).unwrap()).unwrap()).await.unwrap();
}

#[derive(Debug, Default)]
struct Counts {
    applied: usize,
    refused: usize,
}

/// Edits a cached object once, and compares the server's object before and after.
async fn try_edit(client: &kube::Client, cached: &Object<Value>, seed: u64, counts: &mut Counts) -> bool {
    let path = format!("{THINGS}/{}", cached.name());
    let whole = get(client, &path).await;
    let seen: Value = cached.view().unwrap();
    let mut edited = seen.clone();
    edit(&mut fastrand::Rng::with_seed(seed), &mut edited);
    if seen == edited {
        return false;
    }
    match cached.edit(|object| object.clone_from(&edited)) {
        Err(EditError::NotHeld { .. }) => {
            counts.refused += 1;
            false
        }
        Err(other) => panic!("{other}"),
        Ok(operations) => {
            let wanted = carried_over(&whole, &seen, &edited);
            let after = patch(client, &path, &operations).await.unwrap();
            assert_eq!(Some(comparable(after)), wanted.map(comparable), "{}", cached.name());
            counts.applied += 1;
            true
        }
    }
}

#[tokio::test]
async fn an_edit_is_refused_or_changes_exactly_what_was_edited() {
    let mut rng = fastrand::Rng::with_seed(19);
    let server = ApiServer::builder().in_process().await.unwrap();
    let client = server.client();
    define(&client).await;
    for number in 0..OBJECTS {
        post(&client, THINGS, &thing(&mut rng, &format!("t{number}"))).await;
    }
    let mut counts = Counts::default();
    for round in 0..TRANSFORMS {
        // Edits make objects smaller in the long run.
        post(&client, THINGS, &thing(&mut rng, &format!("u{round}"))).await;
        let factory = InformerFactory::builder(client.clone()).transform(transform(&mut rng)).build();
        let kind = Kind::namespaced("example.com", "v1", "Thing", "things");
        let things = factory.of_kind::<Value>(kind, |options| options);
        factory.start();
        factory.synced(secs(10)).await.unwrap();
        for cached in &things.lister().list() {
            for _ in 0..EDITS {
                // An edit that is applied makes the cached state an old one.
                if try_edit(&client, cached, rng.u64(..), &mut counts).await {
                    break;
                }
            }
        }
        factory.shutdown().await;
    }
    // A test in which one of the two never happens shows little.
    assert!(counts.applied > 50 && counts.refused > 50, "{counts:?}");
}
