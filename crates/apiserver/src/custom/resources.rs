//! Conversion of an established CRD to resources.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use kube_informer_cel::Validator;
use serde_json::json;

use super::columns::PrinterColumns;
use super::conditions;
use super::definition::{Names, Scale, Spec, Version};
use super::json_path::pointer;
use super::pattern::Patterns;
use super::schema::Structural;
use super::versions::Versions;
use crate::registry::{
    CUSTOM, CUSTOM_WITH_STATUS, Columns, Conversion, Custom, Group, GroupVersion, Lifecycle, Object,
    Published, Resource, ScalePaths, ScaleSelector, Schema, Subresource,
};
use crate::storage::TypeHead;
use crate::verb::Verb;

const VERBS: &[Verb] = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// A CRD that is served, with the resources of its versions.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) uid: String,
    pub(crate) terminating: bool,
    /// Changes with the spec, from which the resources are built.
    generation: i64,
    names: Names,
    /// One for each served version.
    pub(crate) resources: Vec<Arc<Resource>>,
}

impl Installed {
    /// Builds the resources of a CRD, or returns `None` if it is not established. Returns an error if the CRD cannot be served.
    pub(crate) fn read(object: &Object) -> Result<Option<Self>, String> {
        if !conditions::holds(object, "Established") {
            return Ok(None);
        }
        let spec = Spec::read(object.at("/spec")).map_err(|e| e.to_string())?;
        let names = object.at("/status/acceptedNames").cloned().unwrap_or_default();
        let names: Names = serde_json::from_value(names).map_err(|e| e.to_string())?;
        let mut installed = Self {
            uid: object.uid().unwrap_or_default().to_owned(),
            terminating: object.is_deleting(),
            generation: object.generation(),
            names,
            resources: Vec::new(),
        };
        installed.resources = ResourceBuilder::new(object, &spec, &installed)?.resources();
        Ok(Some(installed))
    }

    /// Returns whether both have the same resources.
    pub(crate) fn has_same_resources(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation && self.names == other.names
    }
}

struct ResourceBuilder<'d> {
    object: &'d Object,
    spec: &'d Spec,
    installed: &'d Installed,
    /// Selectable fields of all versions: label and pointer.
    selectable_fields: Arc<[(String, String)]>,
    /// The name and the schema of each version. Versions with equal schemas share one.
    schemas: Arc<[(String, Arc<Structural>)]>,
    /// The place of the storage version.
    storage: usize,
}

impl<'d> ResourceBuilder<'d> {
    fn new(object: &'d Object, spec: &'d Spec, installed: &'d Installed) -> Result<Self, String> {
        let fields = spec.versions.iter().flat_map(|v| &v.selectable_fields);
        let selectable_fields: BTreeMap<String, String> = fields
            .filter_map(|f| Some((f.json_path.trim_start_matches('.').to_owned(), pointer(&f.json_path)?)))
            .collect();
        let mut patterns = Patterns::default();
        let mut schemas: Vec<(String, Arc<Structural>)> = Vec::new();
        for version in &spec.versions {
            let equal = spec.versions.iter().position(|other| other.schema() == version.schema());
            let schema = match equal.and_then(|place| schemas.get(place)) {
                Some((_, schema)) => Arc::clone(schema),
                None => {
                    let props = version.props().transpose().map_err(|e| e.to_string())?.unwrap_or_default();
                    Arc::new(Structural::compile(&props, &mut patterns).map_err(|e| e.to_string())?)
                }
            };
            schemas.push((version.name.clone(), schema));
        }
        let selectable_fields = selectable_fields.into_iter().collect();
        let storage = spec.versions.iter().position(|version| version.storage).unwrap_or_default();
        Ok(Self { object, spec, installed, selectable_fields, schemas: schemas.into(), storage })
    }

    fn resources(&self) -> Vec<Arc<Resource>> {
        let served = self.spec.versions.iter().enumerate().filter(|(_, version)| version.served);
        served.map(|(place, version)| Arc::new(self.resource(version, place))).collect()
    }

    fn resource(&self, version: &Version, place: usize) -> Resource {
        let Names { plural, singular, short_names, kind, list_kind, categories } =
            self.installed.names.clone();
        let scale = version.scale();
        let subresources =
            [(Subresource::Status, version.has_status()), (Subresource::Scale, scale.is_some())];
        Resource {
            group: Group::new(self.spec.group.clone()),
            version: crate::registry::Version::new(version.name.clone()),
            head: TypeHead::new(&self.group_version(version).to_string(), &kind),
            kind,
            list_kind,
            plural,
            singular,
            short_names,
            categories,
            namespaced: self.spec.scope == "Namespaced",
            verbs: VERBS,
            subresources: subresources.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect(),
            lifecycle: Lifecycle::Plain,
            watch_cached: true,
            schema: Schema::Custom(Arc::clone(&self.schemas[place].1)),
            rules: if version.has_status() { &CUSTOM_WITH_STATUS } else { &CUSTOM },
            not_enforced: Vec::new(),
            conversion: self
                .stored_schema_may_differ()
                .then(|| Conversion::Versions(Versions::new(&self.schemas, place, self.storage))),
            columns: Columns::Printer(PrinterColumns::of(version)),
            scale: scale.map(scale_paths),
            custom: Some(self.custom(version)),
            blank: OnceLock::new(),
        }
    }

    /// Returns whether an object may have been stored under another schema than that of the requested version.
    fn stored_schema_may_differ(&self) -> bool {
        let differ = self.schemas.windows(2).any(|pair| !Arc::ptr_eq(&pair[0].1, &pair[1].1));
        self.object.generation() > 1 || differ
    }

    fn custom(&self, version: &Version) -> Custom {
        let fields = version.selectable_fields.iter().map(|f| f.json_path.trim_start_matches('.').to_owned());
        Custom {
            storage_version: self.schemas[self.storage].0.clone(),
            definition: self.object.name().unwrap_or_default().to_owned(),
            uid: self.installed.uid.clone(),
            terminating: self.installed.terminating,
            indexed: Arc::clone(&self.selectable_fields),
            selectable: fields.collect(),
            deprecation: version.deprecated.then(|| self.deprecation(version)),
            rules: version
                .schema()
                .and_then(|schema| Validator::new(kube_informer_cel::Schema::of_resource(schema))),
            published: publish(version),
        }
    }

    fn group_version<'v>(&'v self, version: &'v Version) -> GroupVersion<'v> {
        GroupVersion { group: &self.spec.group, version: &version.name }
    }

    fn deprecation(&self, version: &Version) -> String {
        version.deprecation_warning.clone().unwrap_or_else(|| {
            format!("{} {} is deprecated", self.group_version(version), self.installed.names.kind)
        })
    }
}

fn scale_paths(scale: &Scale) -> ScalePaths {
    ScalePaths {
        spec: pointer(&scale.spec_replicas_path).unwrap_or_default().into(),
        status: pointer(&scale.status_replicas_path).unwrap_or_default().into(),
        selector: ScaleSelector::Text(pointer(&scale.label_selector_path)),
        demands_count: true,
    }
}

/// Returns the schema to publish.
fn publish(version: &Version) -> Published {
    version.schema().map_or_else(|| Published::new(&json!({"type": "object"})), Published::new)
}
