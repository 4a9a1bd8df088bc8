//! Sets of fields, for the fuzz targets.

use serde_json::Value;

use super::fields::Fields;

/// A set of fields as `FieldsV1` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSet(Fields);

impl FieldSet {
    /// Reads a set.
    pub fn read(json: &Value) -> Self {
        Self(Fields::from_json(json))
    }

    /// Writes a set.
    pub fn write(&self) -> Value {
        self.0.clone().into_json()
    }

    /// The paths, as conflict messages write them.
    pub fn paths(&self) -> Vec<String> {
        self.0.paths()
    }

    /// The paths in either.
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.0.clone();
        both.add(other.0.clone());
        Self(both)
    }

    /// The paths in both.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0))
    }

    /// The paths that are here and not there.
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0))
    }

    /// The rest without the paths at or below those of another.
    pub fn without_trees(&self, other: &Self) -> Self {
        let mut left = self.0.clone();
        left.remove_trees(&other.0);
        Self(left)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
