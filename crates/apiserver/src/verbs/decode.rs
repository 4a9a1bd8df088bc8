//! Decoding of request bodies.

use serde_json::{Map, Value};

use super::Request;
use super::error::{DecodeError, RequestError, VerbError};
use super::options::FieldValidation;
use crate::custom;
use crate::registry::{GroupVersion, Object, Registry, Resource, Schema};
use crate::schema::{Duplicate, Parsed, Type, conform, parse_json, parse_yaml, types};
use kube_informer_types::protobuf;

const MEDIA_TYPES: &[&str] = &["application/json", "application/yaml", protobuf::MEDIA_TYPE];
const MEDIA_TYPES_WITHOUT_PROTOBUF: &[&str] = &["application/json", "application/yaml"];

/// The error for a body in a media type that the resource does not have.
pub(crate) fn unknown_format(resource: &Resource) -> RequestError {
    let typed = protobuf::knows(&resource.api_version(), &resource.kind);
    RequestError::UnsupportedMediaType(if typed { MEDIA_TYPES } else { MEDIA_TYPES_WITHOUT_PROTOBUF })
}

/// An object and the warnings about its body.
pub(crate) struct Decoded {
    pub(crate) object: Object,
    pub(crate) warnings: Vec<String>,
}

/// Decodes the body of a create or update.
pub(crate) fn decode_object(
    registry: &Registry,
    request: &Request,
    validation: FieldValidation,
) -> Result<Decoded, VerbError> {
    let resource = &request.resource;
    let Parsed { mut value, duplicates } = parse_body(request)?;
    if value.is_null() {
        value = Value::Object(Map::new());
    }
    let (kind, version) = declared_type(&value, resource);
    let name = value.pointer("/metadata/name").and_then(Value::as_str);
    check_type(registry, resource, &kind, &version, name)?;
    let cannot = |why: String| {
        let version = GroupVersion::parse(&version).version;
        DecodeError::cannot_be_handled(resource, &kind, version, why)
    };
    if !value.is_object() {
        return Err(cannot("json: cannot unmarshal a value that is not an object".to_owned()).into());
    }
    let unknown = conform_to(resource, &mut value).map_err(cannot)?;
    let warnings = check_fields(unknown, duplicates, validation).map_err(cannot)?;
    let mut object =
        Object::new(value).ok_or_else(|| cannot("json: metadata is not an object".to_owned()))?;
    set_type(resource, &mut object);
    Ok(Decoded { object, warnings })
}

/// Decodes the result of a patch. Errors are those of the patch.
pub(crate) fn decode_patched(
    registry: &Registry,
    resource: &Resource,
    mut value: Value,
    duplicates: &[Duplicate],
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let original = value.clone();
    let invalid = |why: String| DecodeError::PatchResult { value: original.clone(), why };
    let (kind, version) = declared_type(&value, resource);
    is_of_type(registry, resource, &kind, &version).map_err(invalid)?;
    let unknown = conform_to(resource, &mut value).map_err(invalid)?;
    let warnings = check_fields(unknown, duplicates.to_vec(), validation).map_err(invalid)?;
    let mut object = Object::new(value).ok_or_else(|| invalid("metadata is not an object".to_owned()))?;
    set_type(resource, &mut object);
    Ok(Decoded { object, warnings })
}

/// The type of a body that is not an object of the resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyType {
    group: &'static str,
    kind: &'static str,
}

impl BodyType {
    pub(crate) const BINDING: Self = Self { group: "", kind: "Binding" };
    pub(crate) const EVICTION: Self = Self { group: "policy", kind: "Eviction" };
    pub(crate) const TOKEN_REQUEST: Self = Self { group: "authentication.k8s.io", kind: "TokenRequest" };
    pub(crate) const SCALE: Self = Self { group: "autoscaling", kind: "Scale" };

    pub(crate) fn schema(self) -> Option<&'static Type> {
        types().kind(self.group, "v1", self.kind)
    }

    /// Checks a value against the type. Returns it with the warnings about fields that the type does not have or that occur twice.
    pub(crate) fn decode(
        self,
        Parsed { mut value, duplicates }: Parsed,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), DecodeError> {
        let cannot = |why: String| DecodeError::CannotBeHandled {
            kind: self.kind.to_owned(),
            version: "v1".to_owned(),
            wanted: self.kind.to_owned(),
            why,
        };
        let unknown = match (self.schema(), value.as_object_mut()) {
            (Some(schema), Some(fields)) => {
                conform(schema, self.kind, fields).map_err(|e| cannot(e.to_string()))?
            }
            _ => Vec::new(),
        };
        let warnings = check_fields(unknown, duplicates, validation).map_err(cannot)?;
        Ok((value, warnings))
    }
}

