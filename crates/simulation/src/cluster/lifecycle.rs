//! Restarts, restores and compactions of the server, and deletion of the CRD.

use super::{Cluster, Recorder, ResourceType, json_request, template};
use crate::{
    faults::{Condition, FaultInjector},
    network::Upstream,
    totals::Fault,
};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_embedded_apiserver::storage::{Follower, Storage};
use kube_informer::ObjectKey;
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

/// Number of backups that are kept.
const MAX_BACKUPS: usize = 12;
/// Average number of writes between two backups.
const BACKUP_EVERY: u8 = 6;
/// More versions than a world can have.
const ANY_VERSIONS: u64 = 1 << 40;

/// A list of the server.
#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Identity,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

impl Cluster {
    /// Records every commit of the store from now on.
    pub(super) async fn record_history(&self) {
        let recorder = Recorder::new(&self.truth);
        let follower: Arc<dyn Follower> = Arc::clone(&recorder) as _;
        let weak: Weak<dyn Follower> = Arc::downgrade(&follower);
        let storage = self.lock().storage.clone();
        if storage.follow(self.resource.prefix(), weak).await.is_err() {
            self.log.fail("cannot follow the store");
        }
        self.lock()._recorder = recorder;
    }

    /// Starts a server on the store and connects the network to it.
    pub(super) async fn start(&self) {
        let (storage, seed) = {
            let mut state = self.lock();
            state.starts += 1;
            (state.storage.clone(), self.seed ^ state.starts)
        };
        let server = template::serve(storage, seed).await;
        self.network.set_upstream(Some(Upstream::new(&server)));
        self.lock().server = Some(server);
    }

    /// Stops the server; its connections are reset.
    fn stop(&self) {
        self.network.set_upstream(None);
        self.lock().server = None;
    }

    /// Backs up the store after some of the writes.
    pub(super) fn backup(&self) {
        let version = self.truth.lock().history.version;
        let absent = self.network.faults(|faults| faults.has(Condition::Absent));
        let mut state = self.lock();
        if absent || state.rng.u8(0..BACKUP_EVERY) > 0 {
            return;
        }
        let backup = state.storage.backup();
        state.backups.push_back((version, backup));
        if state.backups.len() > MAX_BACKUPS {
            state.backups.pop_front();
        }
    }

    /// Restarts the server on the same store, sometimes after a pause. Its watch caches have no history then.
    pub(crate) async fn restart(&self, pick: u64) {
        self.log.record_fault(Fault::Restarted);
        self.stop();
        if pick.is_multiple_of(3) {
            tokio::time::sleep(std::time::Duration::from_millis(pick / 3 % 3_000)).await;
        }
        self.start().await;
        self.apply_lag().await;
    }

    /// Restores the newest backup that is at least `back` versions old. Clients are not notified.
    pub(crate) async fn restore(&self, back: u64) {
        let (backup, before) = {
            let truth = self.truth.lock();
            let wanted = truth.history.version.saturating_sub(back);
            let state = self.lock();
            let chosen = state.backups.iter().rev().find(|(version, _)| *version <= wanted);
            (chosen.cloned(), truth.history.version)
        };
        let Some((version, backup)) = backup else { return };
        self.stop();
        if !self.truth.lock().history.restore(version) {
            return self.log.fail(format_args!("the history has no version {version} to restore"));
        }
        self.log.record_fault(Fault::Restored);
        self.log.note(format_args!("restored from @{before} to @{version}"));
        {
            let mut state = self.lock();
            state.storage = backup.backup();
            state.backups.clear();
        }
        self.network.faults(|faults| faults.set(Condition::Absent, false));
        self.record_history().await;
        self.start().await;
        self.apply_lag().await;
    }

    /// Compacts the store, empties the windows of the watch caches, or both.
    pub(crate) async fn compact(&self, pick: u64) {
        let Some(server) = self.server() else { return };
        if !pick.is_multiple_of(3) {
            self.log.record_fault(Fault::Compacted);
            if server.faults().compact().await.is_err() {
                self.log.fail("cannot compact the store");
            }
        }
        if !pick.is_multiple_of(2) {
            self.forget_window().await;
        }
    }

