//! `/scale`: the replica count of anything that has one, as an `autoscaling/v1` Scale.

use serde_json::{Map, Value, json};

use super::decode::parse_body;
use super::options::WriteOptions;
use super::patch::{kind_of, patch_status, read};
use super::update::{Change, Part, write};
use super::{Answer, Request, Shown};
use crate::engine::Engine;
use crate::registry::{Object, Resource, ScalePaths, ScaleSelector};
use crate::schema::types;
use crate::status::{FieldError, Status};

pub(crate) async fn get(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let answer = super::get::get(engine, request).await?;
    show(engine, &request.resource, answer)
}

pub(crate) async fn update(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let options = WriteOptions::parse(&request.query, "UpdateOptions")?;
    let scale = parse_body(request)?.value;
    set(engine, request, options.dry_run, |_| Ok(scale.clone())).await
}

pub(crate) async fn patch(engine: &Engine, request: &Request) -> Result<Answer, Status> {
    let kind = kind_of(request)?;
    let options = WriteOptions::parse(&request.query, "PatchOptions")?;
    let (patch, _) = read(kind, request)?;
    let shape = types().kind("autoscaling", "v1", "Scale");
    set(engine, request, options.dry_run, |current| patch.apply(current, shape).map_err(|e| patch_status(&e)))
        .await
}

/// Writes the replica count that `change` makes of the current Scale.
async fn set(
    engine: &Engine,
    request: &Request,
    dry_run: bool,
    change: impl Fn(Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    let resource = &request.resource;
    let answer = write(engine, request, Part::Main, dry_run, |old| {
        let scale = change(scale_of(resource, old)?)?;
        let name = scale.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if name != request.name {
            let why = format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                request.name
            );
            return Err(Status::bad_request(why));
        }
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(Status::invalid_scale(old.name(), &error));
        }
        let mut new = old.clone();
        put(new.root_mut(), &paths(resource)?.spec, replicas.into());
        let version = scale.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        if !version.is_empty() {
            new.set_meta("resourceVersion", version);
        }
        Ok(Change::Sent(new))
    })
    .await
    .map_err(|e| e.status(resource, &request.name))?;
    show(engine, resource, answer)
}

fn show(engine: &Engine, resource: &Resource, answer: Answer) -> Result<Answer, Status> {
    match answer {
        Answer::Object { code, object, warnings } => {
            let object = match object {
                Shown::Made(object) => *object,
                Shown::Stored(stored) => engine.object(resource, &stored)?,
            };
            let scale = Object::new(scale_of(resource, &object)?)
                .ok_or_else(|| Status::internal("a scale has metadata"))?;
            Ok(Answer::Scale { code, scale: scale.into_value() }.with_warnings(warnings))
        }
        other => Ok(other),
    }
}

fn paths(resource: &Resource) -> Result<&ScalePaths, Status> {
    resource.scale.as_ref().ok_or_else(Status::no_such_resource)
}

/// Puts a value where a pointer of field names leads, making the objects on the way.
fn put(object: &mut Map<String, Value>, pointer: &str, value: Value) {
    let mut names: Vec<String> =
        pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let Some(last) = names.pop() else { return };
    let mut place = object;
    for name in names {
        let inner = place.entry(name).or_insert_with(|| json!({}));
        if !inner.is_object() {
            *inner = json!({});
        }
        place = inner.as_object_mut().expect("made an object just above");
    }
    place.insert(last, value);
}

fn scale_of(resource: &Resource, object: &Object) -> Result<Value, Status> {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let paths = paths(resource)?;
    let count = |pointer: &str| object.at(pointer).and_then(Value::as_i64);
    let replicas = count(&paths.spec);
    if replicas.is_none() && paths.demands_count {
        let path = paths.spec.replace('/', ".");
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    let mut status = json!({"replicas": count(&paths.status).unwrap_or_default()});
    let selector = selector_text(&paths.selector, object);
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas.unwrap_or_default()}, "status": status}))
}

/// A selector as text.
fn selector_text(place: &ScaleSelector, object: &Object) -> String {
    let selector = object.at("/spec/selector");
    let labels = match place {
        ScaleSelector::Text(pointer) => {
            return pointer.as_deref().map(|p| object.str_at(p).to_owned()).unwrap_or_default();
        }
        ScaleSelector::Map => selector,
        ScaleSelector::Labels => selector.and_then(|s| s.get("matchLabels")),
    };
    let mut terms: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for e in selector.and_then(|s| s.get("matchExpressions")).and_then(Value::as_array).into_iter().flatten()
    {
        let key = e["key"].as_str().unwrap_or_default();
        let values = e["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(",");
        terms.push(match e["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}
