//! The schemas of kinds, generated from the table of types and from CRDs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::descriptions::{OBJECT_META, describe};
use crate::registry::{Custom, Resource, Schema, Subresource};
use crate::schema::{ListKind, Merge, Shape, Type, types};

/// A version of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to the schema of this name.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }
}

/// Schemas collected so far; a type is added with all it refers to.
pub(super) struct Schemas {
    dialect: Dialect,
    pub(super) done: Map<String, Value>,
    seen: BTreeSet<&'static str>,
}

impl Schemas {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, done: Map::new(), seen: BTreeSet::new() }
    }

    /// Adds the kinds that requests to a resource read and write.
    pub(super) fn add_resource(&mut self, resource: &Resource) {
        match (&resource.schema, &resource.custom) {
            (Schema::Table(shape), _) => self.add(shape, Some(resource)),
            (_, Some(custom)) => self.add_custom(resource, custom),
            _ => {}
        }
        if resource.is_stored() {
            self.add_list(resource);
        }
        self.done.entry(full_name("meta.v1.Patch")).or_insert_with(|| json!({"type": "object"}));
        let others = ["meta.v1.DeleteOptions", "meta.v1.Status", "meta.v1.ListMeta"];
        others.into_iter().for_each(|name| self.add_named(name));
        for subresource in &resource.subresources {
            self.add_named(subresource_type(*subresource).unwrap_or_default());
        }
    }

    fn add_named(&mut self, name: &str) {
        types().named(name).into_iter().for_each(|shape| self.add(shape, None));
    }

    /// The list of a kind.
    fn add_list(&mut self, resource: &Resource) {
        let items = match schema_name(resource) {
            Some(name) => self.dialect.reference(&name),
            None => json!({"type": "object"}),
        };
        let metadata = self.dialect.reference(&full_name("meta.v1.ListMeta"));
        let list = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": describe(json!({"type": "string"}), &resource.list_kind, "apiVersion"),
                "kind": describe(json!({"type": "string"}), &resource.list_kind, "kind"),
                "metadata": metadata,
                "items": {"type": "array", "items": items},
            },
            "x-kubernetes-group-version-kind":
                [{"group": resource.group, "version": resource.version, "kind": resource.list_kind}],
        });
        self.done.insert(list_name(resource), list);
    }

    fn add(&mut self, shape: &'static Type, kind: Option<&Resource>) {
        if !self.seen.insert(shape.name) {
            return;
        }
        // References and the like have fields of the same names that mean something else.
        let is_described = kind.is_some() || shape.name == OBJECT_META;
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in shape.fields() {
            let described = self.shape(&field.shape);
            let described =
                if is_described { describe(described, shape.name, field.name) } else { described };
            properties.insert(field.name.to_owned(), described);
            if field.required {
                required.push(field.name);
            }
        }
        let mut schema = json!({"type": "object"});
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
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
        types().named(OBJECT_META).into_iter().for_each(|shape| self.add(shape, None));
        let mut schema = custom.published.value();
        let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
        if self.dialect == Dialect::V2 && preserves {
            // kubectl rejects fields that are not among the properties, if there are any.
            schema = json!({"type": "object"});
        } else {
            if self.dialect == Dialect::V2 {
                to_v2(&mut schema);
            }
            self.add_common_fields(resource, &mut schema);
        }
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
        self.done.insert(custom_name(resource), schema);
    }

    /// Adds the fields that every object has.
    fn add_common_fields(&self, resource: &Resource, schema: &mut Value) {
        let metadata = self.dialect.reference(&full_name(OBJECT_META));
        let metadata = if self.dialect == Dialect::V2 { metadata } else { json!({"allOf": [metadata]}) };
        let text = || json!({"type": "string"});
        for (field, of) in [("apiVersion", text()), ("kind", text()), ("metadata", metadata)] {
            schema["properties"][field] = describe(of, &resource.kind, field);
        }
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
            Shape::Quantity if self.dialect == Dialect::V2 => json!({"type": "string"}),
            Shape::IntOrString if self.dialect == Dialect::V2 => {
                json!({"type": "string", "format": "int-or-string"})
            }
            Shape::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Shape::IntOrString => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            Shape::Any => json!({"type": "object"}),
            Shape::ObjectOrAny(_) if self.dialect == Dialect::V2 => json!({"type": "object"}),
            Shape::ObjectOrAny(_) => json!({}),
            Shape::Struct(name, merge) => {
                types().named(name).into_iter().for_each(|inner| self.add(inner, None));
                let reference = self.dialect.reference(&full_name(name));
                match self.dialect {
                    Dialect::V2 => with_merge(reference, merge),
                    Dialect::V3 => with_merge(json!({"allOf": [reference]}), merge),
                }
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

/// The type of the body of a subresource that is not the object itself.
pub(super) fn subresource_type(subresource: Subresource) -> Option<&'static str> {
    match subresource {
        Subresource::Scale => Some("autoscaling.v1.Scale"),
        Subresource::Eviction => Some("policy.v1.Eviction"),
        Subresource::Binding => Some("core.v1.Binding"),
        Subresource::Token => Some("authentication.v1.TokenRequest"),
        Subresource::Approval
        | Subresource::EphemeralContainers
        | Subresource::Finalize
        | Subresource::Resize
        | Subresource::Status => None,
    }
}

/// The name of the schema of a kind, if it has one.
pub(super) fn schema_name(resource: &Resource) -> Option<String> {
    match &resource.schema {
        Schema::Table(shape) => Some(full_name(shape.name)),
        Schema::Custom(_) => Some(custom_name(resource)),
        Schema::Free => None,
    }
}

/// The name of the schema of a list.
pub(super) fn list_name(resource: &Resource) -> String {
    let name = schema_name(resource).unwrap_or_else(|| custom_name(resource));
    let prefix = name.strip_suffix(resource.kind.as_str()).unwrap_or_default();
    format!("{prefix}{}", resource.list_kind)
}

/// Removes what OpenAPI v2 does not have, as kube-apiserver does.
fn to_v2(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        fields.remove(junctor);
    }
    let nullable = fields.remove("nullable").is_some_and(|yes| yes == true);
    let preserves = fields.get("x-kubernetes-preserve-unknown-fields").is_some_and(|yes| *yes == true);
    if nullable || preserves {
        fields.remove("items");
        fields.remove("properties");
    }
    let untyped = match fields.get("type").and_then(Value::as_str) {
        Some("array") => !fields.contains_key("items"),
        Some("object") => preserves,
        _ => false,
    };
    if nullable || untyped {
        fields.remove("type");
    }
    for (name, value) in fields.iter_mut() {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(to_v2),
            ("items" | "additionalProperties", inner) => to_v2(inner),
            _ => {}
        }
    }
}

/// The name of a custom kind in OpenAPI: reversed group, version, kind.
pub(super) fn custom_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.as_str().rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

/// The name of a built-in type in OpenAPI.
pub(super) fn full_name(name: &str) -> String {
    let prefix = match name.split('.').next().unwrap_or_default() {
        "meta" => "io.k8s.apimachinery.pkg.apis.",
        "api" | "runtime" | "util" | "version" => "io.k8s.apimachinery.pkg.",
        "apiextensions" => "io.k8s.apiextensions-apiserver.pkg.apis.",
        "apiregistration" => "io.k8s.kube-aggregator.pkg.apis.",
        _ => "io.k8s.api.",
    };
    format!("{prefix}{name}")
}
