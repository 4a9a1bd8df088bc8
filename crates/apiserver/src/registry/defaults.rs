//! What the server fills in: the defaults a client may rely on, and the first status of a new object.

mod networking;
mod objects;
mod pod;
mod policies;
mod services;
#[cfg(test)]
mod tests;
mod workloads;

use serde_json::{Map, Value};

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
pub(super) use self::objects::new_node;
pub(super) use self::objects::new_volume;
pub(super) use self::objects::secret;
pub(super) use self::objects::volume;
pub(super) use self::pod::new_pod;
pub(super) use self::pod::pod;
pub(super) use self::policies::autoscaler;
pub(super) use self::policies::binding;
pub(super) use self::policies::csi_driver;
pub(super) use self::policies::limit_range;
pub(super) use self::policies::priority_class;
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

/// Sets a field unless the client did.
fn default_to(map: &mut Map<String, Value>, field: &str, value: impl Into<Value>) {
    map.entry(field).or_insert_with(|| value.into());
}

/// The object under a field, made if it is missing.
fn child<'m>(map: &'m mut Map<String, Value>, field: &str) -> &'m mut Map<String, Value> {
    let value = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// The objects in a list field.
fn each<'m>(
    map: &'m mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'m mut Map<String, Value>> {
    map.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
