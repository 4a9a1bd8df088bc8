//! What a cached object does not hold of the object that the server has.

use crate::{FieldPath, FieldStep, fields::Node};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, LazyLock},
};

/// The parts of an object that its cached content does not hold as the server has them.
///
/// 1. It names at least those parts, and perhaps more: what it does not name is as the server has it.
/// 2. Its size is bounded, whatever a function does to objects.
/// 3. It holds names of fields and no values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Omissions {
    extent: Extent,
    /// Sorted, each once.
    paths: Vec<FieldPath>,
}

/// What is omitted besides single fields. A later one includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    #[default]
    Nothing,
    OutsideMetadata,
    Everything,
    /// Everything, and what is there in its place must not be read.
    Content,
}

/// Why a cache does not hold a field as the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// A transform removes or changes the field, something inside it, or elements of the array it is in.
    Transform,
    /// Only metadata is cached.
    MetadataOnly,
    /// A transform changes objects in too many different ways to keep track of.
    Untracked,
}

/// Fields whose fields are told apart by [`Omissions::between`]. Their names come from a schema, so that objects of one
/// kind differ in a few ways only; names below other fields, such as `data`, may be different in every object.
const TWO_LEVELS: [&str; 3] = ["metadata", "spec", "status"];
/// Most fields that are told apart within one field.
const MOST_FIELDS: usize = 32;
/// Longest name that is kept.
const LONGEST_NAME: usize = 128;

impl Omissions {
    /// These fields, each with all that is inside it.
    pub fn fields(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        let paths: BTreeSet<FieldPath> = paths.into_iter().collect();
        Self { extent: Extent::Nothing, paths: paths.into_iter().collect() }
    }

    /// Everything but `metadata`.
    pub fn outside_metadata() -> Arc<Self> {
        static OMISSIONS: LazyLock<Arc<Omissions>> = LazyLock::new(|| Omissions::of(Extent::OutsideMetadata));
        Arc::clone(&OMISSIONS)
    }

    /// The whole content, which must not be read either.
    pub(crate) fn content() -> Arc<Self> {
        static OMISSIONS: LazyLock<Arc<Omissions>> = LazyLock::new(|| Omissions::of(Extent::Content));
        Arc::clone(&OMISSIONS)
    }

    /// Everything: nothing is known of what is held.
    pub fn everything() -> Self {
        Self { extent: Extent::Everything, paths: Vec::new() }
    }

    fn of(extent: Extent) -> Arc<Self> {
        Arc::new(Self { extent, paths: Vec::new() })
    }

    /// The fields that a function changed, added or removed.
    ///
    /// Fields of the object are told apart, and the fields inside `metadata`, `spec` and `status`. A change further
    /// inside counts for the whole field: a function that filters `spec.containers` omits all of `spec.containers`.
    pub fn between(before: &Value, after: &Value) -> Self {
        let (Value::Object(before), Value::Object(after)) = (before, after) else {
            return Self::everything();
        };
        let Some(changed) = changed_fields(before, after) else { return Self::everything() };
        let mut paths = Vec::new();
        for name in changed {
            let inside = match (before.get(name), after.get(name)) {
                (Some(Value::Object(before)), Some(Value::Object(after))) if TWO_LEVELS.contains(&name) => {
                    changed_fields(before, after)
                }
                _ => None,
            };
            match inside {
                Some(fields) => paths.extend(fields.into_iter().map(|field| FieldPath::of([name, field]))),
                None => paths.push(FieldPath::field(name)),
            }
        }
        Self::fields(paths)
    }

