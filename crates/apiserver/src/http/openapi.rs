//! OpenAPI v2 and v3, generated from the table of types and from CRDs: enough for clients that validate, explain, build patches or
//! generate code.

mod descriptions;
mod operations;
mod protobuf;
mod schemas;

use std::sync::Arc;

use http::header::{CACHE_CONTROL, ETAG, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::body::ResponseBody;
use super::discovery::digest;
use super::negotiate::{Format, NotAcceptable};
use super::respond::{respond_error, respond_text};
use crate::registry::{Plurals, Registry, Resource};
use operations::add_paths;
use schemas::{Dialect, Schemas};

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
    let (paths, schemas) = describe(Dialect::V3, resources.values());
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    let mut response = respond_text(StatusCode::OK, JSON, document.to_string());
    response.headers_mut().insert(ETAG, HeaderValue::from_str(&format!("\"{hash}\"")).ok()?);
    if !asked.is_empty() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    Some(response)
}

/// `/openapi/v2`: one document for all groups.
pub(crate) fn all(registry: &Registry, accept: Option<&str>, known: Option<&str>) -> Response<ResponseBody> {
    const ACCEPTED: &[&str] = &["application/json", protobuf::ACCEPTED];
    let Some(content_type) = accept.unwrap_or_default().split(',').find_map(media_type_of_v2) else {
        return respond_error(&NotAcceptable::MediaType(ACCEPTED).into(), Format::Json);
    };
    let hashes: String = registry
        .groups()
        .flat_map(|(group, versions)| {
            versions.iter().map(move |(v, resources)| hash(group, v.as_str(), resources))
        })
        .collect();
    let tag = format!("\"{:016X}\"", digest(hashes.as_bytes()));
    let mut response = if known == Some(tag.as_str()) {
        respond_text(StatusCode::NOT_MODIFIED, content_type, "")
    } else {
        let (paths, definitions) = describe(Dialect::V2, registry.all());
        let document = json!({
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": "v1.36"},
            "paths": paths,
            "definitions": definitions,
        });
        let body =
            if content_type == JSON { document.to_string().into() } else { protobuf::encode(&document) };
        respond_text(StatusCode::OK, content_type, body)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The content type for a clause of an `Accept` header.
fn media_type_of_v2(clause: &str) -> Option<&'static str> {
    match clause.split(';').next().unwrap_or_default().trim() {
        "" | JSON | "application/*" | "*/*" => Some(JSON),
        protobuf::ACCEPTED | protobuf::CONTENT_TYPE => Some(protobuf::CONTENT_TYPE),
        _ => None,
    }
}

/// The paths and the schemas of resources.
fn describe<'r>(
    dialect: Dialect,
    resources: impl Iterator<Item = &'r Arc<Resource>>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut paths, mut schemas) = (Map::new(), Schemas::new(dialect));
    for resource in resources {
        add_paths(&mut paths, dialect, resource);
        schemas.add_resource(resource);
    }
    (paths, schemas.done)
}

pub(super) fn place(group: &str, version: &str) -> String {
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
