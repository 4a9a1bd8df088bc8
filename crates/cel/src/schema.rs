//! Structural schemas, as far as expressions depend on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

/// A schema of a custom resource that passed the validation of CRDs.
///
/// 1. Properties of a resource root and of embedded resources include `apiVersion`, `kind`, `metadata.name` and
///    `metadata.generateName`, specified or not.
/// 2. Keywords that are no part of structural schemas are ignored.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(crate) kind: Option<Kind>,
    pub(crate) format: String,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    pub(crate) has_default: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) list: ListKind,
    pub(crate) required: Vec<String>,
    /// Length in bytes of the longest string in `enum`; `None` without `enum`.
    pub(crate) longest_enum: Option<u64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) rules: Vec<Rule>,
}

/// The types of JSON Schema, except `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    /// A list of objects that these properties identify.
    Map(Arc<[String]>),
}

/// One element of `x-kubernetes-validations`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
}

impl Schema {
    /// Reads the schema of a resource, the value of `openAPIV3Schema`.
    #[must_use]
    pub fn of_resource(json: &Json) -> Self {
        let mut schema = Self::new(json);
        schema.add_type_and_metadata();
        schema
    }

    /// Reads the schema of any value.
    #[must_use]
    pub fn new(json: &Json) -> Self {
        let empty = Map::new();
        let fields = json.as_object().unwrap_or(&empty);
        let text = |key: &str| fields.get(key).and_then(Json::as_str).unwrap_or_default();
        let flag = |key: &str| fields.get(key).and_then(Json::as_bool).unwrap_or_default();
        let number = |key: &str| fields.get(key).and_then(Json::as_i64);
        let inner = |key: &str| {
            fields.get(key).filter(|inner| inner.is_object()).map(|inner| Box::new(Self::new(inner)))
        };
        let all = |key: &str| fields.get(key).and_then(Json::as_array).into_iter().flatten();
        let strings = |key: &str| all(key).filter_map(Json::as_str).map(str::to_owned).collect::<Vec<_>>();
        let properties = fields.get("properties").and_then(Json::as_object).into_iter().flatten();
        let mut schema = Self {
            kind: Kind::parse(text("type")),
            format: text("format").to_owned(),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            has_default: fields.get("default").is_some_and(|default| !default.is_null()),
            properties: properties.map(|(name, inner)| (name.clone(), Self::new(inner))).collect(),
            additional: inner("additionalProperties"),
            items: inner("items"),
            list: match text("x-kubernetes-list-type") {
                "set" => ListKind::Set,
                "map" => ListKind::Map(strings("x-kubernetes-list-map-keys").into()),
                _ => ListKind::Atomic,
            },
            required: strings("required"),
            longest_enum: (all("enum").count() > 0)
                .then(|| all("enum").filter_map(Json::as_str).map(str::len).max().unwrap_or(0) as u64),
            max_length: number("maxLength"),
            max_items: number("maxItems"),
            max_properties: number("maxProperties"),
            rules: all("x-kubernetes-validations").map(Rule::new).collect(),
        };
        if schema.embedded {
            schema.add_type_and_metadata();
        }
        schema
    }

    fn add_type_and_metadata(&mut self) {
        if self.int_or_string {
            return;
        }
        let is_string =
            |schema: Option<&Schema>| schema.is_some_and(|schema| schema.kind == Some(Kind::String));
        let metadata = self.properties.get("metadata").filter(|metadata| metadata.kind == Some(Kind::Object));
        let in_metadata = |name: &str| is_string(metadata.and_then(|metadata| metadata.properties.get(name)));
        let complete = is_string(self.properties.get("kind"))
            && is_string(self.properties.get("apiVersion"))
            && in_metadata("name")
            && in_metadata("generateName");
        if complete {
            return;
        }
        let string = || Schema { kind: Some(Kind::String), ..Schema::default() };
        let names = ["name", "generateName"].map(|name| (name.to_owned(), string()));
        let metadata = Schema { kind: Some(Kind::Object), properties: names.into(), ..Schema::default() };
        self.properties.insert("kind".to_owned(), string());
        self.properties.insert("apiVersion".to_owned(), string());
        self.properties.insert("metadata".to_owned(), metadata);
    }

    /// Returns the schema of a property, specified or additional.
    pub(crate) fn property(&self, name: &str) -> Option<&Schema> {
        if self.is_struct() { self.properties.get(name) } else { self.additional.as_deref() }
    }

    /// Returns whether the value is an object with specified properties, and not a map.
    pub(crate) fn is_struct(&self) -> bool {
        !self.properties.is_empty()
    }

    pub(crate) fn kind_text(&self) -> &'static str {
        self.kind.map_or("", Kind::as_str)
    }
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "object" => Some(Self::Object),
            "array" => Some(Self::Array),
            "string" => Some(Self::String),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl Rule {
    fn new(json: &Json) -> Self {
        let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: json.get("reason").and_then(Json::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: json.get("optionalOldSelf").and_then(Json::as_bool),
        }
    }
}
