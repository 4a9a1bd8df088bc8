//! `/scale`: the replica count of anything that has one, as an `autoscaling/v1` Scale.

use serde_json::{Map, Value, json};

use super::decode::{BodyType, parse_body};
use super::error::{DecodeError, Rejection, RequestError, VerbError};
use super::options::WriteOptions;
use super::patch::{PatchType, read};
use super::update::{Change, Part, write};
use super::{Content, Request, Response, Shown, WriteContext};
use crate::caches::Caches;
use crate::managed::Managers;
use crate::registry::{GroupVersion, Object, Resource, ScalePaths, ScaleSelector};
use crate::schema::Parsed;
use crate::status::FieldError;

/// The replica count in the Scale that a write of an object without one starts from, as in kube-apiserver.
const UNSET: i64 = i32::MIN as i64;

pub(crate) async fn get(caches: &Caches, request: &Request) -> Result<Response, VerbError> {
    let response = super::get::get(caches, request).await?;
    show(&request.resource, response)
}

pub(crate) async fn update(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let options = WriteOptions::parse(&request.query, "UpdateOptions")?;
    let (scale, warnings) = BodyType::SCALE.decode(parse_body(request)?, options.field_validation)?;
    let response = set(context, request, options.dry_run, |_| Ok(scale.clone())).await?;
    Ok(response.with_warnings(warnings))
}

pub(crate) async fn patch(
    context: &WriteContext,
    request: &Request,
    patch_type: PatchType,
) -> Result<Response, VerbError> {
    let kind = match patch_type {
        PatchType::Apply => return apply(context, request).await,
        PatchType::Patch(kind) => kind,
    };
    let options = WriteOptions::parse(&request.query, "PatchOptions")?;
    let (patch, duplicates) = read(kind, request)?;
    let mut warnings = Vec::new();
    let response = set(context, request, options.dry_run, |current| {
        let value = patch.apply(current, BodyType::SCALE.schema(), &request.work)?;
        let parsed = Parsed { value, duplicates: duplicates.clone() };
        let (scale, found) = BodyType::SCALE.decode(parsed, options.field_validation)?;
        warnings = found;
        Ok(scale)
    })
    .await?;
    Ok(response.with_warnings(warnings))
}

/// Server-side apply of a Scale: its manager owns the replica count of the object.
async fn apply(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let resource = &request.resource;
    let options = WriteOptions::parse_apply(&request.query)?;
    let parsed = super::apply::parse(request)?;
    let text = |field: &str| parsed.value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if (kind.as_str(), version.as_str()) != ("Scale", "autoscaling/v1") {
        let GroupVersion { group, version } = GroupVersion::parse(&version);
        let (group, version) = (group.to_owned(), version.to_owned());
        return Err(DecodeError::ApplyType { group, version, kind }.into());
    }
    let (scale, warnings) = BodyType::SCALE.decode(parsed, options.field_validation)?;
    let sent = scale.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(request.name()?);
    check_name(request, sent)?;
    let config = json!({"kind": resource.kind, "apiVersion": resource.api_version()});
    let mut config = Object::new(config).ok_or(VerbError::NotAnObject)?;
    config.set_meta("name", Some(request.name()?));
    config.set_meta("namespace", request.namespace());
    if let Some(replicas) = scale.pointer("/spec/replicas") {
        check_replicas(resource, request.name.as_deref(), replicas.as_i64().unwrap_or_default())?;
        put(config.root_mut(), &paths(resource)?.spec, replicas.clone());
    }
    let writer = request.writer(&context.clock);
    let response = write(context, request, Part::Main, options.dry_run, |old| {
        let managers = Managers::read(old);
        let (value, managers) =
            managers.applied(resource, &writer, old, &config, options.force, &request.work)?;
        Ok(Change::Applied(Object::new(value).ok_or(VerbError::NotAnObject)?, managers))
    })
    .await?;
    Ok(show(resource, response)?.with_warnings(warnings))
}

fn check_name(request: &Request, sent: &str) -> Result<(), VerbError> {
    let name = request.name()?;
    if sent == name {
        return Ok(());
    }
    Err(DecodeError::OtherName { sent: sent.to_owned(), name: name.to_owned() }.into())
}

fn check_replicas(resource: &Resource, name: Option<&str>, replicas: i64) -> Result<(), VerbError> {
    if replicas >= 0 {
        return Ok(());
    }
    let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(VerbError::rejected(resource, name, Rejection::InvalidScale(error)))
}

/// Writes the replica count that `change` makes of the current Scale.
async fn set(
    context: &WriteContext,
    request: &Request,
    dry_run: bool,
    mut change: impl FnMut(Value) -> Result<Value, VerbError>,
) -> Result<Response, VerbError> {
    let resource = &request.resource;
    let response = write(context, request, Part::Main, dry_run, |old| {
        let paths = paths(resource)?;
        let unset = if paths.demands_count { UNSET } else { 0 };
        let current = replicas(paths, old).unwrap_or(unset);
        let scale = change(scale_with(paths, old, current))?;
        let sent = scale.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        check_name(request, sent)?;
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        if paths.demands_count && replicas == UNSET {
            return Err(DecodeError::EmptyReplicas(paths.spec_path()).into());
        }
        check_replicas(resource, old.name(), replicas)?;
        let mut new = old.clone();
        put(new.root_mut(), &paths.spec, replicas.into());
        let version = scale.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        if !version.is_empty() {
            new.set_meta("resourceVersion", Some(version));
        }
        Ok(Change::Sent(new))
    })
    .await?;
    show(resource, response)
}

/// The same response with the Scale of its object.
fn show(resource: &Resource, Response { content, warnings }: Response) -> Result<Response, VerbError> {
    let content = match content {
        Content::Object { code, object } => {
            let object = match object {
                Shown::Made(object) => *object,
                Shown::Stored(stored) => resource.decode(&stored)?,
            };
            Content::OtherKind { code, object: scale_of(resource, &object)? }
        }
        other => other,
    };
    Ok(Response { content, warnings })
}

fn paths(resource: &Resource) -> Result<&ScalePaths, RequestError> {
    resource.scale.as_ref().ok_or(RequestError::NoSuchResource)
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

fn scale_of(resource: &Resource, object: &Object) -> Result<Value, VerbError> {
    let paths = paths(resource)?;
    match replicas(paths, object) {
        None if paths.demands_count => Err(VerbError::NoReplicas(paths.spec_path())),
        found => Ok(scale_with(paths, object, found.unwrap_or_default())),
    }
}

fn replicas(paths: &ScalePaths, object: &Object) -> Option<i64> {
    object.at(&paths.spec).and_then(Value::as_i64)
}

/// The Scale of an object, with this replica count.
fn scale_with(paths: &ScalePaths, object: &Object, replicas: i64) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata().get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let counted = object.at(&paths.status).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({"replicas": counted});
    let selector = selector_text(&paths.selector, object);
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas}, "status": status})
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
