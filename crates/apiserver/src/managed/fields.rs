//! Sets of field paths, as `FieldsV1` writes them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

/// One step of a path. Keys and values are kept as canonical JSON text, so that steps compare cheaply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// `f:name`
    Field(String),
    /// `k:{"name":"c"}`: the element of a list with these keys.
    Keys(String),
    /// `v:"x"`: the element of a set.
    Value(String),
}

impl Step {
    pub(super) fn value(value: &Value) -> Self {
        Self::Value(value.to_string())
    }

    fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Keys(keys) => format!("k:{keys}"),
            Self::Value(value) => format!("v:{value}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let canonical = || serde_json::from_str::<Value>(rest).ok().map(|v| v.to_string());
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => canonical().map(Self::Keys),
            "v" => canonical().map(Self::Value),
            _ => None, // `i:` names elements by place, which nothing here does
        }
    }

    /// The step in a conflict message.
    fn path(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Keys(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys = keys.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
                format!("[{keys}]")
            }
            Self::Value(value) => format!("[={value}]"),
        }
    }
}

/// A set of paths, as a tree. `here` says whether the path to this node is itself in the set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) here: bool,
    pub(super) below: BTreeMap<Step, Fields>,
}

impl Fields {
    pub(super) fn only_here() -> Self {
        Self { here: true, below: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.here && self.below.values().all(Self::is_empty)
    }

    /// Puts a set under a step, unless it is empty. Trees are built bottom-up with this, so a free place takes the set as it is.
    pub(super) fn put(&mut self, step: Step, set: Fields) {
        if set.is_empty() {
            return;
        }
        match self.below.entry(step) {
            Entry::Vacant(place) => {
                place.insert(set);
            }
            Entry::Occupied(mut place) => {
                let both = place.get().union(&set);
                place.insert(both);
            }
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.here |= other.here;
        for (step, set) in &other.below {
            let place = result.below.entry(step.clone()).or_default();
            *place = place.union(set);
        }
        result
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { here: self.here && other.here, below: BTreeMap::new() };
        for (step, set) in &self.below {
            if let Some(other) = other.below.get(step) {
                result.put(step.clone(), set.intersection(other));
            }
        }
        result
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut result = Self { here: self.here && !other.here, below: BTreeMap::new() };
        for (step, set) in &self.below {
            let left = other.below.get(step).map_or_else(|| set.clone(), |other| set.difference(other));
            result.put(step.clone(), left);
        }
        result
    }

    /// Without paths at or below those in `other`.
    pub(super) fn without_trees(&self, other: &Self) -> Self {
        if other.here {
            return Self::default();
        }
        let mut result = Self { here: self.here, below: BTreeMap::new() };
        for (step, set) in &self.below {
            let left = other.below.get(step).map_or_else(|| set.clone(), |other| set.without_trees(other));
            result.put(step.clone(), left);
        }
        result
    }

    pub(super) fn at(&self, step: &Step) -> Option<&Self> {
        self.below.get(step)
    }

    /// Every path in the set, as conflict messages write it.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect(String::new(), &mut found);
        found
    }

    fn collect(&self, path: String, found: &mut Vec<String>) {
        if self.here && !path.is_empty() {
            found.push(path.clone());
        }
        for (step, set) in &self.below {
            set.collect(format!("{path}{}", step.path()), found);
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.here && !self.below.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, set) in &self.below {
            map.insert(step.text(), set.to_json());
        }
        Value::Object(map)
    }

    pub(super) fn from_json(json: &Value) -> Self {
        let mut set = Self::default();
        let Some(map) = json.as_object() else { return set };
        for (key, inner) in map {
            if key == "." {
                set.here = true;
            } else if let Some(step) = Step::parse(key) {
                let mut below = Self::from_json(inner);
                below.here |= inner.as_object().is_some_and(Map::is_empty);
                set.below.insert(step, below);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_set_survives_its_json() {
        let json = json!({"f:data": {".": {}, "f:k": {}}, "f:spec": {"f:c": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}},
            "f:set": {"v:\"x\"": {}}}});
        let set = Fields::from_json(&json);
        assert_eq!(set.to_json(), json);
        assert_eq!(
            set.paths(),
            [".data", ".data.k", ".spec.c[name=\"a\"]", ".spec.c[name=\"a\"].name", ".spec.set[=\"x\"]"]
        );
    }

    #[test]
    fn sets_combine() {
        let a = Fields::from_json(&json!({"f:x": {"f:y": {}, "f:z": {}}}));
        let b = Fields::from_json(&json!({"f:x": {"f:y": {}}, "f:w": {}}));
        assert_eq!(a.intersection(&b).paths(), [".x.y"]);
        assert_eq!(a.difference(&b).paths(), [".x.z"]);
        assert_eq!(a.union(&b).paths(), [".w", ".x.y", ".x.z"]);
        assert!(a.without_trees(&Fields::from_json(&json!({"f:x": {}}))).is_empty());
    }
}
