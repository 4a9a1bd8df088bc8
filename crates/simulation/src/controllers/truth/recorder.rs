//! Records every commit of the store.

use super::{Child, SiteState, Truth};
use crate::controllers::totals::Fault;
use kube_embedded_apiserver::storage::{Change, Follower, MemoryStorage, Storage, Stored};
use serde_json::Value;
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// The annotation of a Lease with the replica that asked for it.
const PREFERRED: &str = "kube-informer/preferred-holder";

/// Follows the objects of one resource.
pub(in crate::controllers) struct Recorder {
    truth: Arc<Truth>,
    resource: Resource,
}

#[derive(Debug, Clone, Copy)]
enum Resource {
    Sites,
    Children,
    Leases,
}

/// Records every commit of the store from now on, while the result lives.
pub(in crate::controllers) async fn record(
    truth: &Arc<Truth>,
    storage: &MemoryStorage,
) -> Vec<Arc<Recorder>> {
    let resources = [
        ("/sim.example/sites/", Resource::Sites),
        ("/configmaps/", Resource::Children),
        ("/coordination.k8s.io/leases/", Resource::Leases),
    ];
    let mut recorders = Vec::new();
    for (prefix, resource) in resources {
        let recorder = Arc::new(Recorder { truth: Arc::clone(truth), resource });
        let follower: Arc<dyn Follower> = Arc::clone(&recorder) as _;
        let weak: Weak<dyn Follower> = Arc::downgrade(&follower);
        storage.follow(prefix, weak).await.expect("memory does not fail");
        recorders.push(recorder);
    }
    recorders
}

fn content(stored: &Stored) -> Value {
    let mut json = Vec::new();
    stored.document.write(None, stored.revision, &mut json);
    serde_json::from_slice(&json).expect("the store has JSON")
}

impl Recorder {
    fn lease(&self, stored: &Stored) {
        let lease = content(stored);
        let name = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let mut state = self.truth.lock();
        state.departures.lease_written(stored.name(), &lease);
        // One that was released for a replica is left to that one.
        if name.is_empty() && lease["metadata"]["annotations"][PREFERRED].is_null() {
            state.free.entry(stored.name().to_owned()).or_insert_with(Instant::now);
        } else {
            state.free.remove(stored.name());
        }
        if state.leases.get(stored.name()) == Some(&name) {
            return;
        }
        state.leases.insert(stored.name().to_owned(), name.clone());
        drop(state);
        self.truth.log.note(format_args!("lease {} is held by {name:?}", stored.name()));
        if !name.is_empty() {
            self.truth.record_fault(Fault::Moved);
        }
    }
}

impl Follower for Recorder {
    fn reset(&self, _revision: u64, _items: Vec<Arc<Stored>>) {}

    fn change(&self, change: &Arc<Change>) {
        let Some(stored) = change.current.as_ref().or(change.previous.as_ref()) else { return };
        match self.resource {
            Resource::Leases => self.lease(stored),
            Resource::Sites => {
                let current = change.current.as_deref().map(content);
                let current = current.as_ref().and_then(SiteState::parse);
                self.truth.site_changed(stored.name(), current, change.revision);
            }
            Resource::Children => {
                let current = change.current.as_deref().map(content);
                self.truth.child_changed(stored.name(), current.as_ref().and_then(Child::parse));
            }
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    fn lost(&self, _cause: &str) {}
}
