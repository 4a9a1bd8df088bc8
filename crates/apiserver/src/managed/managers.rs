//! The list of managers of an object, and the changes that writes make to it.

use std::collections::HashSet;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::Model;
use super::compare::{claimed, compare};
use super::fields::{Fields, Step};
use super::merge::{merge, remove};
use crate::registry::{Object, Resource, StatusMetadata, Subresource};
use crate::work::{Abandoned, Work};

/// Updaters beyond this are merged into one.
const MAX_UPDATERS: usize = 10;
/// The name of the merged entry.
const ANCIENT: &str = "ancient-changes";
/// The manager of all fields before the first apply, if the object has none.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The field manager of a write.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) subresource: Option<Subresource>,
    /// The time of the write, as objects show it.
    pub(crate) now: String,
}

/// Bytes of the fields that a conflict names; the rest is counted.
const MAX_CONFLICT_BYTES: usize = 256 * 1024;

/// The error of an apply.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// It would take fields from other managers.
    Conflicts(Conflicts),
    Abandoned,
}

/// Fields that an apply would take from other managers.
#[derive(Debug, Default)]
pub(crate) struct Conflicts {
    /// The other manager, as messages name it, and the field. Not all, if there are very many.
    pub(crate) listed: Vec<(String, String)>,
    /// How many there are.
    pub(crate) total: usize,
}

impl From<Abandoned> for ApplyError {
    fn from(_: Abandoned) -> Self {
        Self::Abandoned
    }
}

/// The kind of a write. Managers that apply are listed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        [Self::Apply, Self::Update].into_iter().find(|operation| operation.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    operation: Operation,
    api_version: String,
    time: String,
    /// As it was sent: a client may name a subresource that this server does not have.
    subresource: Option<String>,
    fields: Fields,
}

/// The managers of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Managers(Vec<Entry>);

impl Managers {
    /// Reads the managers of an object. Malformed entries are left out.
    pub(crate) fn read(object: &Object) -> Self {
        let list = object.metadata().get("managedFields").and_then(Value::as_array);
        Self(list.into_iter().flatten().filter_map(Entry::read).collect())
    }

