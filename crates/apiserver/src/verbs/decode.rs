//! From a body to an object of the resource's kind.

use serde_json::{Map, Value};

use super::Request;
use super::options::FieldValidation;
use crate::custom;
use crate::protobuf;
use crate::registry::{GroupVersion, Object, Registry, Resource, Schema};
use crate::schema::{Parsed, conform, parse_json, types};
use crate::status::{FieldError, Status};

/// A body of a media type that objects of the resource do not come in.
pub(crate) fn unknown_format(resource: &Resource) -> Status {
    let all = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
    let typed = protobuf::knows(&resource.api_version(), &resource.kind);
    Status::unsupported_media_type(if typed { &all } else { &all[..2] })
}

/// An object and what to warn about.
pub(crate) struct Decoded {
    pub(crate) object: Object,
    pub(crate) warnings: Vec<String>,
}

/// Decodes the body of a create or update.
pub(crate) fn decode_object(
    registry: &Registry,
    request: &Request,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let resource = &request.resource;
    let parsed = parse_body(request)?;
    let Parsed { mut value, duplicates } = parsed;
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    let (kind, version) = declared_type(&value, resource);
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    check_type(registry, resource, &kind, &version, name)?;
    let cannot = |why: &str| {
        let short = GroupVersion::parse(&version).version;
        Status::bad_request(format!(
            "{kind} in version {short:?} cannot be handled as a {}: {why}",
            resource.kind
        ))
    };
    if !value.is_object() {
        return Err(cannot("json: cannot unmarshal a value that is not an object"));
    }
    let unknown = conform_to(resource, &mut value).map_err(|e| cannot(&e))?;
    let faults = strict_faults(unknown, duplicates);
    if validation == FieldValidation::Strict && !faults.is_empty() {
        return Err(cannot(&format!("strict decoding error: {}", faults.join(", "))));
    }
    let warnings = if validation == FieldValidation::Warn { faults } else { Vec::new() };
    let mut object = Object::new(value).ok_or_else(|| cannot("json: metadata is not an object"))?;
    set_type(resource, &mut object);
    Ok(Decoded { object, warnings })
}

/// Makes a patched value an object of the kind again. Faults are the patch's.
pub(crate) fn decode_patched(
    registry: &Registry,
    resource: &Resource,
    mut value: Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let invalid = |value: &Value, why: String| {
        Status::invalid_patch(&FieldError::invalid("patch", value.to_string(), why))
    };
    let original = value.clone();
    let (kind, version) = declared_type(&value, resource);
    if let Err(why) = is_of_type(registry, resource, &kind, &version) {
        return Err(invalid(&original, why));
    }
    let unknown = conform_to(resource, &mut value).map_err(|e| invalid(&original, e))?;
    let faults = strict_faults(unknown, duplicates.to_vec());
    if validation == FieldValidation::Strict && !faults.is_empty() {
        return Err(invalid(&original, format!("strict decoding error: {}", faults.join(", "))));
    }
    let warnings = if validation == FieldValidation::Warn { faults } else { Vec::new() };
    let mut object =
        Object::new(value).ok_or_else(|| invalid(&original, "metadata is not an object".to_owned()))?;
    set_type(resource, &mut object);
    Ok(Decoded { object, warnings })
}

/// The body as a value, by its media type.
pub(crate) fn parse_body(request: &Request) -> Result<Parsed, Status> {
    let kind = &request.resource.kind;
    let unrecognised = |why: &str| {
        let data = summary(&request.body);
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} ({data})"
        ))
    };
    match request.content_type.as_str() {
        "" | "application/json" => parse_json(&request.body).map_err(|e| unrecognised(&e.to_string())),
        "application/yaml" => parse_yaml(&request.body).map_err(|e| unrecognised(&e)),
        _ => Err(unknown_format(&request.resource)),
    }
}

/// YAML is read through JSON, so that everything after is the same.
pub(crate) fn parse_yaml(text: &[u8]) -> Result<Parsed, String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let value: Value = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
    Ok(Parsed { value, duplicates: Vec::new() })
}

