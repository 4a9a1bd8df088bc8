//! Deleted sites that a replica may still be reconciling, until a Lease shows that none is.

use super::{State, Truth, Work};
use crate::controllers::site::NAMESPACE;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The annotation of a Lease with the progress of its holder.
const PROGRESS: &str = "kube-informer/shard-progress";
/// The name of the controller in it.
pub(in crate::controllers) const CONTROLLER: &str = "sites";

/// A site that was deleted, and that no Lease shows as released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Departure {
    uid: String,
    /// The Lease that its reconciles need.
    lease: String,
    /// That of the deletion.
    revision: u64,
    /// The processes that held the Lease at the deletion or later. They know by themselves what they reconcile.
    holders: BTreeSet<String>,
}

/// The departures of a world.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// By name.
    unreleased: BTreeMap<String, Vec<Departure>>,
    /// The revisions at which sites were created, by uid.
    created: BTreeMap<String, u64>,
}

impl Departures {
    pub(super) fn site_created(&mut self, uid: &str, revision: u64) {
        self.created.insert(uid.to_owned(), revision);
    }

    /// A Lease was written. Its progress releases departures for good: no reconcile of an object that was deleted at this version or
    /// before it is running, or will, except for the keys in it.
    pub(super) fn lease_written(&mut self, name: &str, lease: &Value) {
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let progress = lease["metadata"]["annotations"][PROGRESS].as_str().unwrap_or_default();
        let progress: Value = serde_json::from_str(progress).unwrap_or_default();
        let progress = &progress[CONTROLLER];
        let reached: Option<u64> = progress["version"].as_str().and_then(|version| version.parse().ok());
        let is_busy = |site: &str| {
            let busy = progress["busy"].as_array().into_iter().flatten().filter_map(Value::as_str);
            busy.into_iter().any(|key| key.strip_prefix(NAMESPACE) == Some(&format!("/{site}")))
        };
        self.unreleased.retain(|site, departures| {
            departures.retain_mut(|departure| {
                if departure.lease != name {
                    return true;
                }
                if !holder.is_empty() {
                    departure.holders.insert(holder.to_owned());
                }
                reached.is_none_or(|reached| reached < departure.revision) || is_busy(site)
            });
            !departures.is_empty()
        });
    }

    /// An earlier site of the same name that a process must not follow yet. A process whose cache lags may also start with a site that
    /// was deleted, and does not know later ones.
    pub(super) fn before(&self, site: &str, work: &Work) -> Option<Departure> {
        let created = self.created.get(&work.uid)?;
        let mut earlier = self.unreleased.get(site)?.iter().filter(|departure| departure.revision < *created);
        earlier.find(|departure| !departure.holders.contains(&work.process)).cloned()
    }
}

impl Truth {
    /// A site was deleted.
    pub(super) fn departed(&self, state: &mut State, site: &str, uid: &str, revision: u64) {
        let lease = self.settings.lease_of(uid);
        let holder = state.leases.get(&lease).filter(|holder| !holder.is_empty());
        let holders = holder.cloned().into_iter().collect();
        let departure = Departure { uid: uid.to_owned(), lease, revision, holders };
        state.departures.unreleased.entry(site.to_owned()).or_default().push(departure);
    }

    /// A reconcile of a site begins: the Leases must show that no other process reconciles an earlier object of this name, or will,
    /// unless this process has held the Lease of that object since.
    pub(super) fn check_departures(&self, site: &str, work: &Work, unreleased: Option<Departure>) {
        let Some(Departure { uid, lease, revision, .. }) = unreleased else { return };
        self.log.fail(format_args!(
            "{} starts with {site} ({}), although {lease} does not show that {uid}, deleted @{revision}, is released",
            work.process, work.uid
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A name whose first object was deleted at 20 in a shard that `old` holds, and exists again since 21.
    fn departures() -> Departures {
        let departure = Departure {
            uid: "first".to_owned(),
            lease: "sites-0".to_owned(),
            revision: 20,
            holders: BTreeSet::from(["old".to_owned()]),
        };
        let unreleased = BTreeMap::from([("a".to_owned(), vec![departure])]);
        let created = BTreeMap::from([("first".to_owned(), 10), ("second".to_owned(), 21)]);
        Departures { unreleased, created }
    }

    fn lease(holder: &str, version: &str, busy: &[&str]) -> Value {
        let progress = json!({CONTROLLER: {"version": version, "busy": busy}}).to_string();
        json!({"spec": {"holderIdentity": holder}, "metadata": {"annotations": {PROGRESS: progress}}})
    }

    fn may_start(departures: &Departures, process: &str, uid: &str) -> bool {
        let work = Work { id: 1, process: process.to_owned(), uid: uid.to_owned() };
        departures.before("a", &work).is_none()
    }

    #[test]
    fn a_new_object_waits_until_the_lease_of_the_old_one_shows_its_deletion() {
        let mut departures = departures();
        assert!(!may_start(&departures, "new", "second"));
        for (name, lease) in [
            ("sites-0", lease("old", "19", &[])),
            ("sites-0", lease("old", "20", &["default/a"])),
            ("sites-0", lease("", "", &[])),
            ("sites-1", lease("old", "20", &[])),
        ] {
            departures.lease_written(name, &lease);
            assert!(!may_start(&departures, "new", "second"), "{name} {lease}");
        }
        departures.lease_written("sites-0", &lease("old", "20", &["default/b"]));
        assert!(may_start(&departures, "new", "second"));
    }

    #[test]
    fn a_holder_of_the_old_shard_does_not_wait() {
        let mut departures = departures();
        assert!(may_start(&departures, "old", "second"));
        departures.lease_written("sites-0", &lease("new", "19", &[]));
        assert!(may_start(&departures, "new", "second"));
    }

    #[test]
    fn a_process_that_lags_does_not_wait_for_later_objects() {
        assert!(may_start(&departures(), "new", "first"));
    }
}
