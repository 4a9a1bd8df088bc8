//! The custom resource of the operator, and its children.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube_informer::Object;
use kube_informer_controller::{BoxError, controlled_by};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The namespace of everything in a world.
pub(super) const NAMESPACE: &str = "default";
/// The finalizer of the operator.
pub(super) const FINALIZER: &str = "sim.example/account";
/// A finalizer of a user.
pub(super) const USER_FINALIZER: &str = "sim.example/user";
/// The label of a child with its number among the children of its site.
pub(super) const SLOT: &str = "sim.example/slot";

/// The desired state of a site.
#[derive(kube::CustomResource, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[kube(
    group = "sim.example",
    version = "v1",
    kind = "Site",
    plural = "sites",
    namespaced,
    status = "SiteStatus",
    schema = "disabled"
)]
pub(super) struct SiteSpec {
    /// The number of children.
    pub(super) children: u32,
    /// The content of the children, and of the account.
    pub(super) value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SiteStatus {
    pub(super) observed_generation: Option<i64>,
    pub(super) children: u32,
}

/// A child of a site.
pub(super) fn child(
    site: &Object<Site>,
    name: String,
    slot: u32,
    value: &str,
) -> Result<ConfigMap, BoxError> {
    let labels = BTreeMap::from([(SLOT.to_owned(), slot.to_string())]);
    let child = ConfigMap {
        metadata: ObjectMeta { name: Some(name), labels: Some(labels), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    };
    Ok(controlled_by(child, site)?)
}
