//! Sets of field paths, as `FieldsV1` writes them.

use std::cmp::Ordering;

use compact_str::{CompactString, ToCompactString, format_compact};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// One step of a path, as its text in `FieldsV1`: what it leads to, a colon, and which. Keys and values are canonical JSON, so that
/// steps compare cheaply. Most are short enough to need no allocation.
///
/// - `f:name`: a field.
/// - `k:{"name":"c"}`: the element of a list with these keys.
/// - `v:"x"`: the element of a set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Step(CompactString);

impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        cost::count(1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Step {
    pub(super) fn field(name: &str) -> Self {
        let mut text = CompactString::const_new("f:");
        text.push_str(name);
        Self(text)
    }

    pub(super) fn value(value: &Value) -> Self {
        Self(format_compact!("v:{value}"))
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
        Self(CompactString::from_utf8(text).expect("JSON is UTF-8"))
    }

    /// The name, if it leads to a field.
    pub(super) fn as_field(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self(text.to_compact_string())),
            "k" | "v" => {
                let canonical: Value = serde_json::from_str(rest).ok()?;
                Some(Self(format_compact!("{kind}:{canonical}")))
            }
            _ => None, // `i:` names elements by place, which nothing here does
        }
    }

    /// The step in a conflict message.
    pub(super) fn path(&self) -> String {
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

/// A set of paths, as a tree. `here` is whether the path to this node is itself in the set.
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

    /// A set with these below it, in any order. Empty ones are left out, those under one step become one.
    pub(super) fn with_below(here: bool, mut below: Vec<(Step, Fields)>) -> Self {
        below.retain(|(_, set)| !set.is_empty());
        below.sort_by(|(a, _), (b, _)| a.cmp(b));
        below.dedup_by(|(step, set), (kept, into)| {
            let same = step == kept;
            if same {
                into.add(std::mem::take(set));
            }
            same
        });
        Self { here, below }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.here && self.below.iter().all(|(_, set)| set.is_empty())
    }

    /// Puts a set under a step, unless it is empty. For a few steps, or for steps in rising order; see [`with_below`](Self::with_below).
    pub(super) fn put(&mut self, step: Step, set: Fields) {
        if set.is_empty() {
            return;
        }
        match self.find(&step) {
            Ok(at) => self.below[at].1.add(set),
            Err(at) => {
                cost::count(self.below.len() - at);
                self.below.insert(at, (step, set));
            }
        }
    }

    /// Puts another set into this one.
    pub(super) fn add(&mut self, other: Self) {
        self.here |= other.here;
        if self.below.is_empty() {
            self.below = other.below;
        } else if !other.below.is_empty() {
            let mut below = std::mem::take(&mut self.below);
            below.extend(other.below);
            // Two sorted runs: sorting merges them in one pass.
            *self = Self::with_below(self.here, below);
        }
    }

    /// The union of these sets.
    pub(super) fn union<'f>(sets: impl IntoIterator<Item = &'f Self>) -> Self {
        Self::union_of(&sets.into_iter().collect::<Vec<_>>())
    }

    fn union_of(sets: &[&Self]) -> Self {
        let mut below: Vec<&(Step, Self)> = sets.iter().flat_map(|set| &set.below).collect();
        below.sort_by(|(a, _), (b, _)| a.cmp(b));
        let same_step = below.chunk_by(|(a, _), (b, _)| a == b);
        let united = same_step.map(|group| {
            let sets: Vec<&Self> = group.iter().map(|(_, set)| set).collect();
            (group[0].0.clone(), Self::union_of(&sets))
        });
        Self { here: sets.iter().any(|set| set.here), below: united.collect() }
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

    /// Removes the paths at or below those in `other`.
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

    /// Removes the paths at or below these fields.
    pub(super) fn remove_fields(&mut self, names: &[&str]) {
        self.below.retain(|(step, _)| step.as_field().is_none_or(|name| !names.contains(&name)));
    }

    /// Removes steps without paths.
    pub(super) fn drop_empty(&mut self) {
        self.below.retain(|(_, set)| !set.is_empty());
    }

    pub(super) fn at(&self, step: &Step) -> Option<&Self> {
        self.find(step).ok().map(|at| &self.below[at].1)
    }

    pub(super) fn at_mut(&mut self, step: &Step) -> Option<&mut Self> {
        self.find(step).ok().map(|at| &mut self.below[at].1)
    }

    /// The nodes below the path to this node, in order.
    pub(super) fn below(&self) -> impl Iterator<Item = (&Step, &Self)> {
        self.below.iter().map(|(step, set)| (step, set))
    }

    /// Every path in the set, as conflict messages write it.
    pub(super) fn paths(&self) -> Vec<String> {
        self.first_paths(usize::MAX)
    }

    /// The first paths of the set, up to about this many bytes.
    pub(super) fn first_paths(&self, bytes: usize) -> Vec<String> {
        let mut found = Vec::new();
        self.collect(&mut String::new(), &mut found, &mut { bytes });
        found
    }

    fn collect(&self, path: &mut String, found: &mut Vec<String>, left: &mut usize) {
        if self.here && !path.is_empty() {
            *left = left.saturating_sub(path.len());
            found.push(path.clone());
        }
        let mark = path.len();
        for (step, set) in &self.below {
            if *left == 0 {
                return;
            }
            path.push_str(&step.path());
            set.collect(path, found, left);
            path.truncate(mark);
        }
    }

    /// The number of paths.
    pub(super) fn count(&self) -> usize {
        usize::from(self.here) + self.below.iter().map(|(_, set)| set.count()).sum::<usize>()
    }

    pub(super) fn into_json(self) -> Value {
        let mut map = Map::new();
        if self.here && !self.below.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        map.extend(self.below.into_iter().map(|(step, set)| (step.0.into_string(), set.into_json())));
        Value::Object(map)
    }

    pub(super) fn from_json(json: &Value) -> Self {
        let Some(map) = json.as_object() else { return Self::default() };
        let (mut here, mut below) = (false, Vec::with_capacity(map.len()));
        for (key, inner) in map {
            if key == "." {
                here = true;
            } else if let Some(step) = Step::parse(key) {
                let mut set = Self::from_json(inner);
                set.here |= inner.as_object().is_some_and(Map::is_empty);
                below.push((step, set));
            }
        }
        Self::with_below(here, below)
    }

    /// Where a step is or belongs. Sets are mostly built in order, so the end is tried first.
    fn find(&self, step: &Step) -> Result<usize, usize> {
        match self.below.last() {
            Some((last, _)) if last >= step => self.below.binary_search_by(|(other, _)| other.cmp(step)),
            _ => Err(self.below.len()),
        }
    }
}

/// Writes the same JSON as [`Fields::into_json`], without making it.
impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.here && !self.below.is_empty() {
            map.serialize_entry(".", &Fields::default())?;
        }
        for (step, set) in &self.below {
            map.serialize_entry(step.0.as_str(), set)?;
        }
        map.end()
    }
}

/// Counts the work on sets in tests: comparisons of steps, and elements moved to make room.
pub(super) mod cost {
    #[cfg(test)]
    thread_local! {
        static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[cfg(test)]
    pub(super) fn count(n: usize) {
        COUNT.with(|count| count.set(count.get() + n));
    }

    #[cfg(not(test))]
    pub(super) fn count(_: usize) {}

    /// The count while `work` ran.
    #[cfg(test)]
    pub(in super::super) fn of<T>(work: impl FnOnce() -> T) -> (T, usize) {
        COUNT.with(|count| count.set(0));
        let done = work();
        (done, COUNT.with(std::cell::Cell::get))
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
        assert_eq!(serde_json::to_string(&set).unwrap(), json.to_string());
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
