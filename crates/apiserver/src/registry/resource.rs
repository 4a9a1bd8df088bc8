//! One resource in one version: its paths, and how its objects are decoded, defaulted, validated and shown.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use kube_informer_cel::Validator;
use serde_json::{Map, Value};

use super::Object;
use super::columns::Columns;
use super::conversion::Conversion;
use super::defaults;
use super::field_labels::{UnknownLabel, values};
use super::group_version::{Group, GroupVersion, Version};
use super::lifecycle::Lifecycle;
use super::metadata::{validate_metadata, validate_metadata_update};
use super::not_enforced::NotEnforced;
use super::rules::Rules;
use super::scale::ScalePaths;
use super::subresource::Subresource;
use crate::budget::{Budget, TooLarge};
use crate::custom::{self, Structural};
use crate::schema::{Type, write_zeros};
use crate::status::{FieldError, FieldErrors};
use crate::storage::TypeHead;
use crate::verb::Verb;
use crate::work::{Abandoned, Work};

/// One resource in one version: a row of discovery and everything a request to its URLs needs.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: Group,
    pub(crate) version: Version,
    pub(crate) kind: String,
    /// The kind of lists.
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [Verb],
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) lifecycle: Lifecycle,
    /// Whether reads are served from a watch cache; otherwise they go to the store.
    pub(crate) watch_cached: bool,
    /// The beginning of every encoded object of this kind.
    pub(crate) head: TypeHead,
    /// How objects are decoded and put together.
    pub(crate) schema: Schema,
    pub(crate) rules: &'static Rules,
    /// The promises of its objects that this server does not keep.
    pub(crate) not_enforced: Vec<&'static NotEnforced>,
    /// Present if objects are not shown as they are stored.
    pub(crate) conversion: Option<Conversion>,
    /// The columns of tables.
    pub(crate) columns: Columns,
    /// The fields of `/scale`.
    pub(crate) scale: Option<ScalePaths>,
    /// Present for custom resources.
    pub(crate) custom: Option<Custom>,
    /// Made by [`Resource::blank`] on its first call.
    pub(crate) blank: OnceLock<Option<Value>>,
}

/// The fields of a kind.
#[derive(Debug, Clone)]
pub(crate) enum Schema {
    /// Unknown: objects keep every field.
    Free,
    /// A type of the table of built-in types.
    Table(&'static Type),
    /// The schema of a custom resource definition.
    Custom(Arc<Structural>),
}

/// The part that only custom resources have.
#[derive(Debug)]
pub(crate) struct Custom {
    /// The name of the CRD.
    pub(crate) definition: String,
    /// The version in which objects are stored.
    pub(crate) storage_version: String,
    /// The uid of the CRD. A recreated CRD has another.
    pub(crate) uid: String,
    /// The CRD is being deleted: no objects can be created.
    pub(crate) terminating: bool,
    /// Labels of field selectors, and where their values are; those of all versions, because they share one store.
    pub(crate) indexed: Arc<[(String, String)]>,
    /// The labels of this version.
    pub(crate) selectable: Vec<String>,
    /// The warning about a deprecated version.
    pub(crate) deprecation: Option<String>,
    /// The CEL rules of the schema, if it has any.
    pub(crate) rules: Option<Validator>,
    pub(crate) published: Published,
}

/// The schema of a custom kind as OpenAPI shows it. Kept as text, a fraction of the size of its value: some have megabytes.
#[derive(Debug)]
pub(crate) struct Published {
    text: Box<str>,
    /// Differs when the text does.
    pub(crate) hash: u64,
}

impl Published {
    pub(crate) fn new(schema: &Value) -> Self {
        let text = schema.to_string();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self { text: text.into_boxed_str(), hash: hasher.finish() }
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// How much longer defaults of built-in resources are in JSON than in protobuf, at most: `"protocol":"TCP"` is 5 bytes there.
const JSON_TO_PROTOBUF: usize = 8;

const TERMINATING_VERBS: &[Verb] =
    &[Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch];

impl Resource {
    /// `apps/v1`, or `v1` in the core group.
    pub(crate) fn api_version(&self) -> String {
        self.group_version().to_string()
    }

    pub(crate) fn group_version(&self) -> GroupVersion<'_> {
        GroupVersion { group: self.group.as_str(), version: self.version.as_str() }
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub(crate) fn qualified(&self) -> String {
        self.group.qualify(&self.plural)
    }

    /// The prefix of the storage keys of all objects of this resource, with its closing slash.
    pub(crate) fn storage_prefix(&self) -> String {
        let own = (self.group_version(), self.plural.as_str());
        let (GroupVersion { group, .. }, plural) =
            self.conversion.as_ref().and_then(Conversion::stored_as).unwrap_or(own);
        match group {
            "" => format!("/{plural}/"),
            group => format!("/{group}/{plural}/"),
        }
    }

    /// The version in which objects are stored.
    pub(crate) fn storage_version(&self) -> GroupVersion<'_> {
        match (&self.custom, self.conversion.as_ref().and_then(Conversion::stored_as)) {
            (Some(custom), _) => GroupVersion { version: &custom.storage_version, ..self.group_version() },
            (None, Some((stored, _))) => stored,
            (None, None) => self.group_version(),
        }
    }

    /// The storage key of one object.
    pub(crate) fn storage_key(&self, namespace: Option<&str>, name: &str) -> String {
        let prefix = self.storage_prefix();
        match namespace {
            Some(namespace) if self.namespaced => format!("{prefix}{namespace}/{name}"),
            _ => format!("{prefix}{name}"),
        }
    }

    pub(crate) fn has_subresource(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// Whether objects are stored; reviews and bindings are not.
    pub(crate) fn is_stored(&self) -> bool {
        !matches!(self.lifecycle, Lifecycle::Review(_) | Lifecycle::Binding)
    }

    /// Whether the store of its objects is its own, and not that of another kind.
    pub(crate) fn owns_store(&self) -> bool {
        self.conversion.as_ref().and_then(Conversion::stored_as).is_none()
    }

    pub(crate) fn has_verb(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// The verbs that discovery shows.
    pub(crate) fn advertised_verbs(&self) -> &'static [Verb] {
        if self.is_terminating() { TERMINATING_VERBS } else { self.verbs }
    }

    pub(crate) fn is_terminating(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.terminating)
    }

    /// The type of the table, for kinds that have one.
    pub(crate) fn table(&self) -> Option<&'static Type> {
        match self.schema {
            Schema::Table(shape) => Some(shape),
            _ => None,
        }
    }

