//! `/scale`: the replica count of anything that has one, as an `autoscaling/v1` Scale.

use serde_json::{Map, Value, json};

use super::decode::parse_body;
use super::options::WriteOptions;
use super::patch::{patch_status, read};
use super::update::{Change, Part, write};
use super::{Answer, Request, Shown};
use crate::engine::Engine;
use crate::patch::PatchKind;
use crate::registry::{Object, Resource};
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
    let kind = PatchKind::of(&request.content_type).ok_or_else(Status::unsupported_patch_type)?;
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
        let scale = change(scale_of(resource, old))?;
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
            return Err(Status::invalid_scale(old.name(), &error));
        }
        let mut new = old.clone();
        new.section_mut("spec").insert("replicas".to_owned(), replicas.into());
        let version = scale.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        new.set_meta("resourceVersion", version);
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
            let scale = Object::new(scale_of(resource, &object))
                .ok_or_else(|| Status::internal("a scale has metadata"))?;
            Ok(Answer::Scale { code, scale: scale.into_value() }.with_warnings(warnings))
        }
        other => Ok(other),
    }
}

fn scale_of(resource: &Resource, object: &Object) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let replicas = |pointer| object.at(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": replicas("/status/replicas")});
    let selector = selector_text(resource, object);
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas("/spec/replicas")}, "status": status})
}

/// A selector as text. Replication controllers have a plain map, all others `matchLabels` and `matchExpressions`.
fn selector_text(resource: &Resource, object: &Object) -> String {
    let selector = object.at("/spec/selector");
    let labels =
        if resource.group.is_empty() { selector } else { selector.and_then(|s| s.get("matchLabels")) };
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
