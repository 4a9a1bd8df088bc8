//! `/scale`: the replica count of anything that has one, as an `autoscaling/v1` Scale.

use serde_json::{Map, Value, json};

use super::decode::{parse_body, strict_faults};
use super::options::{FieldValidation, WriteOptions};
use super::patch::{PatchType, patch_status, read};
use super::update::{Change, Part, write};
use super::{Content, Request, Response, Shown, WriteContext};
use crate::caches::Caches;
use crate::registry::{Object, Resource, ScalePaths, ScaleSelector};
use crate::schema::{Parsed, Type, conform, types};
use crate::status::{FieldError, Status};

pub(crate) async fn get(caches: &Caches, request: &Request) -> Result<Response, Status> {
    let response = super::get::get(caches, request).await?;
    show(&request.resource, response)
}

pub(crate) async fn update(context: &WriteContext, request: &Request) -> Result<Response, Status> {
    let options = WriteOptions::parse(&request.query, "UpdateOptions")?;
    let Parsed { value, duplicates } = parse_body(request)?;
    let (scale, warnings) = decode(value, duplicates, options.field_validation)?;
    let response = set(context, request, options.dry_run, |_| Ok(scale.clone())).await?;
    Ok(response.with_warnings(warnings))
}

pub(crate) async fn patch(
    context: &WriteContext,
    request: &Request,
    patch_type: PatchType,
) -> Result<Response, Status> {
    let kind = patch_type.without_apply(request)?;
    let options = WriteOptions::parse(&request.query, "PatchOptions")?;
    let (patch, duplicates) = read(kind, request)?;
    let mut warnings = Vec::new();
    let response = set(context, request, options.dry_run, |current| {
        let patched = patch.apply(current, scale_type(), &request.work).map_err(|e| patch_status(&e))?;
        let (scale, faults) = decode(patched, duplicates.clone(), options.field_validation)?;
        warnings = faults;
        Ok(scale)
    })
    .await?;
    Ok(response.with_warnings(warnings))
}

fn scale_type() -> Option<&'static Type> {
    types().kind("autoscaling", "v1", "Scale")
}

/// Checks a Scale against its type. Returns it with the warnings about fields that it does not have or that occur twice.
fn decode(
    mut scale: Value,
    duplicates: Vec<String>,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Status> {
    let cannot = |why: &str| {
        Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
    };
    let unknown = match (scale_type(), scale.as_object_mut()) {
        (Some(shape), Some(fields)) => conform(shape, "Scale", fields).map_err(|e| cannot(&e.to_string()))?,
        _ => Vec::new(),
    };
    let faults = strict_faults(unknown, duplicates);
    match validation {
        FieldValidation::Strict if !faults.is_empty() => {
            Err(cannot(&format!("strict decoding error: {}", faults.join(", "))))
        }
        FieldValidation::Warn => Ok((scale, faults)),
        FieldValidation::Strict | FieldValidation::Ignore => Ok((scale, Vec::new())),
    }
}

/// Writes the replica count that `change` makes of the current Scale.
async fn set(
    context: &WriteContext,
    request: &Request,
    dry_run: bool,
    mut change: impl FnMut(Value) -> Result<Value, Status>,
) -> Result<Response, Status> {
    let (resource, name) = (&request.resource, request.name()?);
    let response = write(context, request, Part::Main, dry_run, |old| {
        let scale = change(scale_of(resource, old)?)?;
        let name = scale.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if name != request.name()? {
            let why = format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                request.name()?
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
    .map_err(|e| e.status(resource, name))?;
    show(resource, response)
}

/// The same response with the Scale of its object.
fn show(resource: &Resource, Response { content, warnings }: Response) -> Result<Response, Status> {
    let content = match content {
        Content::Object { code, object } => {
            let object = match object {
                Shown::Made(object) => *object,
                Shown::Stored(stored) => resource.decode(&stored)?,
            };
            Content::Scale { code, scale: scale_of(resource, &object)? }
        }
        other => other,
    };
    Ok(Response { content, warnings })
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
