//! The resources that the server has: where each lives, which verbs it has, and the rules its objects follow.
//!
//! A [`Resource`] is data plus a set of [`rules::Rules`]; verbs never test for a resource by name. A new built-in resource is a row in
//! `built_in.rs` and, where it differs from the generic object, a set of rules in `rules.rs`. Custom resources are made in
//! `custom/resources.rs`.

mod built_in;
mod columns;
mod conversion;
mod defaults;
mod field_labels;
mod generated_name;
mod group_version;
mod lifecycle;
mod metadata;
mod names;
mod not_enforced;
mod object;
mod resource;
mod rules;
mod scale;
mod stored_form;
mod subresource;
mod validation;
mod versions;

use std::sync::Arc;

use imbl::OrdMap;

pub(crate) use built_in::is_built_in;
pub(crate) use columns::Columns;
pub(crate) use columns::SCALE;
pub(crate) use columns::age;
pub(crate) use conversion::Conversion;
pub(crate) use defaults::quality_of_service;
pub(crate) use field_labels::UnknownLabel;
pub(crate) use generated_name::generate_name;
pub(crate) use group_version::Group;
pub(crate) use group_version::GroupVersion;
pub(crate) use group_version::Version;
pub(crate) use lifecycle::Lifecycle;
pub(crate) use lifecycle::Review;
pub(crate) use metadata::validate_embedded_metadata;
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
pub(crate) use stored_form::CodecError;
pub(crate) use subresource::Subresource;
pub(crate) use versions::precedence;

use crate::work::count_visit;

/// The versions of a group, and in each its resources by plural name.
pub(crate) type Versions = OrdMap<Version, Plurals>;

/// The resources of one version by plural name.
pub(crate) type Plurals = OrdMap<String, Arc<Resource>>;

/// All resources that are served, by group, version and plural.
///
/// The maps are persistent: a clone is O(1), and adding or removing a resource takes the same time however many there are.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    groups: OrdMap<Group, Versions>,
}

/// Why a path names no resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The group is not served, or is a custom one without that version or resource: a plain 404.
    Group,
    /// A built-in group, but not that version or resource: a `Status` 404.
    Resource,
}

impl Registry {
    /// The built-in resources.
    pub(crate) fn built_in() -> Self {
        let mut registry = Self { groups: OrdMap::new() };
        built_in::resources().map(Arc::new).for_each(|resource| registry.add(resource));
        registry
    }

    /// Adds a resource, unless its path is taken.
    pub(crate) fn add(&mut self, resource: Arc<Resource>) {
        let versions = self.groups.entry(resource.group.clone()).or_default();
        let resources = versions.entry(resource.version.clone()).or_default();
        resources.entry(resource.plural.clone()).or_insert(resource);
    }

    /// Removes a resource. Another resource with its path stays.
    pub(crate) fn remove(&mut self, resource: &Arc<Resource>) {
        let Some(versions) = self.groups.get_mut(&resource.group) else { return };
        let Some(resources) = versions.get_mut(&resource.version) else { return };
        if resources.get(&resource.plural).is_some_and(|known| Arc::ptr_eq(known, resource)) {
            resources.remove(&resource.plural);
        }
        if resources.is_empty() {
            versions.remove(&resource.version);
        }
        if versions.is_empty() {
            self.groups.remove(&resource.group);
        }
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
        let resources = self.groups.values().flat_map(|versions| versions.values());
        resources.flat_map(|resources| resources.values()).inspect(|_| count_visit())
    }

    /// The first resource with this lifecycle.
    pub(crate) fn with_lifecycle(&self, lifecycle: Lifecycle) -> Option<&Arc<Resource>> {
        self.all().find(|resource| resource.lifecycle == lifecycle)
    }

    /// Whether a served resource has this kind.
    pub(crate) fn knows_kind(&self, group_version: GroupVersion<'_>, kind: &str) -> bool {
        let versions = self.groups.get(group_version.group);
        let resources = versions.and_then(|versions| versions.get(group_version.version));
        resources.is_some_and(|resources| resources.values().any(|r| r.kind == kind))
    }
}
