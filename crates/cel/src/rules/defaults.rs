//! Checks of the defaults in a schema by its rules.

use serde_json::Value as Json;

use super::Problem;
use super::correlation::Ratcheting;
use super::validator::{Checked, Ended, Level, Run, Validator};
use crate::limits::OBJECT_BUDGET;
use crate::schema::Schema;

/// Returns the problems of the defaults in a structural schema, the value of `openAPIV3Schema` at a path, by its rules.
///
/// A default must satisfy the rules of a new value and those of a value that is unchanged. All defaults share the budget of one object.
#[must_use]
pub fn check_defaults(schema: &Json, at: &str) -> Vec<Problem> {
    let Some(validator) = Validator::new(Schema::of_resource(schema)) else { return Vec::new() };
    let mut walk = Walk { problems: Vec::new(), budget: OBJECT_BUDGET };
    let (parsed, level) = validator.root();
    // The problems have the error of a budget that is used up.
    let _ = walk.schema(schema, parsed, level, at);
    walk.problems
}

struct Walk {
    problems: Vec<Problem>,
    budget: i64,
}

impl Walk {
    fn schema(&mut self, json: &Json, schema: &Schema, level: &Level, at: &str) -> Result<(), Ended> {
        if let Some(default) = json.get("default").filter(|default| !default.is_null()) {
            let before = self.problems.len();
            let unchanged = self.default(default, Some(default), schema, level, at)?;
            let mut left = unchanged;
            if self.problems.len() == before {
                left = left.min(self.default(default, None, schema, level, at)?);
            }
            self.budget = left;
        }
        if let (Some(items), Some(inner), Some(level)) =
            (json.get("items"), schema.items.as_deref(), level.items.as_deref())
        {
            self.schema(items, inner, level, &format!("{at}.items"))?;
        }
        // Defaults in `additionalProperties` are not supported.
        for (name, level) in &level.properties {
            let property = json.get("properties").and_then(|properties| properties.get(name));
            if let (Some(property), Some(inner)) = (property, schema.properties.get(name)) {
                self.schema(property, inner, level, &format!("{at}.properties[{name}]"))?;
            }
        }
        Ok(())
    }

    /// Checks one default and returns what is left of the budget.
    fn default(
        &mut self,
        default: &Json,
        old: Option<&Json>,
        schema: &Schema,
        level: &Level,
        at: &str,
    ) -> Result<i64, Ended> {
        let mut run = Run::new(self.budget, u64::MAX);
        let value = Checked { schema, new: default, old, ratcheting: Ratcheting::new(None) };
        let ended = run.level(level, &value, &format!("{at}.default"));
        self.problems.append(&mut run.verdict.errors);
        ended?;
        Ok(run.budget)
    }
}
