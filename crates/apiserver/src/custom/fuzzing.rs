//! Definitions and schemas in plain types, for the fuzz targets.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::json_path::JsonPath;
use super::pattern::Patterns;
use super::props::Props;
use super::{Installed, Structural, default_definition, fill, prepare_definition, prune, validate};
use super::{validate_definition, validate_definition_update};
use crate::registry::Object;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema(Structural);

impl Schema {
    /// Compiles a schema, whether or not a definition could have it.
    pub fn compile(schema: &Value) -> Option<Self> {
        let props = Props::deserialize(schema).ok()?;
        Structural::compile(&props, &mut Patterns::default()).ok().map(Self)
    }

    /// Removes what the schema does not name; the paths of that.
    pub fn prune(&self, object: &mut Map<String, Value>) -> Vec<String> {
        prune(&self.0, object)
    }

    /// Fills in defaults.
    pub fn fill(&self, object: &mut Map<String, Value>) {
        fill(&self.0, object);
    }

    /// How many things are wrong with an object.
    pub fn faults(&self, object: &Value) -> usize {
        validate(&self.0, object).len()
    }
}

/// Takes a definition with this specification through its life: whether it is accepted, and then whether it can be served.
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

/// How many values a path leads to; `None` if it is none.
pub fn follow(path: &str, value: &Value) -> Option<usize> {
    JsonPath::parse(path).ok().map(|path| path.find(value).len())
}