/// The start of a body, for an error message; never the whole.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    match body {
        [] => "<empty>".to_owned(),
        [b'{', ..] if body.len() > SHOWN => format!("{} ...", String::from_utf8_lossy(&body[..SHOWN])),
        [b'{', ..] => String::from_utf8_lossy(body).into_owned(),
        _ => body.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect(),
    }
}

/// Kind and apiVersion of the body; what is left out is the resource's.
fn declared_type(value: &Value, resource: &Resource) -> (String, String) {
    let text = |field| value.get(field).and_then(Value::as_str).filter(|s| !s.is_empty());
    let kind = text("kind").unwrap_or(&resource.kind).to_owned();
    let version = text("apiVersion").map_or_else(|| resource.api_version(), str::to_owned);
    (kind, version)
}

fn check_type(
    registry: &Registry,
    resource: &Resource,
    kind: &str,
    api_version: &str,
    name: &str,
) -> Result<(), Status> {
    let declared = GroupVersion::parse(api_version);
    let version = declared.version;
    if kind == resource.kind && declared == resource.group_version() {
        return Ok(());
    }
    if kind != resource.kind && resource.custom.is_some() && declared == resource.group_version() {
        let error = FieldError::invalid("kind", kind, format!("must be {}", resource.kind));
        return Err(Status::invalid_kind(kind, resource, name, &error));
    }
    if kind == resource.kind && declared.group == resource.group && registry.knows_kind(declared, kind) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version()
        )));
    }
    is_of_type(registry, resource, kind, api_version).map_err(|why| {
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            resource.kind
        ))
    })
}

/// Why a value that says it is of this kind and version cannot be one of the resource's.
fn is_of_type(registry: &Registry, resource: &Resource, kind: &str, api_version: &str) -> Result<(), String> {
    let declared = GroupVersion::parse(api_version);
    let version = declared.version;
    if kind == resource.kind && declared == resource.group_version() {
        return Ok(());
    }
    if registry.knows_kind(declared, kind) {
        let internal = if resource.group.is_empty() { "core" } else { &resource.group };
        let internal = internal.split('.').next().unwrap_or_default();
        let wanted = &resource.kind;
        return Err(format!("converting ({version}.{kind}) to ({internal}.{wanted}): unknown conversion"));
    }
    Err(format!("no kind {kind:?} is registered for version {api_version:?} in scheme"))
}

/// Applies the kind's schema; a kind without one still has typed metadata. Gives the unknown fields.
pub(crate) fn conform_to(resource: &Resource, value: &mut Value) -> Result<Vec<String>, String> {
    let Some(object) = value.as_object_mut() else { return Ok(Vec::new()) };
    match &resource.schema {
        Schema::Table(shape) => conform(shape, &resource.kind, object).map_err(|e| e.to_string()),
        Schema::Free => conform_metadata(resource, object),
        Schema::Custom(schema) => {
            let mut unknown = conform_metadata(resource, object)?;
            unknown.extend(custom::prune(schema, object));
            Ok(unknown)
        }
    }
}

fn conform_metadata(resource: &Resource, object: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    match (types().named("meta.v1.ObjectMeta"), object.get_mut("metadata")) {
        (_, None | Some(Value::Null)) => Ok(Vec::new()),
        (Some(shape), Some(Value::Object(metadata))) => {
            let unknown = conform(shape, &resource.kind, metadata).map_err(|e| e.to_string())?;
            Ok(unknown.into_iter().map(|path| format!("metadata.{path}")).collect())
        }
        _ => Err(format!(
            "json: cannot unmarshal into Go struct field {}.metadata of type v1.ObjectMeta",
            resource.kind
        )),
    }
}

pub(super) fn strict_faults(unknown: Vec<String>, duplicates: Vec<String>) -> Vec<String> {
    let unknown = unknown.into_iter().map(|path| format!("unknown field {path:?}"));
    let duplicates = duplicates.into_iter().map(|path| format!("duplicate field {path:?}"));
    unknown.chain(duplicates).collect()
}

fn set_type(resource: &Resource, object: &mut Object) {
    let root = object.root_mut();
    root.insert("kind".to_owned(), resource.kind.clone().into());
    root.insert("apiVersion".to_owned(), resource.api_version().into());
}
