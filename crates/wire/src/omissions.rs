//! The parts of the server's object that a cached object does not hold.

use crate::{FieldPath, FieldStep, fields::Node};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, LazyLock},
};

/// The parts of an object that its cached content does not hold as the server has them.
///
/// 1. It names at least those parts, and possibly more: fields that it does not name are as the server has them.
/// 2. Its size is bounded, whatever a transform does to objects.
/// 3. It contains names of fields and no values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Omissions {
    extent: Extent,
    /// Sorted, each once.
    paths: Vec<FieldPath>,
}

/// Omissions other than single fields. Each variant includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    #[default]
    Nothing,
    OutsideMetadata,
    Everything,
    /// Everything, and the content must not be read.
    Content,
}

/// Why a cache does not hold a field as the server has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// A transform removes or changes the field, a part of it, or elements of the array that it is in.
    Transform,
    /// Only metadata is cached.
    MetadataOnly,
    /// A transform changes objects in too many different ways to keep track of.
    Untracked,
}

/// Fields inside which [`Omissions::between`] distinguishes fields. Their names come from a schema, so that there are few
/// different ones in one kind; names inside other fields, such as `data`, may be different in every object.
const TWO_LEVELS: [&str; 3] = ["metadata", "spec", "status"];
/// Maximum number of fields that are distinguished inside one field.
const MAX_FIELDS: usize = 32;
/// Maximum length of a recorded name.
const MAX_NAME: usize = 128;

impl Omissions {
    /// These fields, each with all its contents.
    pub fn fields(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        let paths: BTreeSet<FieldPath> = paths.into_iter().collect();
        Self { extent: Extent::Nothing, paths: paths.into_iter().collect() }
    }

    /// Everything but `metadata`.
    pub fn outside_metadata() -> Arc<Self> {
        static OMISSIONS: LazyLock<Arc<Omissions>> = LazyLock::new(|| Omissions::of(Extent::OutsideMetadata));
        Arc::clone(&OMISSIONS)
    }

    /// The whole content, which must not be read.
    pub(crate) fn content() -> Arc<Self> {
        static OMISSIONS: LazyLock<Arc<Omissions>> = LazyLock::new(|| Omissions::of(Extent::Content));
        Arc::clone(&OMISSIONS)
    }

    /// Everything: no field is known to be as the server has it.
    pub fn everything() -> Self {
        Self { extent: Extent::Everything, paths: Vec::new() }
    }

    /// The number of the extent, for saved objects.
    pub(crate) fn extent_code(&self) -> u8 {
        match self.extent {
            Extent::Nothing => 0,
            Extent::OutsideMetadata => 1,
            Extent::Everything => 2,
            Extent::Content => 3,
        }
    }

    pub(crate) fn paths(&self) -> &[FieldPath] {
        &self.paths
    }

    /// Omissions of a saved object; `None` if no extent has this number.
    pub(crate) fn of_code(extent: u8, paths: Vec<FieldPath>) -> Option<Self> {
        let extent = match extent {
            0 => Extent::Nothing,
            1 => Extent::OutsideMetadata,
            2 => Extent::Everything,
            3 => Extent::Content,
            _ => return None,
        };
        Some(Self { extent, ..Self::fields(paths) })
    }

    fn of(extent: Extent) -> Arc<Self> {
        Arc::new(Self { extent, paths: Vec::new() })
    }

    /// The fields that a function changed, added or removed.
    ///
    /// It distinguishes top-level fields, and the fields of `metadata`, `spec` and `status`. A change deeper inside counts
    /// for the whole field: a function that filters `spec.containers` omits all of `spec.containers`.
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

    /// The omissions of both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let extent = self.extent.max(other.extent);
        Self { extent, ..Self::fields(self.paths.into_iter().chain(other.paths.iter().cloned())) }
    }

    /// Whether nothing is omitted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the content must not be read.
    pub(crate) fn is_content_withheld(&self) -> bool {
        self.extent == Extent::Content
    }

    /// Whether it names no single fields.
    pub(crate) fn is_open(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether it names top-level fields only.
    pub(crate) fn is_top_level(&self) -> bool {
        self.paths.iter().all(|path| path.steps().len() == 1)
    }

    /// The same omissions by top-level fields.
    pub(crate) fn top_level(&self) -> Self {
        let first = |path: &FieldPath| FieldPath::of_steps(path.steps()[..1].to_vec());
        Self { extent: self.extent, ..Self::fields(self.paths.iter().map(first)) }
    }

    /// Checks that a change from `before` to `after` touches no omitted field. The error names the place: an omitted
    /// field, a removed or replaced field that contains one, or an array with omitted elements or parts of elements.
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

/// The names of fields that differ; `None` if they are too many or too long to record.
fn changed_fields<'a>(
    before: &'a Map<String, Value>,
    after: &'a Map<String, Value>,
) -> Option<BTreeSet<&'a str>> {
    let names = before.keys().chain(after.keys()).map(String::as_str);
    let changed: BTreeSet<&str> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    let recordable = changed.len() <= MAX_FIELDS && changed.iter().all(|name| name.len() <= MAX_NAME);
    recordable.then_some(changed)
}

/// A change of an omitted field.
struct Refused;

/// Compares one place before and after a change; `node` has the omitted fields below it. On `Refused`, `path` is the place
/// of the omitted field.
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
    // Created, removed, replaced by another type, or an array. Elements of an array have no names, so after a change it is
    // unknown to which of them omitted fields belong.
    let leads_into = |value: &Value| match value {
        Value::Object(_) => node.has_names(),
        Value::Array(_) => node.has_elements(),
        _ => false,
    };
    match before.is_some_and(leads_into) || after.is_some_and(|after| sets(node, after)) {
        true => Err(Refused),
        false => Ok(()),
    }
}

/// Whether a new value sets an omitted field.
fn sets(node: &Node, value: &Value) -> bool {
    node.is_end()
        || match value {
            Value::Object(fields) => {
                node.names().any(|(name, child)| fields.get(name).is_some_and(|value| sets(child, value)))
            }
            Value::Array(elements) => elements
                .iter()
                .enumerate()
                .any(|(index, value)| node.elements(index).any(|child| sets(child, value))),
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
