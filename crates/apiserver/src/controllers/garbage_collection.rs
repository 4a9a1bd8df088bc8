//! Garbage collection: dependents are deleted after their owners, before them, or stay without them.

mod graph;
mod plan;

use kube_informer_wire::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_core::future::BoxFuture;

use self::graph::Graph;
use self::plan::Plan;
use super::edit::{delete, drop_finalizer, edit};
use super::metadata::{FOREGROUND, ORPHAN, Observation};
use super::{Controller, Settled};
use crate::registry::{GroupVersion, Object};
use crate::storage::Stored;
use crate::verbs::WriteContext;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::error::VerbError;

pub(super) struct GarbageCollection {
    context: Arc<WriteContext>,
    /// Locked for one change or one plan, never over an await.
    graph: Mutex<Graph>,
}

impl GarbageCollection {
    pub(super) fn new(context: Arc<WriteContext>) -> Self {
        Self { context, graph: Mutex::default() }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        lock(&self.graph)
    }

    async fn collect(&self, key: &str) -> Result<(), VerbError> {
        let snapshot = self.context.resources.snapshot();
        let served = |api_version: &str, kind: &str| {
            snapshot.registry.knows_kind(GroupVersion::parse(api_version), kind)
        };
        let plan = self.graph().plan(key, served);
        let context = &*self.context;
        match plan {
            Plan::Nothing => Ok(()),
            Plan::Orphan { uid, dependents } => {
                for dependent in dependents {
                    edit(context, &dependent, None, |object| drop_owners(object, &[&uid])).await?;
                }
                edit(context, key, Some(&uid), |object| drop_finalizer(object, ORPHAN)).await
            }
            Plan::StopWaiting { uid } => {
                edit(context, key, Some(&uid), |object| drop_finalizer(object, FOREGROUND)).await
            }
            Plan::Release { uid, owners } => {
                let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
                edit(context, key, Some(&uid), |object| drop_owners(object, &owners)).await
            }
            Plan::Delete { uid, policy, unblock } => {
                if unblock {
                    edit(context, key, Some(&uid), unblock_owners).await?;
                }
                delete(context, key, &DeleteOptions::cascading(policy).only(&uid)).await
            }
        }
    }
}

impl Controller for GarbageCollection {
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        let mut graph = self.graph();
        *graph = Graph::default();
        items.iter().for_each(|stored| graph.put(stored));
        graph.uncollected()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        self.graph().apply(change)
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(async move { self.collect(key).await.map(|()| None) })
    }
}

fn drop_owners(object: &mut Object, uids: &[&str]) {
    let metadata = object.metadata_mut();
    let Some(owners) = metadata.get_mut("ownerReferences").and_then(|o| o.as_array_mut()) else { return };
    owners.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(&uid)));
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    }
}

fn unblock_owners(object: &mut Object) {
    let owners = object.metadata_mut().get_mut("ownerReferences").and_then(|o| o.as_array_mut());
    for owner in owners.into_iter().flatten().filter_map(|owner| owner.as_object_mut()) {
        owner.insert("blockOwnerDeletion".to_owned(), false.into());
    }
}
