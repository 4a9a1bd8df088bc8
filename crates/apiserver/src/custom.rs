//! Custom resources: CRDs (`CustomResourceDefinition`), their schemas, and the resources they define.
//!
//! Once a CRD is established, [`resources`] converts it to entries of the registry. This module consists of pure functions of
//! CRDs and values. `controllers/custom_resource_definitions.rs` and `registry/rules.rs` call them, and `serving.rs` keeps the results.

mod allowed;
mod check;
mod coerce;
mod columns;
mod conditions;
mod definition;
mod embedded;
mod formats;
pub(crate) mod fuzzing;
mod json_path;
mod lists;
mod names;
mod path;
mod pattern;
mod props;
mod ratcheting;
mod resources;
mod rules;
mod schema;
mod validate;
mod versions;

pub(crate) use check::validate as validate_definition;
pub(crate) use check::validate_update as validate_definition_update;
pub(crate) use coerce::apply_defaults;
pub(crate) use coerce::prune;
pub(crate) use columns::PrinterColumns;
pub(crate) use conditions::Condition;
pub(crate) use conditions::ESTABLISHED;
pub(crate) use conditions::INSTALLING;
pub(crate) use conditions::NO_CONFLICTS;
pub(crate) use conditions::NOT_ACCEPTED;
pub(crate) use conditions::TERMINATING;
pub(crate) use conditions::holds;
pub(crate) use conditions::set as set_condition;
pub(crate) use definition::Names;
pub(crate) use names::AcceptedNames;
pub(crate) use resources::Installed;
pub(crate) use rules::default_definition;
pub(crate) use rules::definition_warnings;
pub(crate) use rules::prepare_definition;
pub(crate) use rules::prepare_definition_update;
pub(crate) use schema::Structural;
pub(crate) use validate::validate;
pub(crate) use versions::Versions;

/// Keeps a CRD until its custom resources are deleted.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

#[cfg(test)]
mod tests;
