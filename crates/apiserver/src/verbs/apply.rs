//! Server-side apply: a patch that says what its sender wants to own.

use serde_json::{Value, json};

use super::create::{Ownership, insert, match_namespace};
use super::decode::{conform_to, parse_yaml};
use super::options::WriteOptions;
use super::update::{Change, Part, WriteError, match_name, write};
use super::{Request, Response, WriteContext};
use crate::managed::{ApplyError, Managers, duplicate_key};
use crate::registry::{GroupVersion, Object};
use crate::schema::parse_json;
use crate::status::Status;
use crate::work::Abandoned;

pub(crate) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

pub(crate) async fn apply(context: &WriteContext, request: &Request) -> Result<Response, Status> {
    let (resource, name) = (&request.resource, request.name()?);
    let options = WriteOptions::parse_apply(&request.query)?;
    let part = Part::of(request.subresource);
    let config = about(part, request, configuration(request)?);
    let writer = request.writer(&context.clock);
    let settle = |live: &Object| {
        let managers = Managers::read(live);
        let applied = managers.applied(resource, &writer, live, &config, options.force, &request.work);
        let (value, managers) = applied.map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => Status::apply_conflict(&conflicts),
            ApplyError::Abandoned => Abandoned.into(),
        })?;
        let object = Object::new(value).ok_or_else(|| Status::internal("an applied object has metadata"))?;
        Ok::<_, Status>((object, managers))
    };
    let written = write(context, request, part, options.dry_run, |old| {
        let (object, managers) = settle(old)?;
        Ok(Change::Applied(object, managers))
    })
    .await;
    match written {
        Err(WriteError::NotFound) if part == Part::Main => {
            // A configuration that names a uid is meant for that object: it must not create another one.
            if !config.uid().is_empty() {
                let uid = config.uid();
                let why = format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                );
                return Err(Status::conflict(resource, name, &why));
            }
            let blank = json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": {}});
            let blank = Object::new(blank).ok_or_else(|| Status::internal("a blank object has metadata"))?;
            let (mut object, managers) = settle(&blank)?;
            object.metadata_mut().remove("resourceVersion");
            let owner = Ownership::Settled(managers);
            insert(context, resource, object, owner, options.dry_run, &request.work).await
        }
        other => other.map_err(|e| e.status(resource, name)),
    }
}

/// The body as an object of the resource's kind, name and namespace.
fn configuration(request: &Request) -> Result<Object, Status> {
    let resource = &request.resource;
    let parsed = match parse_json(&request.body) {
        Ok(parsed) => parsed.value,
        Err(_) => {
            parse_yaml(&request.body)
                .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?
                .value
        }
    };
    let text = |field: &str| parsed.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind != resource.kind || version != resource.api_version() {
        let GroupVersion { group, version: short } = GroupVersion::parse(version);
        return Err(Status::bad_request(format!("invalid object type: {group}/{short}, Kind={kind}")));
    }
    let named = |field: &str| {
        parsed.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    let whom = format!(
        "{}/{}; {}/{}, Kind={kind}",
        named("namespace"),
        named("name"),
        resource.group,
        resource.version
    );
    let mut value = parsed.clone();
    let typed =
        |why: String| Status::unmapped(format!("failed to create typed patch object ({whom}): {why}"));
    if let Some(twice) = duplicate_key(resource, &value) {
        return Err(typed(twice));
    }
    if let Some(unknown) = conform_to(resource, &mut value).map_err(typed)?.first() {
        return Err(typed(format!(".{unknown}: field not declared in schema")));
    }
    let mut object =
        Object::new(value).ok_or_else(|| typed("an object with metadata is needed".to_owned()))?;
    if object.metadata().contains_key("managedFields") {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if object.name().is_empty() {
        object.set_meta("name", request.name()?);
    }
    match_namespace(&mut object, request.namespace())?;
    match_name(&object, request.name()?)?;
    Ok(object)
}

/// The half of a configuration that a write of this part is about: nobody can own what they cannot change.
fn about(part: Part, request: &Request, mut config: Object) -> Object {
    let status = request.resource.rules.status_fields;
    let typed = ["apiVersion", "kind", "metadata"];
    match part {
        Part::Status => {
            config.root_mut().retain(|field, _| typed.contains(&&**field) || status.contains(&&**field))
        }
        Part::Main => config.root_mut().retain(|field, _| !status.contains(&&**field)),
        Part::Finalize => {}
    }
    config
}
