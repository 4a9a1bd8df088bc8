//! OpenAPI v3, generated from the table of types: enough for clients that validate, explain or build patches.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::header::{CACHE_CONTROL, ETAG, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::body::ResponseBody;
use super::discovery::digest;
use super::respond::respond_text;
use crate::registry::{Custom, Plurals, Registry, Resource, Schema, Subresource};
use crate::schema::{ListKind, Merge, Shape, Type, types};

const JSON: &str = "application/json";

/// `/openapi/v3`: the URLs of the documents.
pub(crate) fn index(registry: &Registry) -> Response<ResponseBody> {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for (version, resources) in versions {
            let version = version.as_str();
            let place = place(group, version);
            let url = format!("/openapi/v3/{place}?hash={}", hash(group, version, resources));
            paths.insert(place, json!({"serverRelativeURL": url}));
        }
    }
    // The name in kube-apiserver.
    respond_text(StatusCode::OK, "text/plain; charset=utf-8", json!({"paths": paths}).to_string())
}

/// `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`
pub(crate) fn document(
    registry: &Registry,
    group: &str,
    version: &str,
    asked: &str,
) -> Option<Response<ResponseBody>> {
    let (_, versions) = registry.groups().find(|(name, _)| *name == group)?;
    let resources = versions.get(version)?;
    let hash = hash(group, version, resources);
    if !asked.is_empty() && asked != hash {
        let mut moved = respond_text(StatusCode::MOVED_PERMANENTLY, JSON, "");
        let url = format!("/openapi/v3/{}?hash={hash}", place(group, version));
        moved.headers_mut().insert(LOCATION, HeaderValue::from_str(&url).ok()?);
        return Some(moved);
    }
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    for resource in resources.values() {
        add_paths(&mut paths, resource);
        match (&resource.schema, &resource.custom) {
            (Schema::Table(shape), _) => schemas.add(shape, Some(resource)),
            (_, Some(custom)) => schemas.add_custom(resource, custom),
            _ => {}
        }
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36"},
        "paths": paths,
        "components": {"schemas": schemas.done},
    });
    let mut response = respond_text(StatusCode::OK, JSON, document.to_string());
    response.headers_mut().insert(ETAG, HeaderValue::from_str(&format!("\"{hash}\"")).ok()?);
    if !asked.is_empty() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    Some(response)
}

fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// A hash of the document.
fn hash(group: &str, version: &str, resources: &Plurals) -> String {
    let describe = |r: &Arc<Resource>| {
        let schema = r.custom.as_ref().map(|custom| custom.published.hash);
        let subresources: Vec<&str> = r.subresources.iter().map(|s| s.name()).collect();
        format!("{};{};{subresources:?};{schema:?};", r.plural, r.kind)
    };
    let names: String = resources.values().map(describe).collect();
    format!("{:016X}", digest(format!("{}/{group}/{version}/{names}", env!("CARGO_PKG_VERSION")).as_bytes()))
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource) {
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection =
        format!("/{}{scope}/{}", place(resource.group.as_str(), resource.version.as_str()), resource.plural);
    let object = format!("{collection}/{{name}}");
    let operation = |action: &str, body: Option<&[&str]>| operation(resource, action, body);
    let write: &[&str] = &["application/json", "application/yaml"];
    let patch: &[&str] = &[
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];
    let patch = if resource.custom.is_some() { &patch[..3] } else { patch };
    if !resource.is_stored() {
        paths.insert(collection, json!({"post": operation("post", Some(write))}));
        return;
    }
    let many = json!({"get": operation("list", None), "post": operation("post", Some(write)), "delete": operation("deletecollection", None)});
    let one = json!({"get": operation("get", None), "put": operation("put", Some(write)), "patch": operation("patch", Some(patch)),
        "delete": operation("delete", None)});
    if resource.has_subresource(Subresource::Status) {
        let status = json!({"get": operation("get", None), "put": operation("put", Some(write)), "patch": operation("patch", Some(patch))});
        paths.insert(format!("{object}/status"), status);
    }
    paths.insert(collection, many);
    paths.insert(object, one);
}