    /// Whether the client resets all managers: the list is present, and all its entries are empty.
    pub(crate) fn is_reset(object: &Object) -> bool {
        let list = object.metadata().get("managedFields").and_then(Value::as_array);
        list.is_some_and(|l| l.iter().all(|e| e.as_object().is_some_and(Map::is_empty)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records an update: the writer owns what it changed.
    pub(crate) fn updated(
        mut self,
        resource: &Resource,
        writer: &Writer,
        old: Option<&Object>,
        new: &Object,
        work: &Work,
    ) -> Result<Self, Abandoned> {
        let model = Model::of(resource);
        // Fields that every object of the kind has belong to no manager.
        let old = old.map(Object::value).or_else(|| resource.blank());
        let change = compare(old, Some(new.value()), model, work)?;
        let set = tracked(change.set, resource, writer.subresource);
        for entry in &mut self.0 {
            work.step()?;
            let own = entry.is(writer, Operation::Update, resource);
            entry.fields = entry.fields.difference(&change.removed);
            if !own {
                entry.fields = entry.fields.difference(&set);
            }
        }
        if !set.is_empty() {
            self.take(resource, writer, Operation::Update, |fields| fields.add(set));
        }
        self.0.retain(|entry| !entry.fields.is_empty());
        self.fold();
        Ok(self)
    }

    /// Applies `config` to `live`. Returns the new object and its managers.
    pub(crate) fn applied(
        mut self,
        resource: &Resource,
        writer: &Writer,
        live: &Object,
        config: &Object,
        force: bool,
        work: &Work,
    ) -> Result<(Value, Self), ApplyError> {
        let model = Model::of(resource);
        if self.is_empty() && live.uid().is_some() {
            let all = compare(None, Some(live.value()), model, work)?.set;
            self.0.push(Entry {
                manager: BEFORE_FIRST_APPLY.to_owned(),
                operation: Operation::Update,
                api_version: resource.api_version(),
                time: writer.now.clone(),
                subresource: None,
                fields: tracked(all, resource, None),
            });
        }
        let set = tracked(claimed(config.value(), model, work)?, resource, writer.subresource);
        let before = self
            .0
            .iter()
            .find(|e| e.is(writer, Operation::Apply, resource))
            .map(|e| e.fields.clone())
            .unwrap_or_default();
        let mut merged = live.value().clone();
        merge(&mut merged, config.value(), model, work)?;
        let others =
            self.0.iter().filter(|e| !e.is(writer, Operation::Apply, resource)).map(|entry| &entry.fields);
        let kept = Fields::union(others.chain([&set]));
        work.check()?;
        remove(&mut merged, &before.difference(&kept), model);
        let change = compare(Some(live.value()), Some(&merged), model, work)?;
        self.settle(resource, writer, &change.set, &change.removed, force)?;
        self.take(resource, writer, Operation::Apply, |fields| *fields = set);
        self.0.retain(|entry| !entry.fields.is_empty());
        Ok((merged, self))
    }

    /// Takes removed fields from other managers, and changed ones if `force` is set; otherwise those are conflicts.
    fn settle(
        &mut self,
        resource: &Resource,
        writer: &Writer,
        set: &Fields,
        removed: &Fields,
        force: bool,
    ) -> Result<(), ApplyError> {
        let (mut conflicts, mut left) = (Conflicts::default(), MAX_CONFLICT_BYTES);
        for entry in self.0.iter_mut().filter(|e| !e.is(writer, Operation::Apply, resource)) {
            let taken = entry.fields.intersection(set);
            if !taken.is_empty() && !force {
                conflicts.total += taken.count();
                let described = entry.described();
                for path in taken.first_paths(left) {
                    left = left.saturating_sub(described.len() + path.len());
                    conflicts.listed.push((described.clone(), path));
                }
            }
            entry.fields = entry.fields.difference(set).difference(removed);
        }
        if conflicts.total == 0 { Ok(()) } else { Err(ApplyError::Conflicts(conflicts)) }
    }

    /// Changes the fields of the writer's entry, and its time if they differ.
    fn take(
        &mut self,
        resource: &Resource,
        writer: &Writer,
        operation: Operation,
        change: impl FnOnce(&mut Fields),
    ) {
        let at = self.0.iter().position(|e| e.is(writer, operation, resource));
        let at = at.unwrap_or_else(|| {
            self.0.push(Entry {
                manager: writer.manager.clone(),
                operation,
                api_version: resource.api_version(),
                time: writer.now.clone(),
                subresource: writer.subresource.map(|s| s.name().to_owned()),
                fields: Fields::default(),
            });
            self.0.len() - 1
        });
        let entry = &mut self.0[at];
        let before = entry.fields.clone();
        change(&mut entry.fields);
        if entry.fields != before {
            entry.time.clone_from(&writer.now);
        }
    }

    /// Merges the oldest updaters into one entry if there are too many.
    fn fold(&mut self) {
        let updaters = self.0.iter().enumerate().filter(|(_, e)| e.operation == Operation::Update);
        let mut oldest: Vec<usize> = updaters.map(|(place, _)| place).collect();
        if oldest.len() <= MAX_UPDATERS {
            return;
        }
        oldest.sort_by(|a, b| self.0[*a].time.cmp(&self.0[*b].time));
        oldest.truncate(oldest.len() - MAX_UPDATERS + 1);
        let all = Fields::union(oldest.iter().map(|place| &self.0[*place].fields));
        let Some(newest) = oldest.pop() else { return };
        self.0[newest].fields = all;
        ANCIENT.clone_into(&mut self.0[newest].manager);
        let folded: HashSet<usize> = oldest.into_iter().collect();
        let mut place = 0;
        self.0.retain(|_| {
            place += 1;
            !folded.contains(&(place - 1))
        });
    }

    /// Puts the entries in the order of kube-apiserver: appliers first, then by time, then by name.
    pub(crate) fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| {
            (a.operation, &a.time, &a.manager, &a.subresource).cmp(&(
                b.operation,
                &b.time,
                &b.manager,
                &b.subresource,
            ))
        });
        self
    }

    /// Writes the list onto the object.
    pub(crate) fn write(self, object: &mut Object) {
        let list: Vec<Value> = self.sorted().0.into_iter().map(Entry::into_json).collect();
        if list.is_empty() {
            object.metadata_mut().remove("managedFields");
        } else {
            object.metadata_mut().insert("managedFields".to_owned(), list.into());
        }
    }
}

/// Writes the same JSON as [`Managers::write`], without making it.
impl Serialize for Managers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Sorted, as the fields of all other objects are written: equal documents have equal bytes.
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("apiVersion", &self.api_version)?;
        entry.serialize_entry("fieldsType", "FieldsV1")?;
        entry.serialize_entry("fieldsV1", &self.fields)?;
        entry.serialize_entry("manager", &self.manager)?;
        entry.serialize_entry("operation", self.operation.as_str())?;
        if let Some(subresource) = &self.subresource {
            entry.serialize_entry("subresource", subresource)?;
        }
        entry.serialize_entry("time", &self.time)?;
        entry.end()
    }
}

impl Entry {
    fn is(&self, writer: &Writer, operation: Operation, resource: &Resource) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource.as_deref() == writer.subresource.map(Subresource::name)
            && self.api_version == resource.api_version()
    }

    fn read(json: &Value) -> Option<Self> {
        let text = |field: &str| json.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            manager: text("manager"),
            operation: Operation::parse(json.get("operation")?.as_str()?)?,
            api_version: text("apiVersion"),
            time: text("time"),
            subresource: Some(text("subresource")).filter(|name| !name.is_empty()),
            fields: Fields::from_json(json.get("fieldsV1")?),
        })
    }

    fn into_json(self) -> Value {
        let mut entry = json!({
            "manager": self.manager,
            "operation": self.operation.as_str(),
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
        });
        entry["fieldsV1"] = self.fields.into_json(); // the macro would copy it
        if let Some(subresource) = self.subresource {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    /// The manager as a conflict names it, with its version if it is an updater.
    fn described(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if let Some(subresource) = &self.subresource {
            text.push_str(&format!(" with subresource {subresource:?}"));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// Metadata that no manager owns.
const UNOWNED_METADATA: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
];

/// Removes fields that are never owned, and those that this write does not change.
fn tracked(mut set: Fields, resource: &Resource, subresource: Option<Subresource>) -> Fields {
    let writes_status = subresource == Some(Subresource::Status);
    set.here = false;
    set.remove_fields(&["apiVersion", "kind"]);
    if !writes_status {
        set.remove_fields(resource.rules.status_fields);
    } else if resource.rules.status_metadata == StatusMetadata::Kept {
        set.remove_fields(&["spec", "metadata"]);
    } else {
        set.remove_fields(&["spec"]);
    }
    if let Some(metadata) = set.at_mut(&Step::field("metadata")) {
        metadata.here = false;
        metadata.remove_fields(UNOWNED_METADATA);
    }
    set.drop_empty();
    set
}

#[cfg(test)]
mod tests;
