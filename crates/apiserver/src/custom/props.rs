//! The deserialized form of a schema in a CRD.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// `JSONSchemaProps`: every known keyword, supported or not.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Props {
    pub(super) r#type: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) format: String,
    pub(super) nullable: bool,
    #[serde(deserialize_with = "present")]
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Props>,
    pub(super) additional_properties: Option<SchemaOrBool>,
    pub(super) items: Option<SchemaOrList>,
    pub(super) required: Vec<String>,
    pub(super) r#enum: Vec<Value>,
    pub(super) pattern: String,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_maximum: bool,
    pub(super) minimum: Option<Number>,
    pub(super) exclusive_minimum: bool,
    pub(super) multiple_of: Option<Number>,
    pub(super) max_length: Option<u64>,
    pub(super) min_length: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) max_properties: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) all_of: Vec<Props>,
    pub(super) any_of: Vec<Props>,
    pub(super) one_of: Vec<Props>,
    pub(super) not: Option<Box<Props>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(super) preserve_unknown: Option<bool>,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(super) embedded: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(super) int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(super) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(super) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(super) map_type: Option<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(super) rules: Vec<Map<String, Value>>,
    // Known keywords that are rejected.
    pub(super) id: String,
    #[serde(rename = "$ref")]
    pub(super) reference: Option<String>,
    pub(super) additional_items: Option<Value>,
    pub(super) definitions: Map<String, Value>,
    pub(super) dependencies: Map<String, Value>,
    pub(super) pattern_properties: Map<String, Value>,
}

/// `additionalProperties`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SchemaOrBool {
    Bool(bool),
    Schema(Box<Props>),
}

/// `items`. Lists of schemas are rejected.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SchemaOrList {
    List(Vec<Props>),
    Schema(Box<Props>),
}

/// Distinguishes a default of `null` from an absent default.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Props {
    pub(super) fn items(&self) -> Option<&Props> {
        match &self.items {
            Some(SchemaOrList::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    pub(super) fn additional(&self) -> Option<&Props> {
        match &self.additional_properties {
            Some(SchemaOrBool::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Calls a function for this schema and for every schema in it.
    pub(super) fn visit(&self, call: &mut impl FnMut(&Props)) {
        call(self);
        let listed = [&self.all_of, &self.any_of, &self.one_of].into_iter().flatten();
        let inner = self.properties.values().chain(listed);
        inner
            .chain(self.items())
            .chain(self.additional())
            .chain(self.not.as_deref())
            .for_each(|schema| schema.visit(call));
    }

    pub(super) fn preserves(&self) -> bool {
        self.preserve_unknown == Some(true)
    }
}
