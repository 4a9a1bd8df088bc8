//! Server-side apply: a patch with the fields that its manager wants to own.

use serde_json::{Value, json};

use super::create::{Ownership, insert, match_namespace};
use super::decode::{check_fields, conform_to};
use super::error::{Conflict, DecodeError, VerbError};
use super::options::WriteOptions;
use super::update::{Change, Part, match_name, write};
use super::{Request, Response, WriteContext};
use crate::managed::{Managers, duplicate_key, type_error};
use crate::registry::{GroupVersion, Object};
use crate::schema::{Parsed, parse_json, parse_yaml};

pub(crate) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

pub(crate) async fn apply(context: &WriteContext, request: &Request) -> Result<Response, VerbError> {
    let (resource, name) = (&request.resource, request.name()?);
    let options = WriteOptions::parse_apply(&request.query)?;
    let part = Part::of(request.subresource);
    let parsed = parse(request)?;
    let config = about(part, request, configuration(request, parsed.value)?);
    let warnings = check_fields(Vec::new(), parsed.duplicates, options.field_validation)
        .map_err(DecodeError::ApplyNotStrict)?;
    let writer = request.writer(&context.clock);
    let settle = |live: &Object| {
        let managers = Managers::read(live);
        let applied = managers.applied(resource, &writer, live, &config, options.force, &request.work);
        let (value, managers) = applied?;
        let object = Object::new(value).ok_or(VerbError::NotAnObject)?;
        Ok::<_, VerbError>((object, managers))
    };
    let written = write(context, request, part, options.dry_run, |old| {
        let (object, managers) = settle(old)?;
        Ok(Change::Applied(object, managers))
    })
    .await;
    let response = match written {
        Err(error) if error.is_not_found() && part == Part::Main => {
            // A configuration that names a uid is meant for that object: it must not create another one.
            if let Some(uid) = config.uid() {
                let conflict = Conflict::UidNotFound(uid.to_owned());
                return Err(VerbError::rejected(resource, Some(name), conflict.into()));
            }
            let blank = json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": {}});
            let blank = Object::new(blank).ok_or(VerbError::NotAnObject)?;
            let (mut object, managers) = settle(&blank)?;
            object.metadata_mut().remove("resourceVersion");
            let owner = Ownership::Settled(managers);
            insert(context, resource, object, owner, options.dry_run, &request.work).await?
        }
        other => other?,
    };
    Ok(response.with_warnings(warnings))
}

/// Parses the body, which is YAML and may be JSON.
pub(super) fn parse(request: &Request) -> Result<Parsed, DecodeError> {
    parse_json(&request.body).or_else(|_| parse_yaml(&request.body)).map_err(DecodeError::ApplyNotYaml)
}

/// The body as an object of the resource's kind, name and namespace.
fn configuration(request: &Request, parsed: Value) -> Result<Object, VerbError> {
    let resource = &request.resource;
    let text = |field: &str| parsed.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if kind != resource.kind || version != resource.api_version() {
        let GroupVersion { group, version: short } = GroupVersion::parse(version);
        let (group, version, kind) = (group.to_owned(), short.to_owned(), kind.to_owned());
        return Err(DecodeError::ApplyType { group, version, kind }.into());
    }
    // An empty list too, which the conversion below would remove.
    if parsed.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(DecodeError::ApplyManagedFields.into());
    }
    let named = |field: &str| {
        parsed.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    let object = format!(
        "{}/{}; {}/{}, Kind={kind}",
        named("namespace"),
        named("name"),
        resource.group,
        resource.version
    );
    let mut value = parsed.clone();
    let not_typed = |why: String| DecodeError::ApplyNotTyped { object: object.clone(), why };
    if let Some(why) = type_error(resource, &value) {
        return Err(not_typed(why).into());
    }
    if let Some(twice) = duplicate_key(resource, &value) {
        return Err(not_typed(twice).into());
    }
    if let Some(unknown) = conform_to(resource, &mut value).map_err(not_typed)?.first() {
        return Err(not_typed(format!(".{unknown}: field not declared in schema")).into());
    }
    let mut object =
        Object::new(value).ok_or_else(|| not_typed("an object with metadata is needed".to_owned()))?;
    if object.name().is_none() {
        object.set_meta("name", Some(request.name()?));
    }
    match_namespace(&mut object, request.namespace())?;
    match_name(&object, request.name()?)?;
    Ok(object)
}

/// The fields of a configuration that a write of this part changes. A manager cannot own other fields.
fn about(part: Part, request: &Request, mut config: Object) -> Object {
    let status = request.resource.rules.status_fields;
    let typed = ["apiVersion", "kind", "metadata"];
    match part {
        Part::Status => {
            config.root_mut().retain(|field, _| typed.contains(&&**field) || status.contains(&&**field))
        }
        Part::Main => config.root_mut().retain(|field, _| !status.contains(&&**field)),
        Part::Approval => {
            config.root_mut().retain(|field, _| typed.contains(&&**field) || status.contains(&&**field))
        }
        Part::Finalize | Part::EphemeralContainers | Part::Resize => {}
    }
    config
}
