//! The operations of resources: one for each method of each path.

use serde_json::{Map, Value, json};

use super::place;
use super::schemas::{Dialect, full_name, list_name, schema_name, subresource_type};
use crate::registry::{Resource, Subresource};
use crate::verb::Verb;

const BODIES: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const CUSTOM_BODIES: &[&str] = &["application/json", "application/yaml"];
const PATCHES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Name and type of query parameters.
type Parameters = &'static [(&'static str, &'static str)];

const READ: Parameters = &[("resourceVersion", "string")];
const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: Parameters = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: Parameters =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// One operation.
struct Operation<'r> {
    resource: &'r Resource,
    verb: Verb,
    subresource: Option<Subresource>,
    /// The path is that of all namespaces.
    everywhere: bool,
}

/// Adds the paths of a resource.
pub(super) fn add_paths(paths: &mut Map<String, Value>, dialect: Dialect, resource: &Resource) {
    let root = format!("/{}", place(resource.group.as_str(), resource.version.as_str()));
    let scope = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{scope}/{}", resource.plural);
    let namespace: &[&str] = if resource.namespaced { &["namespace"] } else { &[] };
    let mut add = |path: String, names: &[&str], verbs: &[Verb], subresource, everywhere| {
        let mut item = Map::new();
        for &verb in verbs {
            let operation = Operation { resource, verb, subresource, everywhere };
            item.insert(operation.method().to_owned(), operation.describe(dialect));
        }
        if item.is_empty() {
            return;
        }
        let mut parameters: Vec<Value> = names.iter().map(|name| path_parameter(dialect, name)).collect();
        parameters.push(query_parameter(dialect, "pretty", "string"));
        item.insert("parameters".to_owned(), parameters.into());
        paths.insert(path, Value::Object(item));
    };
    let has = |verbs: &[Verb]| -> Vec<Verb> {
        verbs.iter().copied().filter(|verb| resource.advertised_verbs().contains(verb)).collect()
    };
    let named = [namespace, &["name"]].concat();
    add(
        collection.clone(),
        namespace,
        &has(&[Verb::List, Verb::Create, Verb::DeleteCollection]),
        None,
        false,
    );
    let one = has(&[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]);
    add(format!("{collection}/{{name}}"), &named, &one, None, false);
    if resource.namespaced {
        add(format!("{root}/{}", resource.plural), &[], &has(&[Verb::List]), None, true);
    }
    for &subresource in &resource.subresources {
        let path = format!("{collection}/{{name}}/{}", subresource.name());
        add(path, &named, subresource.verbs(), Some(subresource), false);
    }
}

