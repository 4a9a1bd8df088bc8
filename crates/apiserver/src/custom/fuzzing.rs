//! CRDs and schemas in plain types, for the fuzz targets.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::json_path::JsonPath;
use super::pattern::Patterns;
use super::props::Props;
use super::{Installed, Structural, apply_defaults, default_definition, prepare_definition, prune, validate};
use super::{validate_definition, validate_definition_update};
use crate::budget::Budget;
use crate::registry::Object;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Structural);

impl Schema {
    /// Compiles a schema, even if it is not valid in a CRD.
    pub fn compile(schema: &Value) -> Option<Self> {
        let props = Props::deserialize(schema).ok()?;
        Structural::compile(&props, &mut Patterns::default()).ok().map(Self)
    }

    /// Removes fields that the schema does not specify, and returns their paths.
    pub fn prune(&self, object: &mut Map<String, Value>) -> Vec<String> {
        prune(&self.0, object)
    }

    /// Applies defaults, however large the object becomes.
    pub fn apply_defaults(&self, object: &mut Map<String, Value>) {
        let _ = apply_defaults(&self.0, object, &mut Budget::new(usize::MAX));
    }

    /// Returns the number of validation errors of an object.
    pub fn error_count(&self, object: &Value) -> usize {
        validate(&self.0, object, None).len()
    }
}

/// Validates and installs a CRD with this spec. Returns whether it is valid, and whether it can be served.
pub fn definition(spec: Value) -> (bool, Result<bool, String>) {
    let body = json!({"metadata": {"name": "widgets.example.com"}, "spec": spec});
    let Some(mut definition) = Object::new(body) else { return (false, Ok(false)) };
    default_definition(&mut definition);
    prepare_definition(&mut definition);
    let accepted = validate_definition(&definition).is_empty();
    validate_definition_update(&definition, &definition);
    let established = json!([{"type": "Established", "status": "True"}]);
    let names = definition.at("/spec/names").cloned().unwrap_or_default();
    let status = definition.section_mut("status");
    status.insert("conditions".to_owned(), established);
    status.insert("acceptedNames".to_owned(), names);
    (accepted, Installed::read(&definition).map(|installed| installed.is_some()))
}

/// Returns the number of values that match a path; `None` if the path is malformed.
pub fn follow(path: &str, value: &Value) -> Option<usize> {
    JsonPath::parse(path).ok().map(|path| path.find(value).len())
}