    /// Sets defaults, as long as the object can still be stored in `limit` bytes.
    pub(crate) fn default(&self, object: &mut Object, limit: usize) -> Result<(), TooLarge> {
        // The limit of a built-in resource is on its protobuf form, of which JSON is a multiple.
        let factor = if self.custom.is_some() { 1 } else { JSON_TO_PROTOBUF };
        let mut budget = Budget::new(limit.saturating_mul(factor));
        defaults::within(&mut budget, || (self.rules.default)(object))?;
        match &self.schema {
            Schema::Table(shape) => write_zeros(shape, object.root_mut(), &mut budget),
            Schema::Custom(schema) => custom::apply_defaults(schema, object.root_mut(), &mut budget),
            Schema::Free => Ok(()),
        }
    }

    /// An object with only zero values, or `None` if the fields are not known.
    pub(crate) fn blank(&self) -> Option<&Value> {
        let make = || {
            let mut fields = Map::new();
            write_zeros(self.table()?, &mut fields, &mut Budget::new(usize::MAX)).ok()?;
            Some(Value::Object(fields))
        };
        self.blank.get_or_init(make).as_ref()
    }

    /// The warning about a deprecated kind or version.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        match &self.custom {
            Some(custom) => custom.deprecation.as_deref(),
            None => self.rules.deprecation,
        }
    }

    /// The warnings about a valid object that is new, or that replaces `old`.
    pub(crate) fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.not_enforced.iter().filter_map(|promise| promise.warning(&self.kind, object)).collect();
        warnings.extend((self.rules.warn)(object, old));
        warnings
    }

    /// The errors of a new object.
    ///
    /// # Errors
    ///
    /// The work is abandoned, or its CEL rules cost more than the [allowance](Work::rule_allowance).
    pub(crate) fn validate(&self, object: &Object, work: &Work) -> Result<FieldErrors, Abandoned> {
        let mut errors = validate_metadata(self, object);
        errors.extend((self.rules.validate)(object));
        errors.extend((self.rules.validate_new)(object));
        errors.extend(self.schema_faults(object, None));
        self.check_rules(object, None, &mut errors, work)?;
        Ok(errors)
    }

    /// The errors of an object that was `old`, and the warnings about it. Schema errors of values that did not change are ignored.
    ///
    /// # Errors
    ///
    /// Those of [`Resource::validate`].
    pub(crate) fn validate_update(
        &self,
        object: &Object,
        old: &Object,
        work: &Work,
    ) -> Result<(FieldErrors, Vec<String>), Abandoned> {
        let mut errors = validate_metadata(self, object);
        errors.extend(validate_metadata_update(object, old));
        errors.extend((self.rules.validate)(object));
        errors.extend(self.schema_faults(object, Some(old)));
        let warnings = self.check_rules(object, Some(old), &mut errors, work)?;
        Ok((errors, warnings))
    }

    /// Evaluates the CEL rules of a custom resource, unless it has errors on which they rely. Returns the warnings about invalid values
    /// that did not change.
    fn check_rules(
        &self,
        object: &Object,
        old: Option<&Object>,
        errors: &mut FieldErrors,
        work: &Work,
    ) -> Result<Vec<String>, Abandoned> {
        work.check()?;
        let Some(rules) = self.custom.as_ref().and_then(|custom| custom.rules.as_ref()) else {
            return Ok(Vec::new());
        };
        if errors.iter().any(FieldError::blocks_rules) {
            errors.push(FieldError::rules_not_checked());
            return Ok(Vec::new());
        }
        let (new, old) = (object.value(), old.map(Object::value));
        let verdict = match work.rule_allowance() {
            Some(allowance) => rules.validate_within(new, old, allowance).ok_or_else(|| work.postpone())?,
            None => rules.validate(new, old),
        };
        errors.extend(verdict.errors.iter().map(FieldError::of_rule));
        Ok(verdict.warnings.iter().map(|problem| FieldError::of_rule(problem).text()).collect())
    }

    /// Whether objects have CEL rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.rules.is_some())
    }

    fn schema_faults(&self, object: &Object, old: Option<&Object>) -> FieldErrors {
        match &self.schema {
            Schema::Custom(schema) => custom::validate(schema, object.value(), old.map(Object::value)),
            _ => FieldErrors::new(),
        }
    }

    /// The name under which the values of a field label are stored.
    pub(crate) fn field_label<'l>(&self, label: &'l str) -> Result<&'l str, UnknownLabel> {
        if self.custom.as_ref().is_some_and(|custom| custom.selectable.iter().any(|s| s == label)) {
            return Ok(label);
        }
        self.rules.fields.resolve(label, self.namespaced)
    }

    /// The values for field selectors.
    pub(crate) fn field_values<'r>(&'r self, object: &Object) -> Vec<(&'r str, String)> {
        match &self.custom {
            Some(custom) => values(&custom.indexed, object),
            None => self.rules.fields.values(object),
        }
    }
}
