//! Doing what was planned. Every act looks at the stored object first: a plan may be out of date.

use std::sync::Arc;

use super::node::{FOREGROUND, ORPHAN};
use super::plan::Plan;
use crate::engine::Engine;
use crate::registry::{GroupVersion, Object, Resource};
use crate::status::Status;
use crate::storage::{StorageError, Update, UpdateError, Updated, guaranteed_update};
use crate::verbs::delete::{DeleteOptions, Outcome, remove};
use crate::verbs::update::is_finished;

impl Engine {
    /// Looks at one object and does what has to be done about it.
    pub(super) async fn attend(&self, key: &str) -> Result<(), Status> {
        let controllers = &self.controllers;
        let plan = controllers.lock().graph.plan(key, controllers.switches, |v, k| self.serves(v, k));
        match plan {
            Plan::Nothing => Ok(()),
            Plan::FinalizePod { uid } => self.end(key, &DeleteOptions::at_once().only(&uid)).await,
            Plan::Orphan { uid, dependents } => {
                for dependent in dependents {
                    self.edit(&dependent, None, |object| drop_owners(object, &[&uid])).await?;
                }
                self.edit(key, Some(&uid), |object| drop_finalizer(object, ORPHAN)).await
            }
            Plan::StopWaiting { uid } => {
                self.edit(key, Some(&uid), |object| drop_finalizer(object, FOREGROUND)).await
            }
            Plan::Release { uid, owners } => {
                let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
                self.edit(key, Some(&uid), |object| drop_owners(object, &owners)).await
            }
            Plan::Delete { uid, policy, unblock } => {
                if unblock {
                    self.edit(key, Some(&uid), unblock_owners).await?;
                }
                self.end(key, &DeleteOptions::cascading(policy).only(&uid)).await
            }
        }
    }

    async fn end(&self, key: &str, options: &DeleteOptions) -> Result<(), Status> {
        let Some((resource, namespace, name)) = self.locate(key) else { return Ok(()) };
        match remove(self, &resource, namespace, name, options).await {
            Ok(Outcome::Removed(_)) => {
                self.after_removal(&resource, namespace).await;
                Ok(())
            }
            Ok(marked @ Outcome::Marked(_)) => {
                self.after_marking(&resource, name, &marked).await;
                Ok(())
            }
            Err(status) if is_moot(&status) => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Changes the metadata of an object, if it is still the one meant. One that nothing holds any more is removed.
    async fn edit(&self, key: &str, uid: Option<&str>, change: impl Fn(&mut Object)) -> Result<(), Status> {
        let Some((resource, namespace, name)) = self.locate(key) else { return Ok(()) };
        let edited = guaranteed_update(&*self.storage, key, None, |stored| {
            let mut object = self.object(&resource, stored)?;
            if uid.is_some_and(|uid| uid != object.uid()) {
                return Ok(Update::Unchanged);
            }
            change(&mut object);
            let finished = is_finished(&resource, &object);
            Ok(if finished { Update::Delete } else { Update::Write(self.document(&resource, &object)?) })
        })
        .await;
        match edited {
            Ok(Updated::Deleted(_)) => {
                self.after_removal(&resource, namespace).await;
                Ok(())
            }
            Ok(_) | Err(UpdateError::Storage(StorageError::NotFound)) => Ok(()),
            Err(UpdateError::Refused(status)) => Err(status),
            Err(UpdateError::Storage(error)) => Err(self.storage_status(&resource, name, error)),
        }
    }

    /// The resource, namespace and name of a storage key.
    fn locate<'k>(&self, key: &'k str) -> Option<(Arc<Resource>, &'k str, &'k str)> {
        let now = self.now();
        let mut own = now.registry.all().filter(|r| r.is_stored() && r.owns_store());
        let resource = own.find(|r| key.starts_with(&r.storage_prefix()))?;
        let rest = &key[resource.storage_prefix().len()..];
        let (namespace, name) = if resource.namespaced { rest.split_once('/')? } else { ("", rest) };
        Some((Arc::clone(resource), namespace, name))
    }

    fn serves(&self, api_version: &str, kind: &str) -> bool {
        self.now().registry.knows_kind(GroupVersion::parse(api_version), kind)
    }
}

/// Somebody else was faster.
fn is_moot(status: &Status) -> bool {
    matches!(status.code().as_u16(), 404 | 409)
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

fn drop_finalizer(object: &mut Object, finalizer: &str) {
    let left = object.finalizers().into_iter().filter(|f| *f != finalizer).map(str::to_owned).collect();
    object.set_finalizers(left);
}
