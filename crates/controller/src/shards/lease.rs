//! The annotations that replicas write into the Lease of a shard.
//!
//! They are annotations, because API servers drop `spec.preferredHolder` unless coordinated leader election is enabled, and reject it
//! without a strategy.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::ObjectMeta;
use kube_informer::{ObjectKey, ResourceVersion};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The label of all Leases of one division into shards. Its value is their common name.
pub(super) const NAME_LABEL: &str = "kube-informer/shards";
/// The annotation with the replica that asks for the shard.
pub(super) const PREFERRED: &str = "kube-informer/preferred-holder";
/// The annotation with the progress of the holder.
const PROGRESS: &str = "kube-informer/shard-progress";

/// The progress of the reconciles of a controller in a shard.
///
/// No reconcile runs, or will run, for an object of the shard that was deleted at `version` or before, except for the keys in `busy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyProgress {
    pub(super) version: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) busy: BTreeSet<String>,
}

/// The progress of all controllers, by name.
pub(super) type Progress = BTreeMap<String, KeyProgress>;

impl KeyProgress {
    /// Whether no reconcile runs, or will run, for an object of this key that was deleted at `version`.
    pub(super) fn has_released(&self, key: &ObjectKey, version: &ResourceVersion) -> bool {
        self.has_reached(version) && !self.busy.contains(&key.to_string())
    }

    pub(super) fn has_reached(&self, version: &ResourceVersion) -> bool {
        ResourceVersion::from(self.version.as_str()) >= *version
    }
}

/// A Lease as it was last seen.
#[derive(Debug, Clone)]
pub(super) struct ShardLease {
    pub(super) spec: LeaseSpec,
    pub(super) preferred: String,
    pub(super) progress: Progress,
    pub(super) version: ResourceVersion,
}

impl ShardLease {
    pub(super) fn new(lease: &Lease) -> Self {
        let annotation = |name| lease.metadata.annotations.as_ref().and_then(|all| all.get(name)).cloned();
        let progress = annotation(PROGRESS).and_then(|text| serde_json::from_str(&text).ok());
        Self {
            spec: lease.spec.clone().unwrap_or_default(),
            preferred: annotation(PREFERRED).unwrap_or_default(),
            progress: progress.unwrap_or_default(),
            version: ResourceVersion::from(lease.metadata.resource_version.as_deref().unwrap_or_default()),
        }
    }

    pub(super) fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }

    pub(super) fn duration(&self) -> Duration {
        let seconds = self.spec.lease_duration_seconds.unwrap_or_default();
        Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }
}

/// Completes the metadata of a Lease before its holder writes it. A replica that takes the shard removes the request for it.
pub(super) fn annotate(metadata: &mut ObjectMeta, progress: &Progress, taking: bool) {
    let annotations = metadata.annotations.get_or_insert_default();
    // Maps of texts can be encoded.
    annotations.insert(PROGRESS.to_owned(), serde_json::to_string(progress).unwrap_or_default());
    if taking {
        annotations.remove(PREFERRED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_holder_writes_is_what_others_read() {
        let busy = BTreeSet::from(["ns/busy".to_owned()]);
        let progress = Progress::from([("c".to_owned(), KeyProgress { version: "70".to_owned(), busy })]);
        let mut lease = Lease::default();
        let asked = BTreeMap::from([(PREFERRED.to_owned(), "other".to_owned())]);
        lease.metadata.annotations = Some(asked);
        annotate(&mut lease.metadata, &progress, false);
        let read = ShardLease::new(&lease);
        assert_eq!((read.preferred.as_str(), &read.progress), ("other", &progress));
        annotate(&mut lease.metadata, &progress, true);
        assert_eq!(ShardLease::new(&lease).preferred, "");
        let (key, other) = (ObjectKey::namespaced("ns", "busy"), ObjectKey::namespaced("ns", "other"));
        let progress = &read.progress["c"];
        assert!(progress.has_released(&other, &70.into()) && !progress.has_released(&other, &71.into()));
        assert!(!progress.has_released(&key, &1.into()));
    }

    #[test]
    fn an_annotation_that_cannot_be_read_is_no_progress() {
        let mut lease = Lease::default();
        lease.metadata.annotations = Some(BTreeMap::from([(PROGRESS.to_owned(), "{".to_owned())]));
        assert!(ShardLease::new(&lease).progress.is_empty());
    }
}
