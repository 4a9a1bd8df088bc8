//! What the server knows about each kind: where it lives, which verbs it has, and the rules its objects follow.
//!
//! A [`Resource`] is data plus a set of [`Rules`]; verbs never ask "is this a pod?". A new kind is a row in `kinds.rs` and, where it
//! differs from the generic behaviour, an entry in `rules.rs`.

mod columns;
mod conversion;
mod defaults;
mod field_labels;
mod generated_name;
mod kinds;
mod metadata;
mod names;
mod object;
mod rules;
mod validation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use columns::Column;
pub(crate) use columns::Columns;
pub(crate) use conversion::Conversion;
pub(crate) use field_labels::UnknownLabel;
pub(crate) use generated_name::generate_name;
pub(crate) use metadata::validate_metadata;
pub(crate) use metadata::validate_metadata_update;
pub(crate) use object::Object;
pub(crate) use rules::Generation;
pub(crate) use rules::Rules;

use crate::schema::Type;
use crate::storage::TypeHead;

/// One resource in one version: a row of discovery and everything a request to its URLs needs.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) subresources: Vec<&'static str>,
    /// The beginning of every encoded object of this kind.
    pub(crate) head: TypeHead,
    /// How objects are decoded; kinds without a schema keep every field.
    pub(crate) schema: Option<&'static Type>,
    pub(crate) rules: &'static Rules,
    /// Present if objects are stored in the form of another kind.
    pub(crate) conversion: Option<&'static Conversion>,
    /// How objects show themselves as rows.
    pub(crate) columns: Columns,
}

impl Resource {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Deployment.apps`, or `Pod` in the core group.
    pub(crate) fn kind_with_group(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// The folder of storage keys under which all objects of this resource lie, with its closing slash.
    pub(crate) fn storage_prefix(&self) -> String {
        let own = (self.group.as_str(), self.plural.as_str());
        match self.conversion.map_or(own, |c| (c.stored_group, c.stored_plural)) {
            ("", plural) => format!("/{plural}/"),
            (group, plural) => format!("/{group}/{plural}/"),
        }
    }

    /// The storage key of one object.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        let prefix = self.storage_prefix();
        if self.namespaced { format!("{prefix}{namespace}/{name}") } else { format!("{prefix}{name}") }
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        self.subresources.contains(&name)
    }

    /// Whether objects are kept; reviews are only answered.
    pub(crate) fn is_stored(&self) -> bool {
        self.has_verb("list")
    }

    pub(crate) fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }
}

/// `apps/v1`, or `v1` in the core group.
fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The versions of a group, and in each its resources by plural name.
pub(crate) type Versions = BTreeMap<String, BTreeMap<String, Arc<Resource>>>;

/// All resources that are served, by group, version and plural.
#[derive(Debug)]
pub(crate) struct Registry {
    groups: BTreeMap<String, Versions>,
}

/// Why a path names no resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nobody serves that group: a plain 404.
    Group,
    /// The group is there, but not that version or resource: a `Status` 404.
    Resource,
}

impl Registry {
    /// The built-in kinds.
    pub(crate) fn built_in() -> Self {
        let mut registry = Self { groups: BTreeMap::new() };
        for resource in kinds::built_in() {
            let versions = registry.groups.entry(resource.group.clone()).or_default();
            let resources = versions.entry(resource.version.clone()).or_default();
            resources.insert(resource.plural.clone(), Arc::new(resource));
        }
        registry
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Result<&Arc<Resource>, Missing> {
        let versions = self.groups.get(group).ok_or(Missing::Group)?;
        versions.get(version).and_then(|r| r.get(plural)).ok_or(Missing::Resource)
    }

    /// Groups in order of name, each with its versions and their resources.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, &Versions)> {
        self.groups.iter().map(|(group, versions)| (group.as_str(), versions))
    }

    /// Every resource once.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(|versions| versions.values()).flat_map(|resources| resources.values())
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Whether some served kind has this group, version and kind.
    pub(crate) fn knows_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        self.groups
            .get(group)
            .and_then(|v| v.get(version))
            .is_some_and(|r| r.values().any(|r| r.kind == kind))
    }
}