    /// What is omitted here or there.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let extent = self.extent.max(other.extent);
        Self { extent, ..Self::fields(self.paths.into_iter().chain(other.paths.iter().cloned())) }
    }

    /// Whether the object is held as the server has it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the content must not be read.
    pub(crate) fn is_content_withheld(&self) -> bool {
        self.extent == Extent::Content
    }

    /// Whether it names no single field.
    pub(crate) fn is_open(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether it names fields of the object itself only.
    pub(crate) fn is_top_level(&self) -> bool {
        self.paths.iter().all(|path| path.steps().len() == 1)
    }

    /// The same, by fields of the object itself.
    pub(crate) fn top_level(&self) -> Self {
        let first = |path: &FieldPath| FieldPath::of_steps(path.steps()[..1].to_vec());
        Self { extent: self.extent, ..Self::fields(self.paths.iter().map(first)) }
    }

    /// Checks that a change from `before` to `after` touches only what is held. The error names the place: a field that
    /// is omitted, one that contains such a field and is removed or replaced, or an array whose elements are not held
    /// as they are.
    pub(crate) fn check(&self, before: &Value, after: &Value) -> Result<(), (Option<FieldPath>, Omission)> {
        if before == after {
            return Ok(());
        }
        match (self.extent, before, after) {
            (Extent::Nothing, ..) => {}
            (Extent::OutsideMetadata, Value::Object(before), Value::Object(after)) => {
                let mut names = before.keys().chain(after.keys());
                let outside = |name: &&String| *name != "metadata" && before.get(*name) != after.get(*name);
                if let Some(name) = names.find(outside) {
                    return Err((Some(FieldPath::field(name)), Omission::MetadataOnly));
                }
            }
            _ => return Err((None, Omission::Untracked)),
        }
        let mut root = Node::default();
        for (number, path) in self.paths.iter().enumerate() {
            root.insert(path.steps(), number);
        }
        let mut path = Vec::new();
        check(&root, Some(before), Some(after), &mut path).map_err(|Refused| {
            let path = (!path.is_empty()).then(|| FieldPath::of_steps(path));
            (path, Omission::Transform)
        })
    }
}

/// The names of fields that differ; `None` if there are too many to keep, or too long ones.
fn changed_fields<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> Option<BTreeSet<&'a str>> {
    let names = before.keys().chain(after.keys()).map(String::as_str);
    let changed: BTreeSet<&str> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    let keepable = changed.len() <= MOST_FIELDS && changed.iter().all(|name| name.len() <= LONGEST_NAME);
    keepable.then_some(changed)
}

/// A change of something that is not held.
struct Refused;

/// Compares what is at one place before and after a change; `node` has the omitted fields from there on. When refused,
/// `path` is the place.
fn check(
    node: &Node,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<FieldStep>,
) -> Result<(), Refused> {
    if before == after {
        return Ok(());
    }
    if node.is_end() {
        return Err(Refused);
    }
    if let (Some(Value::Object(before)), Some(Value::Object(after))) = (before, after) {
        for (name, child) in node.names() {
            path.push(FieldStep::Name(name.to_owned()));
            check(child, before.get(name), after.get(name), path)?;
            path.pop();
        }
        return Ok(());
    }
    // Created, removed, replaced by another type, or an array. Elements of an array have no names: which of them is
    // which after a change, and so to which of them omitted fields belong, cannot be known.
    let leads_into = |value: &Value| match value {
        Value::Object(_) => node.has_names(),
        Value::Array(_) => node.has_elements(),
        _ => false,
    };
    match before.is_some_and(leads_into) || after.is_some_and(|after| shows(node, after)) {
        true => Err(Refused),
        false => Ok(()),
    }
}

/// Whether a new value has something in a place that is omitted.
fn shows(node: &Node, value: &Value) -> bool {
    node.is_end()
        || match value {
            Value::Object(fields) => {
                node.names().any(|(name, child)| fields.get(name).is_some_and(|value| shows(child, value)))
            }
            Value::Array(elements) => elements
                .iter()
                .enumerate()
                .any(|(index, value)| node.elements(index).any(|child| shows(child, value))),
            _ => false,
        }
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transform => {
                "the informer's transform removes or changes it or a part of it; keep the field in the transform, \
                 or set it with edit_via_apply"
            }
            Self::MetadataOnly => {
                "the informer caches metadata only; use an informer of whole objects, or set it with edit_via_apply"
            }
            Self::Untracked => {
                "the informer's transform changes objects in too many different ways to know what the server has; \
                 drop fields by path, or set them with edit_via_apply"
            }
        })
    }
}

#[cfg(test)]
mod tests;
