//! What the server knows about each kind: where it lives, which verbs it has, and the rules its objects follow.
//!
//! A [`Resource`] is data plus a set of [`rules::Rules`]; verbs never ask "is this a pod?". A new kind is a row in `kinds.rs` and, where it
//! differs from the generic behaviour, an entry in `rules.rs`. Kinds that users define are made in `custom/resources.rs`.

mod columns;
mod conversion;
mod defaults;
mod field_labels;
mod generated_name;
mod kinds;
mod metadata;
mod names;
mod object;
mod resource;
mod rules;
mod scale;
mod validation;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use columns::Columns;
pub(crate) use columns::age;
pub(crate) use conversion::Conversion;
pub(crate) use field_labels::UnknownLabel;
pub(crate) use generated_name::generate_name;
pub(crate) use kinds::is_built_in;
pub(crate) use names::label_1035;
pub(crate) use names::subdomain;
pub(crate) use object::Object;
pub(crate) use resource::Custom;
pub(crate) use resource::Published;
pub(crate) use resource::Resource;
pub(crate) use resource::Schema;
pub(crate) use rules::CUSTOM;
pub(crate) use rules::CUSTOM_WITH_STATUS;
pub(crate) use rules::Generation;
pub(crate) use rules::StatusMetadata;
pub(crate) use scale::ScalePaths;
pub(crate) use scale::ScaleSelector;
pub(crate) use versions::precedence;

/// `apps/v1`, or `v1` in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The versions of a group, and in each its resources by plural name.
pub(crate) type Versions = BTreeMap<String, BTreeMap<String, Arc<Resource>>>;

/// All resources that are served, by group, version and plural. Immutable: a change of kinds is another registry.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    groups: BTreeMap<String, Versions>,
}

/// Why a path names no resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Nobody serves that group, or it is one of definitions and they have no such resource: a plain 404.
    Group,
    /// A built-in group, but not that version or resource: a `Status` 404.
    Resource,
}

impl Registry {
    /// The built-in kinds.
    pub(crate) fn built_in() -> Self {
        let mut registry = Self { groups: BTreeMap::new() };
        kinds::built_in().map(Arc::new).for_each(|resource| registry.add(resource));
        registry
    }

    /// These kinds and more. A place that is taken stays as it is.
    pub(crate) fn with(&self, more: impl IntoIterator<Item = Arc<Resource>>) -> Self {
        let mut registry = self.clone();
        more.into_iter().for_each(|resource| registry.add(resource));
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let versions = self.groups.entry(resource.group.clone()).or_default();
        let resources = versions.entry(resource.version.clone()).or_default();
        resources.entry(resource.plural.clone()).or_insert(resource);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Result<&Arc<Resource>, Missing> {
        let versions = self.groups.get(group).ok_or(Missing::Group)?;
        let missing = if is_built_in(group) { Missing::Resource } else { Missing::Group };
        versions.get(version).and_then(|r| r.get(plural)).ok_or(missing)
    }

    /// Groups in order of name, each with its versions and their resources.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, &Versions)> {
        self.groups.iter().map(|(group, versions)| (group.as_str(), versions))
    }

    /// Every resource once.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.values().flat_map(|versions| versions.values()).flat_map(|resources| resources.values())
    }

    /// Whether some served kind has this group, version and kind.
    pub(crate) fn knows_kind(&self, group: &str, version: &str, kind: &str) -> bool {
        self.groups
            .get(group)
            .and_then(|v| v.get(version))
            .is_some_and(|r| r.values().any(|r| r.kind == kind))
    }
}
