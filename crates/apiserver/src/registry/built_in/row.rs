//! One row of the table of built-in resources.

use std::sync::OnceLock;

use crate::registry::columns::{self, Columns, Fixed};
use crate::registry::conversion::{Conversion, StoredAs};
use crate::registry::group_version::{Group, GroupVersion, Version};
use crate::registry::lifecycle::{Lifecycle, Review};
use crate::registry::not_enforced;
use crate::registry::resource::{Resource, Schema};
use crate::registry::rules::{self, Rules};
use crate::registry::scale::ScalePaths;
use crate::registry::subresource::Subresource;
use crate::schema::types;
use crate::storage::TypeHead;
use crate::verb::Verb;

const ALL_VERBS: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
pub(super) const WITHOUT_DELETE_COLLECTION: &[Verb] =
    &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];
/// The verbs of objects that cannot be watched or written.
pub(super) const READ_ONCE: &[Verb] = &[Verb::Get, Verb::List];
const REVIEW_VERBS: &[Verb] = &[Verb::Create];

/// One built-in resource.
///
/// The functions below set the properties in which a resource differs from a plain one: stored, cached for watches, with all verbs, the
/// rules of a generic object and no subresources.
pub(super) struct Row {
    pub(super) group_version: GroupVersion<'static>,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    verbs: &'static [Verb],
    subresources: &'static [Subresource],
    lifecycle: Lifecycle,
    rules: &'static Rules,
    columns: &'static Fixed,
    conversion: Option<&'static StoredAs>,
    scale: Option<fn() -> ScalePaths>,
    watch_cached: bool,
}

/// A resource whose objects are in a namespace.
pub(super) const fn namespaced(
    group_version: GroupVersion<'static>,
    kind: &'static str,
    plural: &'static str,
) -> Row {
    Row { namespaced: true, ..cluster(group_version, kind, plural) }
}

/// A resource whose objects are in no namespace.
pub(super) const fn cluster(
    group_version: GroupVersion<'static>,
    kind: &'static str,
    plural: &'static str,
) -> Row {
    Row {
        group_version,
        kind,
        plural,
        namespaced: false,
        short_names: &[],
        categories: &[],
        verbs: ALL_VERBS,
        subresources: &[],
        lifecycle: Lifecycle::Plain,
        rules: &rules::PLAIN,
        columns: &columns::GENERIC,
        conversion: None,
        scale: None,
        watch_cached: true,
    }
}

impl Row {
    pub(super) const fn short_names(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    /// `kubectl get all` shows the resource.
    pub(super) const fn in_all(self) -> Self {
        Self { categories: &["all"], ..self }
    }

    pub(super) const fn api_extension(self) -> Self {
        Self { categories: &["api-extensions"], ..self }
    }

    pub(super) const fn verbs(self, verbs: &'static [Verb]) -> Self {
        Self { verbs, ..self }
    }

    pub(super) const fn subresources(self, subresources: &'static [Subresource]) -> Self {
        Self { subresources, ..self }
    }

    pub(super) const fn lifecycle(self, lifecycle: Lifecycle) -> Self {
        Self { lifecycle, ..self }
    }

    pub(super) const fn review(self, review: Review) -> Self {
        Self { lifecycle: Lifecycle::Review(review), verbs: REVIEW_VERBS, ..self }
    }

    pub(super) const fn binding(self) -> Self {
        Self { lifecycle: Lifecycle::Binding, verbs: REVIEW_VERBS, ..self }
    }

    pub(super) const fn rules(self, rules: &'static Rules) -> Self {
        Self { rules, ..self }
    }

    pub(super) const fn columns(self, columns: &'static Fixed) -> Self {
        Self { columns, ..self }
    }

    /// Objects are stored as another resource stores them.
    pub(super) const fn stored_as(self, form: &'static StoredAs) -> Self {
        Self { conversion: Some(form), ..self }
    }

    pub(super) const fn scale(self, paths: fn() -> ScalePaths) -> Self {
        Self { scale: Some(paths), ..self }
    }

    /// Reads and watches go to the store: objects change too often for a cache to pay off.
    pub(super) const fn uncached(self) -> Self {
        Self { watch_cached: false, ..self }
    }

    /// The resource that the row describes.
    pub(super) fn resource(&self) -> Resource {
        let GroupVersion { group, version } = self.group_version;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Resource {
            group: Group::new(group),
            version: Version::new(version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            verbs: self.verbs,
            subresources: self.subresources.to_vec(),
            lifecycle: self.lifecycle,
            watch_cached: self.watch_cached,
            head: TypeHead::new(&self.group_version.to_string(), self.kind),
            list_kind: format!("{}List", self.kind),
            schema: types().kind(group, version, self.kind).map_or(Schema::Free, Schema::Table),
            rules: self.rules,
            not_enforced: not_enforced::of_kind(group, self.kind),
            columns: Columns::Fixed(*self.columns),
            conversion: self.conversion.map(Conversion::StoredAs),
            scale: self.scale.map(|paths| paths()),
            custom: None,
            blank: OnceLock::new(),
        }
    }
}
