//! Sets of field paths, as `FieldsV1` writes them.

use serde_json::{Map, Value};

/// One step of a path, as its text in `FieldsV1`: what it leads to, a colon, and which. Keys and values are canonical JSON, so that
/// steps compare cheaply.
///
/// - `f:name`: a field.
/// - `k:{"name":"c"}`: the element of a list with these keys.
/// - `v:"x"`: the element of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step(String);

impl Step {
    pub(super) fn field(name: &str) -> Self {
        Self(["f:", name].concat())
    }

    pub(super) fn value(value: &Value) -> Self {
        Self(format!("v:{value}"))
    }

    /// The element with these keys, which must be sorted.
    pub(super) fn keys<'a>(keys: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut text = Vec::with_capacity(64);
        text.extend_from_slice(b"k:");
        for (n, (key, value)) in keys.into_iter().enumerate() {
            text.extend_from_slice(if n == 0 { b"{\"" } else { b",\"" });
            text.extend_from_slice(key.as_bytes());
            text.extend_from_slice(b"\":");
            serde_json::to_writer(&mut text, value).expect("JSON values always encode into memory");
        }
        text.extend_from_slice(if text.len() == 2 { b"{}" } else { b"}" });
        Self(String::from_utf8(text).expect("JSON is UTF-8"))
    }

    /// The name, if it leads to a field.
    pub(super) fn as_field(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self(text.to_owned())),
            "k" | "v" => {
                let canonical: Value = serde_json::from_str(rest).ok()?;
                Some(Self(format!("{kind}:{canonical}")))
            }
            _ => None, // `i:` names elements by place, which nothing here does
        }
    }

    /// The step in a conflict message.
    fn path(&self) -> String {
        match self.0.split_at(2) {
            ("f:", name) => format!(".{name}"),
            ("k:", keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys = keys.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
                format!("[{keys}]")
            }
            (_, value) => format!("[={value}]"),
        }
    }
}

/// A set of paths, as a tree. `here` says whether the path to this node is itself in the set.
///
/// Most nodes have few children and every write makes a tree, so children are a sorted list and not a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) here: bool,
    /// Sorted by step, each step once.
    below: Vec<(Step, Fields)>,
}

impl Fields {
    pub(super) fn only_here() -> Self {
        Self { here: true, below: Vec::new() }
    }

    /// A set of only this path, about to get `below` steps below it.
    pub(super) fn here_with_room(below: usize) -> Self {
        Self { here: true, below: Vec::with_capacity(below) }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.here && self.below.iter().all(|(_, set)| set.is_empty())
    }

    /// Puts a set under a step, unless it is empty.
    pub(super) fn put(&mut self, step: Step, set: Fields) {
        if set.is_empty() {
            return;
        }
        match self.find(&step) {
            Ok(at) => self.below[at].1.add(set),
            Err(at) => self.below.insert(at, (step, set)),
        }
    }

    /// Puts another set into this one.
    pub(super) fn add(&mut self, other: Self) {
        self.here |= other.here;
        if self.below.is_empty() {
            self.below = other.below;
        } else {
            other.below.into_iter().for_each(|(step, set)| self.put(step, set));
        }
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { here: self.here && other.here, below: Vec::new() };
        for (step, set) in &self.below {
            if let Some(other) = other.at(step) {
                result.put(step.clone(), set.intersection(other));
            }
        }
        result
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut result = Self { here: self.here && !other.here, below: Vec::new() };
        for (step, set) in &self.below {
            let left = other.at(step).map_or_else(|| set.clone(), |other| set.difference(other));
            result.put(step.clone(), left);
        }
        result
    }

    /// Takes out the paths at or below those in `other`.
    pub(super) fn remove_trees(&mut self, other: &Self) {
        if other.here {
            *self = Self::default();
            return;
        }
        for (step, other) in &other.below {
            if let Some(set) = self.at_mut(step) {
                set.remove_trees(other);
            }
        }
        self.drop_empty();
    }

    /// Takes out the steps that lead to nothing.
    pub(super) fn drop_empty(&mut self) {
        self.below.retain(|(_, set)| !set.is_empty());
    }

    pub(super) fn at(&self, step: &Step) -> Option<&Self> {
        self.find(step).ok().map(|at| &self.below[at].1)
    }

    pub(super) fn at_mut(&mut self, step: &Step) -> Option<&mut Self> {
        self.find(step).ok().map(|at| &mut self.below[at].1)
    }

    /// What is below the path to this node, in order.
    pub(super) fn below(&self) -> impl Iterator<Item = (&Step, &Self)> {
        self.below.iter().map(|(step, set)| (step, set))
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

    pub(super) fn into_json(self) -> Value {
        let mut map = Map::new();
        if self.here && !self.below.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        map.extend(self.below.into_iter().map(|(step, set)| (step.0, set.into_json())));
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
                set.put(step, below);
            }
        }
        set
    }

    /// Where a step is or belongs. Sets are mostly built in order, so the end is tried first.
    fn find(&self, step: &Step) -> Result<usize, usize> {
        match self.below.last() {
            Some((last, _)) if last >= step => self.below.binary_search_by(|(other, _)| other.cmp(step)),
            _ => Err(self.below.len()),
        }
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
        assert_eq!(
            set.paths(),
            [".data", ".data.k", ".spec.c[name=\"a\"]", ".spec.c[name=\"a\"].name", ".spec.set[=\"x\"]"]
        );
        assert_eq!(set.into_json(), json);
    }

    #[test]
    fn sets_combine() {
        let a = Fields::from_json(&json!({"f:x": {"f:y": {}, "f:z": {}}}));
        let b = Fields::from_json(&json!({"f:x": {"f:y": {}}, "f:w": {}}));
        assert_eq!(a.intersection(&b).paths(), [".x.y"]);
        assert_eq!(a.difference(&b).paths(), [".x.z"]);
        let mut both = a.clone();
        both.add(b);
        assert_eq!(both.paths(), [".w", ".x.y", ".x.z"]);
        both.remove_trees(&Fields::from_json(&json!({"f:x": {}})));
        assert_eq!(both.paths(), [".w"]);
    }
}
