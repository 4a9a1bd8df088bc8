//! The deserialized form of a CRD.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::props::Props;

/// `spec` of a CRD.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) group: String,
    pub(crate) scope: String,
    pub(crate) names: Names,
    pub(crate) versions: Vec<Version>,
    pub(crate) conversion: Option<Conversion>,
    pub(crate) preserve_unknown_fields: bool,
}

/// `spec.names` and `status.acceptedNames` of a CRD.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Names {
    pub(crate) plural: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) singular: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) list_kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    pub(crate) schema: Option<Validation>,
    pub(crate) subresources: Option<Subresources>,
    pub(crate) additional_printer_columns: Vec<Column>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

/// The schema of a version, kept as JSON: it is deserialized to [`Props`] for validation and published unchanged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    pub(crate) open_api: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<Value>,
    pub(crate) scale: Option<Scale>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) r#type: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Conversion {
    pub(crate) strategy: String,
    pub(crate) webhook: Option<Value>,
}

impl Spec {
    pub(crate) fn read(spec: Option<&Value>) -> Result<Self, serde_json::Error> {
        spec.map_or_else(|| Ok(Self::default()), Self::deserialize)
    }
}

impl Version {
    pub(crate) fn has_status(&self) -> bool {
        self.subresources.as_ref().is_some_and(|s| s.status.is_some())
    }

    pub(crate) fn scale(&self) -> Option<&Scale> {
        self.subresources.as_ref()?.scale.as_ref()
    }

    pub(crate) fn schema(&self) -> Option<&Value> {
        self.schema.as_ref()?.open_api.as_ref()
    }

    pub(crate) fn props(&self) -> Option<Result<Props, serde_json::Error>> {
        self.schema().map(Props::deserialize)
    }
}