    async fn forget_window(&self) {
        let Some(server) = self.server() else { return };
        self.log.record_fault(Fault::WindowForgotten);
        let plural = self.resource.kind().plural;
        if server.faults().forget_window(Some(&plural)).await.is_err() {
            self.log.fail("cannot reinitialize the watch caches");
        }
    }

    pub(crate) async fn set(&self, condition: Condition, on: bool) {
        let had = self.network.faults(|faults| faults.has(condition));
        match condition {
            Condition::Absent if self.resource == ResourceType::Custom => self.set_crd(!on, had).await,
            Condition::Lagging => {
                self.network.faults(|faults| faults.set(condition, on));
                if on && !had {
                    self.log.record_fault(Fault::Lagging);
                }
                self.apply_lag().await;
            }
            condition => self.network.faults(|faults| faults.set(condition, on)),
        }
    }

    /// Makes the watch caches of the current server lag, if that condition is on.
    async fn apply_lag(&self) {
        let Some(server) = self.server() else { return };
        let lagging = self.network.faults(|faults| faults.has(Condition::Lagging));
        let plural = self.resource.kind().plural;
        if server.faults().lag(Some(&plural), lagging).await.is_err() {
            self.log.fail("cannot make the watch caches lag");
        }
    }

    /// Creates the CRD, or deletes it with all objects.
    async fn set_crd(&self, present: bool, absent: bool) {
        if present != absent {
            return;
        }
        // Clients that have not noticed a restore must be able to list.
        if !present && self.truth.lock().would_hide_restore(ANY_VERSIONS) {
            return;
        }
        let request = match present {
            true => json_request(Method::POST, template::CRDS, "application/json", &template::crd()),
            false => {
                self.log.record_fault(Fault::KindRemoved);
                let path = format!("{}/things.sim.example", template::CRDS);
                json_request(Method::DELETE, &path, "application/json", &json!({}))
            }
        };
        // The network rejects requests from now on, so that the condition is counted and not the 404 of the server.
        self.network.faults(|faults| faults.set(Condition::Absent, !present));
        if self.write(request).await.is_none() {
            self.log.fail(format_args!("cannot create or delete the CRD, present: {present}"));
        }
        self.apply_lag().await;
    }

    /// Ends all faults. Streams that are broken or stalled stay so.
    pub(crate) async fn clear_faults(&self) {
        if self.server().is_none() {
            self.start().await;
        }
        self.set(Condition::Lagging, false).await;
        self.set(Condition::Absent, false).await;
        self.network.faults(FaultInjector::clear);
    }

    /// Checks that the server lists the newest state of the history.
    pub(crate) async fn check(&self) {
        let Some(server) = self.server() else { return };
        let kind = self.resource.kind();
        let path = match self.resource {
            ResourceType::BuiltIn => format!("/api/v1/{}", kind.plural),
            ResourceType::Custom => format!("/apis/{}/{}", kind.api_version(), kind.plural),
        };
        let request = Request::get(path).body(Vec::new().into()).expect("a valid path");
        let Ok(response) = server.client().send(request).await else {
            return self.log.fail("the server does not respond to a list");
        };
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let Ok(list) = serde_json::from_slice::<List>(&body) else {
            return self.log.fail(format_args!(
                "the list of the server is malformed: {}",
                String::from_utf8_lossy(&body)
            ));
        };
        let truth = self.truth.lock();
        let expected =
            truth.history.current().values().map(|write| (write.key.clone(), (write.uid, write.version)));
        let listed: BTreeMap<_, _> = list
            .items
            .iter()
            .map(|Item { metadata }| {
                let key = ObjectKey::namespaced(metadata.namespace.as_str(), metadata.name.as_str());
                (key, (metadata.uid.as_str().into(), metadata.resource_version.parse().unwrap_or(0)))
            })
            .collect();
        if expected.collect::<BTreeMap<_, _>>() != listed {
            let body = String::from_utf8_lossy(&body);
            self.log.fail(format_args!("the list of the server is not the newest state: {body}"));
        }
    }

    pub(crate) fn shut_down(&self) {
        self.stop();
    }
}