fn operation(resource: &Resource, action: &str, body: Option<&[&str]>) -> Value {
    let mut operation = json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "responses": {"200": {"description": "OK"}},
    });
    if let Some(media_types) = body {
        let schema = match (action, &resource.schema) {
            ("patch", _) | (_, Schema::Free) => json!({"type": "object"}),
            (_, Schema::Table(shape)) => reference(shape.name),
            (_, Schema::Custom(_)) => {
                json!({"$ref": format!("#/components/schemas/{}", custom_name(resource))})
            }
        };
        let content: Map<String, Value> =
            media_types.iter().map(|m| ((*m).to_owned(), json!({"schema": schema}))).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
        let mut names = vec!["dryRun", "fieldManager", "fieldValidation"];
        if action == "patch" {
            names.push("force");
        }
        operation["parameters"] =
            names.iter().map(|n| json!({"name": n, "in": "query", "schema": {"type": "string"}})).collect();
    }
    operation
}

/// Schemas collected so far; a type is added with all it refers to.
#[derive(Default)]
struct Schemas {
    done: Map<String, Value>,
    seen: BTreeSet<&'static str>,
}

impl Schemas {
    fn add(&mut self, shape: &'static Type, kind: Option<&Resource>) {
        if !self.seen.insert(shape.name) {
            return;
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in shape.fields() {
            properties.insert(field.name.to_owned(), self.shape(&field.shape));
            if field.required {
                required.push(field.name);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if shape.atomic {
            schema["x-kubernetes-map-type"] = "atomic".into();
        }
        if let Some(resource) = kind {
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
        }
        self.done.insert(full_name(shape.name), schema);
    }

    /// The schema of a CRD, and the metadata it refers to.
    fn add_custom(&mut self, resource: &Resource, custom: &Custom) {
        types().named("meta.v1.ObjectMeta").into_iter().for_each(|shape| self.add(shape, None));
        let mut schema = custom.published.value();
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
        self.done.insert(custom_name(resource), schema);
    }

    fn shape(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::String => json!({"type": "string"}),
            Shape::Enum(values) => json!({"type": "string", "enum": values}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Number => json!({"type": "number", "format": "double"}),
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
            Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Shape::IntOrString => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            Shape::Any => json!({"type": "object"}),
            Shape::ObjectOrAny(_) => json!({}),
            Shape::Struct(name, merge) => {
                types().named(name).into_iter().for_each(|inner| self.add(inner, None));
                with_merge(json!({"allOf": [reference(name)]}), merge)
            }
            Shape::Map(inner) => json!({"type": "object", "additionalProperties": self.shape(inner)}),
            Shape::List(inner, kind, merge) => {
                let mut list = json!({"type": "array", "items": self.shape(inner)});
                match kind {
                    ListKind::Atomic => list["x-kubernetes-list-type"] = "atomic".into(),
                    ListKind::Set => list["x-kubernetes-list-type"] = "set".into(),
                    ListKind::Map(keys) => {
                        list["x-kubernetes-list-type"] = "map".into();
                        list["x-kubernetes-list-map-keys"] = json!(keys);
                    }
                }
                with_merge(list, merge)
            }
        }
    }
}

fn with_merge(mut schema: Value, merge: &Merge) -> Value {
    let words = [(merge.merge, "merge"), (merge.retain_keys, "retainKeys"), (merge.replace, "replace")];
    let words: Vec<&str> = words.iter().filter(|(yes, _)| *yes).map(|(_, word)| *word).collect();
    if !words.is_empty() {
        schema["x-kubernetes-patch-strategy"] = words.join(",").into();
    }
    if let Some(key) = merge.key {
        schema["x-kubernetes-patch-merge-key"] = key.into();
    }
    schema
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{}", full_name(name))})
}

/// The name of a custom kind in OpenAPI: reversed group, version, kind.
fn custom_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.as_str().rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

/// The name of a built-in type in OpenAPI.
fn full_name(name: &str) -> String {
    let prefix = match name.split('.').next().unwrap_or_default() {
        "meta" => "io.k8s.apimachinery.pkg.apis.",
        "api" | "runtime" | "util" | "version" => "io.k8s.apimachinery.pkg.",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
        _ => "io.k8s.api.",
    };
    format!("{prefix}{name}")
}
