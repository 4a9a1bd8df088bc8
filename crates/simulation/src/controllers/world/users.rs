//! The users of a cluster: they create, change and delete sites and children, and they collect garbage.

use crate::controllers::{
    site::{NAMESPACE, Site, SiteSpec, USER_FINALIZER},
    totals::Fault,
    truth::Truth,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::LocalServer;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::mpsc;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// The largest number of children of a site.
const MAX_CHILDREN: u64 = 3;

/// The users. They have a server of their own on the same store, without faults.
pub(super) struct Users {
    truth: Arc<Truth>,
    sites: Api<Site>,
    children: Api<ConfigMap>,
    /// Number of contents that were written.
    written: Arc<AtomicU64>,
    _server: LocalServer,
}

impl Users {
    pub(super) fn new(
        truth: &Arc<Truth>,
        server: LocalServer,
        mut gone: mpsc::UnboundedReceiver<String>,
    ) -> Self {
        let client = server.client();
        let sites: Api<Site> = Api::namespaced(client.clone(), NAMESPACE);
        let children = Api::namespaced(client, NAMESPACE);
        let written = Arc::new(AtomicU64::new(0));
        let (truth, again, numbers) = (Arc::clone(truth), sites.clone(), Arc::clone(&written));
        let recorded = Arc::clone(&truth);
        tokio::spawn(async move {
            while let Some(name) = gone.recv().await {
                let n = numbers.fetch_add(1, Ordering::SeqCst);
                if again.create(&PostParams::default(), &site(&name, n, n)).await.is_ok() {
                    recorded.record_fault(Fault::Recreated);
                }
            }
        });
        Self { truth, sites, children, written, _server: server }
    }

    fn next(&self) -> u64 {
        self.truth.lock().totals.writes += 1;
        self.written.fetch_add(1, Ordering::SeqCst)
    }

    /// Creates a site, or changes its specification.
    pub(super) async fn put(&self, pick: u64) {
        let (name, n) = (name(pick), self.next());
        let site = site(name, n, pick / 100);
        if self.sites.create(&PostParams::default(), &site).await.is_ok() {
            return;
        }
        let patch = Patch::Merge(json!({"spec": site.spec}));
        let _ = self.sites.patch(name, &PatchParams::default(), &patch).await;
    }

    pub(super) async fn delete(&self, pick: u64) {
        self.next();
        self.truth.lock().recreated.remove(name(pick));
        let _ = self.sites.delete(name(pick), &DeleteParams::default()).await;
    }

    /// Deletes a site, which is created again as soon as it is gone.
    pub(super) async fn recreate(&self, pick: u64) {
        self.next();
        // Often one that is being reconciled.
        let busy = self.truth.in_flight();
        let busy = busy.get(pick as usize % busy.len().max(1)).filter(|_| !pick.is_multiple_of(3));
        let name = busy.cloned().unwrap_or_else(|| name(pick).to_owned());
        if !self.truth.lock().sites.contains_key(&name) {
            return self.put(pick).await;
        }
        self.truth.lock().recreated.insert(name.clone());
        let _ = self.sites.delete(&name, &DeleteParams::default()).await;
    }

    /// Deletes or changes a child.
    pub(super) async fn change_child(&self, pick: u64) {
        let names: Vec<_> = self.truth.lock().children.keys().cloned().collect();
        let Some(name) = names.get(pick as usize % names.len().max(1)) else { return };
        self.truth.record_fault(Fault::ChildDeleted);
        if pick.is_multiple_of(3) {
            let patch: Patch<Value> = Patch::Merge(json!({"data": {"value": "changed by a user"}}));
            let _ = self.children.patch(name, &PatchParams::default(), &patch).await;
        } else {
            let _ = self.children.delete(name, &DeleteParams::default()).await;
        }
    }

    /// Adds a finalizer to a site, or removes it.
    pub(super) async fn change_finalizer(&self, pick: u64) {
        let name = name(pick);
        let Ok(mut site) = self.sites.get(name).await else { return };
        let uid = site.metadata.uid.clone().unwrap_or_default();
        let finalizers = site.metadata.finalizers.get_or_insert_default();
        let has = finalizers.iter().any(|finalizer| finalizer == USER_FINALIZER);
        match has {
            true => finalizers.retain(|finalizer| finalizer != USER_FINALIZER),
            false => finalizers.push(USER_FINALIZER.to_owned()),
        }
        if has {
            self.truth.lock().user_finalizers.remove(&uid);
        }
        // The version guards it.
        let replaced = self.sites.replace(name, &PostParams::default(), &site).await;
        if replaced.is_ok() != has {
            self.truth.lock().user_finalizers.insert(uid);
        }
    }

    /// Removes all finalizers of users.
    pub(super) async fn remove_finalizers(&self) {
        for (pick, name) in (0..).zip(NAMES) {
            while self.truth.lock().sites.get(name).is_some_and(|site| site.user_finalizer) {
                self.change_finalizer(pick).await;
            }
        }
    }

    /// Deletes children without a site, as the garbage collector does.
    pub(super) async fn collect_garbage(&self) {
        for name in self.truth.orphans() {
            let _ = self.children.delete(&name, &DeleteParams::default()).await;
        }
    }

    /// Changes the specification of a site. Returns its uid.
    pub(super) async fn touch(&self, name: &str) -> Option<String> {
        let n = self.next();
        let patch = Patch::Merge(json!({"spec": {"value": format!("v{n}")}}));
        self.sites.patch(name, &PatchParams::default(), &patch).await.ok()?.metadata.uid
    }
}

fn name(pick: u64) -> &'static str {
    NAMES[pick as usize % NAMES.len()]
}

fn site(name: &str, n: u64, pick: u64) -> Site {
    let children = (pick % (MAX_CHILDREN + 1)) as u32;
    Site::new(name, SiteSpec { children, value: format!("v{n}") })
}