impl Operation<'_> {
    fn method(&self) -> &'static str {
        match self.verb {
            Verb::Get | Verb::List | Verb::Watch => "get",
            Verb::Create => "post",
            Verb::Update => "put",
            Verb::Patch => "patch",
            Verb::Delete | Verb::DeleteCollection => "delete",
        }
    }

    /// The word of `x-kubernetes-action`.
    fn action(&self) -> &'static str {
        match self.verb {
            Verb::Create => "post",
            Verb::Update => "put",
            other => other.as_str(),
        }
    }

    /// Such as `listCoreV1NamespacedPod` and `replaceAppsV1NamespacedDeploymentScale`.
    fn id(&self) -> String {
        let verb = match self.verb {
            Verb::Get => "read",
            Verb::Update => "replace",
            Verb::DeleteCollection => "delete",
            other => other.as_str(),
        };
        let resource = self.resource;
        let collection = if self.verb == Verb::DeleteCollection { "Collection" } else { "" };
        let scope = if resource.namespaced && !self.everywhere { "Namespaced" } else { "" };
        let subresource = self.subresource.map(|s| capitalized(s.name())).unwrap_or_default();
        let everywhere = if self.everywhere { "ForAllNamespaces" } else { "" };
        let (group, version) = (group_word(resource), capitalized(resource.version.as_str()));
        format!("{verb}{group}{version}{collection}{scope}{}{subresource}{everywhere}", resource.kind)
    }

    fn parameters(&self) -> Vec<(&'static str, &'static str)> {
        match self.verb {
            Verb::Get if self.subresource.is_some() => Vec::new(),
            Verb::Get => READ.to_vec(),
            Verb::List | Verb::Watch => LIST.to_vec(),
            Verb::Create | Verb::Update => WRITE.to_vec(),
            Verb::Patch => PATCH.to_vec(),
            Verb::Delete => DELETE.to_vec(),
            Verb::DeleteCollection => {
                let of_list =
                    LIST.iter().filter(|(name, _)| !matches!(*name, "watch" | "allowWatchBookmarks"));
                of_list.chain(DELETE).copied().collect()
            }
        }
    }

    /// The schema of the object that is read or written.
    fn schema(&self, dialect: Dialect) -> Value {
        let own = || schema_name(self.resource);
        let name = match self.subresource.and_then(subresource_type) {
            Some(name) => Some(full_name(name)),
            None => own(),
        };
        name.map_or_else(|| json!({"type": "object"}), |name| dialect.reference(&name))
    }

    /// The media types and the schema of the request body, and whether it is required.
    fn body(&self, dialect: Dialect) -> Option<(&'static [&'static str], Value, bool)> {
        let custom = self.resource.custom.is_some();
        let bodies = if custom { CUSTOM_BODIES } else { BODIES };
        match self.verb {
            Verb::Create | Verb::Update => Some((bodies, self.schema(dialect), true)),
            Verb::Patch => {
                let media_types = if custom { &PATCHES[..3] } else { PATCHES };
                Some((media_types, dialect.reference(&full_name("meta.v1.Patch")), true))
            }
            Verb::Delete | Verb::DeleteCollection => {
                Some((bodies, dialect.reference(&full_name("meta.v1.DeleteOptions")), false))
            }
            Verb::Get | Verb::List | Verb::Watch => None,
        }
    }

    fn response(&self, dialect: Dialect) -> Value {
        match self.verb {
            Verb::List | Verb::Watch => dialect.reference(&list_name(self.resource)),
            Verb::DeleteCollection => dialect.reference(&full_name("meta.v1.Status")),
            Verb::Delete if !self.resource.rules.delete_returns_object => {
                dialect.reference(&full_name("meta.v1.Status"))
            }
            _ => self.schema(dialect),
        }
    }

    fn describe(&self, dialect: Dialect) -> Value {
        let resource = self.resource;
        let kind = resource.kind.as_str();
        let queries = self.parameters();
        let mut parameters: Vec<Value> =
            queries.into_iter().map(|(name, of)| query_parameter(dialect, name, of)).collect();
        let produced = if resource.custom.is_some() { CUSTOM_BODIES } else { BODIES };
        let ok = if self.verb == Verb::Create { "201" } else { "200" };
        let text = if ok == "201" { "Created" } else { "OK" };
        let response = self.response(dialect);
        let group = if resource.group.is_core() { "core".to_owned() } else { group_tag(resource) };
        let mut operation = json!({
            "operationId": self.id(),
            "description": format!("{} {kind}", self.action()),
            "tags": [format!("{group}_{}", resource.version)],
            "x-kubernetes-action": self.action(),
            "x-kubernetes-group-version-kind": {"group": resource.group, "version": resource.version, "kind": kind},
        });
        let unauthorized = json!({"description": "Unauthorized"});
        match dialect {
            Dialect::V3 => {
                let content = content(produced, &response);
                operation["responses"] =
                    json!({ok: {"description": text, "content": content}, "401": unauthorized});
                if let Some((media_types, schema, required)) = self.body(dialect) {
                    let mut body = json!({"content": self::content(media_types, &schema)});
                    if required {
                        body["required"] = true.into();
                    }
                    operation["requestBody"] = body;
                }
            }
            Dialect::V2 => {
                operation["responses"] =
                    json!({ok: {"description": text, "schema": response}, "401": unauthorized});
                operation["produces"] = json!(produced);
                operation["schemes"] = json!(["https"]);
                let body = self.body(dialect);
                operation["consumes"] =
                    body.as_ref().map_or(json!(["*/*"]), |(media_types, ..)| json!(media_types));
                if let Some((_, schema, required)) = body {
                    let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
                    if required {
                        parameter["required"] = true.into();
                    }
                    parameters.push(parameter);
                }
            }
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }
}

fn content(media_types: &[&str], schema: &Value) -> Map<String, Value> {
    media_types.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect()
}

fn query_parameter(dialect: Dialect, name: &str, of: &str) -> Value {
    match dialect {
        Dialect::V2 => json!({"name": name, "in": "query", "type": of, "uniqueItems": true}),
        Dialect::V3 => json!({"name": name, "in": "query", "schema": {"type": of, "uniqueItems": true}}),
    }
}

fn path_parameter(dialect: Dialect, name: &str) -> Value {
    let mut parameter = query_parameter(dialect, name, "string");
    parameter["in"] = "path".into();
    parameter["required"] = true.into();
    parameter
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The group without the suffix that most built-in ones have, one capitalized word for each part.
fn group_word(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => "Core".to_owned(),
        group => group.strip_suffix(".k8s.io").unwrap_or(group).split(['.', '-']).map(capitalized).collect(),
    }
}

/// The group in a tag: its words, the first of them in lower case.
fn group_tag(resource: &Resource) -> String {
    let word = group_word(resource);
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}