/// Parses a JSON or YAML body.
pub(crate) fn parse_body(request: &Request) -> Result<Parsed, VerbError> {
    let unrecognized = |why: String| DecodeError::Unrecognized {
        kind: request.resource.kind.clone(),
        why,
        data: summary(&request.body),
    };
    match request.content_type.as_str() {
        "" | "application/json" => Ok(parse_json(&request.body).map_err(|e| unrecognized(e.to_string()))?),
        "application/yaml" => Ok(parse_yaml(&request.body).map_err(unrecognized)?),
        _ => Err(unknown_format(&request.resource).into()),
    }
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

/// Kind and apiVersion of the body. Absent ones are those of the resource.
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
    name: Option<&str>,
) -> Result<(), DecodeError> {
    let declared = GroupVersion::parse(api_version);
    if kind == resource.kind && declared == resource.group_version() {
        return Ok(());
    }
    if kind != resource.kind && resource.custom.is_some() && declared == resource.group_version() {
        return Err(DecodeError::OtherKind {
            kind: kind.to_owned(),
            wanted: resource.kind.clone(),
            group: resource.group.clone(),
            name: name.map(str::to_owned),
        });
    }
    if kind == resource.kind
        && declared.group == resource.group.as_str()
        && registry.knows_kind(declared, kind)
    {
        return Err(DecodeError::OtherApiVersion {
            sent: api_version.to_owned(),
            wanted: resource.api_version(),
        });
    }
    is_of_type(registry, resource, kind, api_version)
        .map_err(|why| DecodeError::cannot_be_handled(resource, kind, declared.version, why))
}

/// Checks that a kind and version are those of the resource. The error is the reason as text.
fn is_of_type(registry: &Registry, resource: &Resource, kind: &str, api_version: &str) -> Result<(), String> {
    let declared = GroupVersion::parse(api_version);
    let version = declared.version;
    if kind == resource.kind && declared == resource.group_version() {
        return Ok(());
    }
    if registry.knows_kind(declared, kind) {
        let internal = if resource.group.is_core() { "core" } else { resource.group.as_str() };
        let internal = internal.split('.').next().unwrap_or_default();
        let wanted = &resource.kind;
        return Err(format!("converting ({version}.{kind}) to ({internal}.{wanted}): unknown conversion"));
    }
    Err(format!("no kind {kind:?} is registered for version {api_version:?} in scheme"))
}

/// Applies the schema of the resource; without one only metadata is typed. Returns the unknown fields.
pub(crate) fn conform_to(resource: &Resource, value: &mut Value) -> Result<Vec<String>, String> {
    let Some(object) = value.as_object_mut() else { return Ok(Vec::new()) };
    match &resource.schema {
        Schema::Table(shape) => conform(shape, &resource.kind, object).map_err(|e| e.to_string()),
        Schema::Free => {
            object.values_mut().for_each(canonical_numbers);
            conform_metadata(resource, object)
        }
        Schema::Custom(schema) => {
            object.values_mut().for_each(canonical_numbers);
            let mut unknown = conform_metadata(resource, object)?;
            unknown.extend(custom::prune(schema, object));
            Ok(unknown)
        }
    }
}

/// Makes integers of numbers such as `1.0`, as Go does when it encodes an object without Go types.
fn canonical_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(canonical_numbers),
        Value::Array(items) => items.iter_mut().for_each(canonical_numbers),
        Value::Number(number) if number.is_f64() => {
            // Below 2^63 the conversion is exact.
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9_223_372_036_854_775_808.0);
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        _ => {}
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

/// Reports unknown and duplicate fields: as warnings, or as an error with strict validation.
pub(super) fn check_fields(
    unknown: Vec<String>,
    duplicates: Vec<Duplicate>,
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    let unknown = unknown.into_iter().map(|path| format!("unknown field {path:?}"));
    let duplicates = duplicates.iter().map(Duplicate::to_string);
    let found: Vec<String> = unknown.chain(duplicates).collect();
    match validation {
        FieldValidation::Strict if !found.is_empty() => {
            Err(format!("strict decoding error: {}", found.join(", ")))
        }
        FieldValidation::Warn => Ok(found),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

fn set_type(resource: &Resource, object: &mut Object) {
    let root = object.root_mut();
    root.insert("kind".to_owned(), resource.kind.clone().into());
    root.insert("apiVersion".to_owned(), resource.api_version().into());
}
