//! What becomes of a server: it goes down, comes back, forgets, is restored, and loses the kind.

use super::{Cluster, Flavor, Recorder, template};
use crate::{
    network::Upstream,
    totals::Fault,
    trouble::{Condition, Trouble},
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

/// Stores that are kept for a restore.
const BACKUPS: usize = 12;
/// A store is kept about every so many writes.
const BACKUP_EVERY: u8 = 6;
/// As many versions as there may ever be.
const ANY: u64 = 1 << 40;

/// What a list of the server shows.
#[derive(Deserialize)]
struct Listed {
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
    /// Everything that the store commits from now on is taken down.
    pub(super) async fn follow(&self) {
        let recorder = Recorder::new(&self.truth);
        let follower: Arc<dyn Follower> = Arc::clone(&recorder) as _;
        let weak: Weak<dyn Follower> = Arc::downgrade(&follower);
        let storage = self.lock().storage.clone();
        if storage.follow(self.flavor.prefix(), weak).await.is_err() {
            self.log.fail("the store cannot be followed");
        }
        self.lock()._recorder = recorder;
    }

    /// A server on the store, which the network leads to.
    pub(super) async fn start(&self) {
        let (storage, seed) = {
            let mut state = self.lock();
            state.starts += 1;
            (state.storage.clone(), self.seed ^ state.starts)
        };
        let server = template::serve(storage, seed).await;
        self.network.lead_to(Some(Upstream::new(&server)));
        self.lock().server = Some(server);
    }

    /// The server is gone; its connections break.
    fn stop(&self) {
        self.network.lead_to(None);
        self.lock().server = None;
    }

    /// Keeps the store as it is, now and then.
    pub(super) fn backup(&self) {
        let version = self.truth.lock().history.version;
        let absent = self.network.trouble(|trouble| trouble.has(Condition::Absent));
        let mut state = self.lock();
        if absent || state.rng.u8(0..BACKUP_EVERY) > 0 {
            return;
        }
        let backup = state.storage.backup();
        state.backups.push_back((version, backup));
        if state.backups.len() > BACKUPS {
            state.backups.pop_front();
        }
    }

    /// The server comes back on the same store, with its caches empty of any past, perhaps after a while.
    pub(crate) async fn restart(&self, pick: u64) {
        self.log.strike(Fault::Restarted);
        self.stop();
        if pick.is_multiple_of(3) {
            tokio::time::sleep(std::time::Duration::from_millis(pick / 3 % 3_000)).await;
        }
        self.start().await;
        self.restore_lag().await;
    }

    /// The store goes back to what it was, and nobody is told.
    pub(crate) async fn restore(&self, back: u64) {
        let (backup, before) = {
            let known = self.truth.lock();
            let wanted = known.history.version.saturating_sub(back);
            let state = self.lock();
            let chosen = state.backups.iter().rev().find(|(version, _)| *version <= wanted);
            (chosen.cloned(), known.history.version)
        };
        let Some((version, backup)) = backup else { return };
        self.stop();
        if !self.truth.lock().history.restore(version) {
            return self.log.fail(format_args!("there was no version {version} to go back to"));
        }
        self.log.strike(Fault::Restored);
        self.log.note(format_args!("restored from @{before} to @{version}"));
        {
            let mut state = self.lock();
            state.storage = backup.backup();
            state.backups.clear();
        }
        self.network.trouble(|trouble| trouble.set(Condition::Absent, false));
        self.follow().await;
        self.start().await;
        self.restore_lag().await;
    }

    /// The past is forgotten: by the store, by the caches, or by both.
    pub(crate) async fn compact(&self, pick: u64) {
        let Some(server) = self.server() else { return };
        if !pick.is_multiple_of(3) {
            self.log.strike(Fault::Compacted);
            if server.faults().compact().await.is_err() {
                self.log.fail("the store cannot be compacted");
            }
        }
        if !pick.is_multiple_of(2) {
            self.forget_window().await;
        }
    }

    async fn forget_window(&self) {
        let Some(server) = self.server() else { return };
        self.log.strike(Fault::WindowForgotten);
        let plural = self.flavor.kind().plural;
        if server.faults().forget_window(Some(&plural)).await.is_err() {
            self.log.fail("the caches cannot be filled");
        }
    }

    /// A condition begins or ends.
    pub(crate) async fn set(&self, condition: Condition, on: bool) {
        let had = self.network.trouble(|trouble| trouble.has(condition));
        match condition {
            Condition::Absent if self.flavor == Flavor::Custom => self.set_kind(!on, had).await,
            Condition::Lagging => {
                self.network.trouble(|trouble| trouble.set(condition, on));
                if on && !had {
                    self.log.strike(Fault::Lagging);
                }
                self.restore_lag().await;
            }
            condition => self.network.trouble(|trouble| trouble.set(condition, on)),
        }
    }

    async fn restore_lag(&self) {
        let Some(server) = self.server() else { return };
        let lagging = self.network.trouble(|trouble| trouble.has(Condition::Lagging));
        let plural = self.flavor.kind().plural;
        if server.faults().lag(Some(&plural), lagging).await.is_err() {
            self.log.fail("the caches cannot be filled");
        }
    }

    /// The definition of the kind is made again, or deleted with all objects.
    async fn set_kind(&self, present: bool, absent: bool) {
        if present != absent {
            return;
        }
        // While somebody has still to find out that the store was restored, nobody may be kept from looking.
        if !present && self.truth.lock().must_wait(ANY) {
            return;
        }
        let request = match present {
            true => super::writing::send(
                Method::POST,
                template::DEFINITIONS,
                "application/json",
                &template::definition(),
            ),
            false => {
                self.log.strike(Fault::KindRemoved);
                let path = format!("{}/things.sim.example", template::DEFINITIONS);
                super::writing::send(Method::DELETE, &path, "application/json", &json!({}))
            }
        };
        // From now on nobody gets any further, so that it is the condition that is counted.
        self.network.trouble(|trouble| trouble.set(Condition::Absent, !present));
        if self.write(request).await.is_none() {
            self.log.fail(format_args!("the definition cannot be made or deleted, present: {present}"));
        }
        self.restore_lag().await;
    }

    /// Everything that is in the way ends. Connections that are dead stay dead.
    pub(crate) async fn heal(&self) {
        if self.server().is_none() {
            self.start().await;
        }
        self.set(Condition::Lagging, false).await;
        self.set(Condition::Absent, false).await;
        self.network.trouble(Trouble::heal);
    }

    /// The server lists what its store took down.
    pub(crate) async fn check(&self) {
        let Some(server) = self.server() else { return };
        let kind = self.flavor.kind();
        let path = match self.flavor {
            Flavor::BuiltIn => format!("/api/v1/{}", kind.plural),
            Flavor::Custom => format!("/apis/{}/{}", kind.api_version(), kind.plural),
        };
        let request = Request::get(path).body(Vec::new().into()).expect("a path of plain text");
        let Ok(response) = server.client().send(request).await else {
            return self.log.fail("the server does not answer a list");
        };
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let Ok(listed) = serde_json::from_slice::<Listed>(&body) else {
            return self.log.fail(format_args!("the server lists {}", String::from_utf8_lossy(&body)));
        };
        let known = self.truth.lock();
        let is =
            known.history.current().values().map(|write| (write.key.clone(), (write.uid, write.version)));
        let shown: BTreeMap<_, _> = listed
            .items
            .iter()
            .map(|Item { metadata }| {
                let key = ObjectKey::namespaced(metadata.namespace.as_str(), metadata.name.as_str());
                (key, (metadata.uid.as_str().into(), metadata.resource_version.parse().unwrap_or(0)))
            })
            .collect();
        if is.collect::<BTreeMap<_, _>>() != shown {
            self.log.fail(format_args!("the server lists {}", String::from_utf8_lossy(&body)));
        }
    }

    /// Nobody needs the server any more.
    pub(crate) fn end(&self) {
        self.stop();
    }
}
