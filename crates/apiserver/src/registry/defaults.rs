//! Defaults, and the initial status of new objects.

mod certificates;
mod networking;
mod objects;
mod pod;
mod policies;
mod services;
#[cfg(test)]
mod tests;
mod workloads;

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::budget::{Budget, TooLarge, field_len};

pub(super) use self::certificates::keep_spec;
pub(super) use self::certificates::signing_request_conditions;
pub(super) use self::certificates::signing_request_creator;
pub(super) use self::networking::admission_policy;
pub(super) use self::networking::endpoint_slice;
pub(super) use self::networking::endpoints;
pub(super) use self::networking::ingress_class;
pub(super) use self::networking::network_policy;
pub(super) use self::networking::webhooks;
pub(super) use self::objects::claim;
pub(super) use self::objects::keep_namespace_finalizers;
pub(super) use self::objects::namespace;
pub(super) use self::objects::new_claim;
pub(super) use self::objects::new_namespace;
pub(super) use self::objects::new_volume;
pub(super) use self::objects::secret;
pub(super) use self::objects::volume;
pub(super) use self::pod::new_pod;
pub(super) use self::pod::pod;
pub(crate) use self::pod::quality_of_service;
pub(super) use self::policies::api_service;
pub(super) use self::policies::autoscaler;
pub(super) use self::policies::autoscaler_v1;
pub(super) use self::policies::binding;
pub(super) use self::policies::csi_driver;
pub(super) use self::policies::limit_range;
pub(super) use self::policies::priority_class;
pub(super) use self::policies::resource_claim;
pub(super) use self::policies::resource_claim_template;
pub(super) use self::policies::storage_class;
pub(super) use self::services::new_service;
pub(super) use self::services::service;
pub(super) use self::services::settle_service;
pub(super) use self::workloads::cron_job;
pub(super) use self::workloads::daemon_set;
pub(super) use self::workloads::deployment;
pub(super) use self::workloads::job;
pub(super) use self::workloads::keep_template_generation;
pub(super) use self::workloads::new_daemon_set;
pub(super) use self::workloads::new_job;
pub(super) use self::workloads::pod_template;
pub(super) use self::workloads::replica_set;
pub(super) use self::workloads::replication_controller;
pub(super) use self::workloads::stateful_set;

thread_local! {
    /// The rest of the budget of the object that this thread fills in. The functions of this module, one for each kind, know
    /// nothing of it but that [`each`] ends early.
    static BUDGET: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs a function of this module. It ends soon after what it adds exceeds the budget.
pub(super) fn within(budget: &mut Budget, fill: impl FnOnce()) -> Result<(), TooLarge> {
    BUDGET.set(budget.left());
    fill();
    let left = BUDGET.replace(usize::MAX);
    if left == 0 { budget.spend(usize::MAX) } else { budget.spend(budget.left() - left) }
}

fn spend(bytes: usize) {
    BUDGET.set(BUDGET.get().saturating_sub(bytes));
}

/// Sets a field unless the client did.
fn default_to(map: &mut Map<String, Value>, field: &str, value: impl Into<Value>) {
    map.entry(field).or_insert_with(|| {
        let value = value.into();
        spend(field_len(field, &value));
        value
    });
}

/// The object under a field, made if it is missing.
fn child<'m>(map: &'m mut Map<String, Value>, field: &str) -> &'m mut Map<String, Value> {
    let value = map.entry(field).or_insert_with(|| {
        spend(field.len() + 6);
        Value::Object(Map::new())
    });
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// The objects in a list field, until the budget is spent.
fn each<'m>(
    map: &'m mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'m mut Map<String, Value>> {
    let list = map.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
    list.take_while(|_| BUDGET.get() > 0).filter_map(Value::as_object_mut)
}
