//! Discovery: one document for each group and version, or the aggregated document.

use http::header::{ETAG, HeaderValue, VARY};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::negotiate::{Format, NotAcceptable};
use super::respond::{respond_error, respond_text};
use crate::registry::{GroupVersion, Plurals, Registry, Resource, Subresource, Versions, precedence};
use crate::verb::Verb;

/// The media type of the aggregated form.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";

/// `/api`
pub(crate) fn core_versions(
    registry: &Registry,
    accept: Option<&str>,
    known: Option<&str>,
) -> Response<ResponseBody> {
    match form(accept) {
        Form::Aggregated => return aggregated(registry, |group| group.is_empty(), known),
        Form::NotAcceptable => return not_acceptable(),
        Form::Legacy => {}
    }
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]);
    json_response(
        &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}),
    )
}

/// `/`: the list of paths.
pub(crate) fn paths(registry: &Registry) -> Response<ResponseBody> {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for (group, versions) in registry.groups() {
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.keys().map(|version| format!("{root}/{version}")));
        paths.push(root);
    }
    let others = [
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/healthz",
        "/livez",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    paths.sort();
    paths.dedup();
    json_response(&json!({"paths": paths}))
}

/// `/apis`
pub(crate) fn groups(
    registry: &Registry,
    accept: Option<&str>,
    known: Option<&str>,
) -> Response<ResponseBody> {
    match form(accept) {
        Form::Aggregated => return aggregated(registry, |group| !group.is_empty(), known),
        Form::NotAcceptable => return not_acceptable(),
        Form::Legacy => {}
    }
    let named = registry.groups().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = named.map(|(group, versions)| group_document(group, versions)).collect();
    json_response(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/GROUP`
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Response<ResponseBody>> {
    let (_, versions) = registry.groups().find(|(group, _)| *group == name && !name.is_empty())?;
    let mut document = group_document(name, versions);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(json_response(&document))
}

/// `/api/v1` and `/apis/GROUP/VERSION`
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Response<ResponseBody>> {
    let (_, versions) = registry.groups().find(|(name, _)| *name == group)?;
    let resources = versions.get(version)?;
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let list: Vec<Value> = resources.values().flat_map(|r| legacy_entries(r)).collect();
    let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(json_response(&document))
}

fn group_document(group: &str, versions: &Versions) -> Value {
    let entry = |version: &str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let all: Vec<Value> = preferred_first(versions).map(|(version, _)| entry(version)).collect();
    json!({"name": group, "versions": all, "preferredVersion": all.first()})
}

/// The versions of a group, the preferred one first.
fn preferred_first(versions: &Versions) -> impl Iterator<Item = (&str, &Plurals)> {
    let mut sorted: Vec<_> =
        versions.iter().map(|(version, resources)| (version.as_str(), resources)).collect();
    sorted.sort_by_key(|(version, _)| precedence(version));
    sorted.into_iter()
}

fn legacy_entries(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": names(resource.advertised_verbs()),
        "storageVersionHash": storage_hash(resource),
    });
    add_names(&mut main, resource);
    let subresources = resource.subresources.iter().map(|&subresource| {
        let kind = ResponseKind::of(resource, subresource);
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name()),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind.kind,
            "verbs": names(subresource.verbs()),
        });
        if kind.group_version.group != resource.group.as_str() {
            entry["group"] = kind.group_version.group.into();
            entry["version"] = kind.group_version.version.into();
        }
        entry
    });
    std::iter::once(main).chain(subresources).collect()
}

fn add_names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

fn names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.as_str()).collect()
}

/// The kind that a subresource reads and writes.
struct ResponseKind<'r> {
    group_version: GroupVersion<'r>,
    kind: &'r str,
}

impl<'r> ResponseKind<'r> {
    fn of(resource: &'r Resource, subresource: Subresource) -> Self {
        let own = |kind| Self { group_version: resource.group_version(), kind };
        match subresource {
            Subresource::Scale => {
                let group_version = GroupVersion { group: "autoscaling", version: "v1" };
                Self { group_version, kind: "Scale" }
            }
            Subresource::Eviction => {
                let group_version = GroupVersion { group: "policy", version: "v1" };
                Self { group_version, kind: "Eviction" }
            }
            Subresource::Token => {
                let group_version = GroupVersion { group: "authentication.k8s.io", version: "v1" };
                Self { group_version, kind: "TokenRequest" }
            }
            Subresource::Binding => own("Binding"),
            _ => own(&resource.kind),
        }
    }
}

fn aggregated(
    registry: &Registry,
    wanted: impl Fn(&str) -> bool,
    known: Option<&str>,
) -> Response<ResponseBody> {
    let groups: Vec<Value> =
        registry.groups().filter(|(group, _)| wanted(group)).map(|(g, v)| aggregated_group(g, v)).collect();
    let document = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups,
    });
    let text = document.to_string();
    let tag = format!("\"{:016X}\"", digest(text.as_bytes()));
    let mut response = if known == Some(tag.as_str()) {
        respond_text(StatusCode::NOT_MODIFIED, AGGREGATED, "")
    } else {
        respond_text(StatusCode::OK, AGGREGATED, text)
    };
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("public"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

fn aggregated_group(group: &str, versions: &Versions) -> Value {
    // The core group has no name.
    let versions: Vec<Value> = preferred_first(versions)
        .map(|(version, resources)| {
            let resources: Vec<Value> = resources.values().map(|r| aggregated_resource(r)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        // Group and version stay empty where they are the parent's.
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": names(resource.advertised_verbs()),
    });
    add_names(&mut entry, resource);
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|&subresource| {
            let kind = ResponseKind::of(resource, subresource);
            let own = kind.group_version.group == resource.group.as_str();
            let GroupVersion { group, version } =
                if own { GroupVersion { group: "", version: "" } } else { kind.group_version };
            json!({
                "subresource": subresource.name(),
                "responseKind": {"group": group, "version": version, "kind": kind.kind},
                "verbs": names(subresource.verbs()),
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

/// The form of a discovery document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Aggregated,
    Legacy,
    /// The client accepts only aggregated forms that this server does not have.
    NotAcceptable,
}

/// The form of the first supported clause.
fn form(accept: Option<&str>) -> Form {
    let accept = accept.unwrap_or_default();
    let mut unsupported = !accept.is_empty();
    for clause in accept.split(',') {
        let parts: Vec<&str> = clause.split(';').map(str::trim).collect();
        let has = |parameter: &str| parts.contains(&parameter);
        let aggregated = has("as=APIGroupDiscoveryList");
        match parts.first() {
            Some(&"application/json") if aggregated && has("g=apidiscovery.k8s.io") && has("v=v2") => {
                return Form::Aggregated;
            }
            Some(&("application/json" | "*/*" | "application/*")) if !aggregated => return Form::Legacy,
            _ => unsupported &= aggregated,
        }
    }
    if unsupported { Form::NotAcceptable } else { Form::Legacy }
}

fn not_acceptable() -> Response<ResponseBody> {
    const ACCEPTED: &[&str] =
        &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    respond_error(&NotAcceptable::MediaType(ACCEPTED).into(), Format::Json)
}

fn json_response(document: &Value) -> Response<ResponseBody> {
    respond_text(StatusCode::OK, JSON, document.to_string())
}

/// The hash that kube-apiserver has for the same stored form.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let GroupVersion { group, version } = resource.storage_version();
    let name = format!("{group}/{version}/{}", resource.kind);
    let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&hash.as_ref()[..8])
}

/// FNV-1a, not a cryptographic hash.
pub(super) fn digest(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_aggregated_form_only_for_those_who_know_it() {
        for (accept, expected) in [
            (Some(AGGREGATED), Form::Aggregated),
            (
                Some(
                    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
                ),
                Form::Legacy,
            ),
            (
                Some(
                    "application/json, application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                ),
                Form::Legacy,
            ),
            (
                Some(
                    "application/vnd.kubernetes.protobuf,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                ),
                Form::Aggregated,
            ),
            (Some("*/*"), Form::Legacy),
            (
                Some("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
                Form::NotAcceptable,
            ),
            (None, Form::Legacy),
        ] {
            assert_eq!(form(accept), expected, "{accept:?}");
        }
    }
}
