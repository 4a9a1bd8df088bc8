//! Writes that the next reconcile of the key waits for.

use super::Context;
use crate::{
    barrier::StaleCache,
    merge_patch,
    request::{Target, Write},
    write_error::{UPDATE_STATUS, WriteError},
};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube_informer::{Kind, Object, ObjectKey, kind_of};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// # Writes
///
/// The next reconcile of this key starts when the caches of the controller show these writes, whatever their outcome. Within
/// one reconcile, [`caught_up`](Context::caught_up) waits for them. Writes with [`client`](Context::client) are not
/// remembered.
///
/// A response that does not arrive within [`write_timeout`](crate::Controller::write_timeout) is an unknown outcome.
impl Context {
    /// Creates an object. Without a namespace it is created in that of the key. Fails with
    /// [`WriteError::Conflict`] if it exists.
    ///
    /// Give the object a name that follows from its owner, not `generateName`: if the response gets lost, the retry then finds the
    /// object instead of creating a second one. A lost create with `generateName` is not remembered.
    pub async fn create<T>(&self, object: &T) -> Result<T, WriteError>
    where
        T: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned,
        T::Scope: 'static,
    {
        let target = self.target("create", object);
        let body = serde_json::to_vec(object).map_err(|error| target.not_sent(error))?;
        let params = PostParams { field_manager: Some(self.field_manager()), ..PostParams::default() };
        let request = target.requests()?.create(&params, body).map_err(|error| target.not_sent(error))?;
        self.write(Write { target, request }).await
    }

    /// Applies an object (server-side apply): creates it, or changes the fields that this controller owns, and takes over
    /// fields that others own. Fields that this controller applied earlier and that are left out now are removed.
    ///
    /// If the cache shows the object, it is applied to this uid only: an object that was recreated meanwhile is a conflict. A
    /// controller that needs a lease also applies it to this version only, so that a late write cannot undo a newer one.
    pub async fn apply<T>(&self, object: &T) -> Result<T, WriteError>
    where
        T: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned,
        T::Scope: 'static,
    {
        let target = self.target("apply", object);
        let mut body = serde_json::to_value(object).map_err(|error| target.not_sent(error))?;
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(cached) = self.cached(&target) {
                self.guard_apply(metadata, &cached);
            }
        }
        let params = PatchParams::apply(&self.field_manager()).force();
        let request = target.requests()?.patch(target.key.name(), &params, &Patch::Apply(&body));
        let request = request.map_err(|error| target.not_sent(error))?;
        self.write(Write { target, request }).await
    }

    /// Changes an object, and returns whether that changed anything.
    ///
    /// Sends only what `change` changes, for this uid and version of the object: if it has changed meanwhile, this is
    /// [`WriteError::Conflict`]. Fields that the cache does not hold cannot be changed ([`WriteError::Edit`]).
    pub async fn patch<T>(
        &self,
        object: &Object<T>,
        change: impl FnOnce(&mut Value),
    ) -> Result<bool, WriteError> {
        let before: Value = object.view()?;
        let mut after = before.clone();
        change(&mut after);
        // Checks that the change touches neither the identity nor fields that the cache does not hold.
        object.edit(|value| value.clone_from(&after))?;
        let target = Target::new("patch", object.kind(), object.key().clone());
        let Some(changes) = merge_patch::diff(&before, &after) else { return Ok(false) };
        let patch = Patch::Merge(merge_patch::guard(changes, object));
        let request = target.requests()?.patch(object.name(), &self.patch_params(), &patch);
        let request = request.map_err(|error| target.not_sent(error))?;
        let written = self.write::<Value>(Write { target, request }).await?;
        Ok(is_changed(object, &written))
    }

    /// Replaces the status of an object if it differs, and returns whether that changed anything. A status that differs only in
    /// what the server made of it when it was written last is not written again. The status is written for this uid and
    /// version of the object: if it has changed meanwhile, this is [`WriteError::Conflict`].
    pub async fn update_status<T>(
        &self,
        object: &Object<T>,
        status: &impl Serialize,
    ) -> Result<bool, WriteError> {
        #[derive(Deserialize)]
        struct View {
            status: Option<Value>,
        }
        let target = Target::new(UPDATE_STATUS, object.kind(), object.key().clone());
        let before = object.view::<View>()?.status.unwrap_or(Value::Null);
        let after = serde_json::to_value(status).map_err(|error| target.not_sent(error))?;
        let Some(changes) = merge_patch::diff(&before, &after) else { return Ok(false) };
        if self.shared.statuses.is_result(object.uid(), &after, &before) {
            return Ok(false);
        }
        object.edit(|value| value["status"].clone_from(&after))?;
        let patch = merge_patch::guard(serde_json::json!({"status": changes}), object);
        let (requests, params) = (target.requests()?, self.patch_params());
        let request = requests.patch_subresource("status", object.name(), &params, &Patch::Merge(patch));
        let request = request.map_err(|error| target.not_sent(error))?;
        let written = self.write::<Value>(Write { target, request }).await?;
        self.shared.statuses.remember(object.uid(), &after, &written["status"]);
        Ok(is_changed(object, &written))
    }

    /// Deletes this version of this object. An object that does not exist any more is not an error; one that has changed
    /// meanwhile is [`WriteError::Conflict`].
    pub async fn delete<T>(&self, object: &Object<T>) -> Result<(), WriteError> {
        self.delete_with(object, DeleteParams::default()).await
    }

    /// Deletes an object with a propagation policy, a grace period, or preconditions other than uid and version.
    pub async fn delete_with<T>(
        &self,
        object: &Object<T>,
        mut params: DeleteParams,
    ) -> Result<(), WriteError> {
        let target = Target::new("delete", object.kind(), object.key().clone());
        params.preconditions.get_or_insert_with(|| Preconditions {
            uid: object.uid().text(),
            resource_version: Some(object.resource_version().to_string()),
        });
        let request = target.requests()?.delete(object.name(), &params);
        let request = request.map_err(|error| target.not_sent(error))?;
        let mut ticket = self.shared.barrier.begin(self.key(), &target.kind, &target.key);
        match self.send(Write { target, request }, &mut ticket).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        ticket.settle_deleted(object.uid());
        Ok(())
    }

    /// Waits until the caches of the controller show all writes of this key, for a reconcile that reads them after writing.
    pub async fn caught_up(&self) -> Result<(), StaleCache> {
        let Context { shared, key, .. } = self;
        shared.barrier.reached(key, &shared.client, shared.settings.barrier_timeout).await
    }

    /// Sends a write whose response is the written object.
    async fn write<T: DeserializeOwned>(&self, write: Write) -> Result<T, WriteError> {
        let target = write.target.clone();
        let mut ticket = self.shared.barrier.begin(self.key(), &target.kind, &target.key);
        let response = self.send(write, &mut ticket).await?;
        ticket.settle_written(&response);
        serde_json::from_value(response).map_err(|error| target.undecodable(error))
    }

    async fn send(&self, write: Write, ticket: &mut crate::barrier::Ticket) -> Result<Value, WriteError> {
        let within = self.shared.settings.write_timeout;
        // Immediately before sending: the lease may have been lost since the reconcile began.
        if let Err(not_leading) = self.check_lease(within) {
            ticket.settle_unchanged();
            return Err(write.target.not_leading(not_leading));
        }
        write.send(&self.shared.client, within, ticket).await
    }

    /// The target of a write of an object; without a namespace, in that of the key.
    fn target<T>(&self, verb: &'static str, object: &T) -> Target
    where
        T: kube::Resource<DynamicType = ()>,
        T::Scope: 'static,
    {
        let (kind, meta) = (kind_of::<T>(), object.meta());
        let own = meta.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = own.or(self.key().namespace()).filter(|_| kind.namespaced);
        let key = ObjectKey::new(namespace, meta.name.as_deref().unwrap_or_default());
        Target { verb, kind, key }
    }

    /// The object as a cache of the controller shows it.
    fn cached(&self, target: &Target) -> Option<Object<Value>> {
        let same = |kind: &Kind| (&kind.group, &kind.plural) == (&target.kind.group, &target.kind.plural);
        let mut caches = self.shared.caches.iter().filter(|cache| same(cache.kind()));
        caches.find_map(|cache| cache.lister().get(&target.key))
    }

    fn guard_apply(&self, metadata: &mut Map<String, Value>, cached: &Object<Value>) {
        if let Some(uid) = cached.uid().text() {
            metadata.entry("uid").or_insert_with(|| uid.into());
        }
        if self.needs_lease() {
            let version = cached.resource_version().to_string();
            metadata.entry("resourceVersion").or_insert_with(|| version.into());
        }
    }

    fn field_manager(&self) -> String {
        self.shared.settings.field_manager.clone().unwrap_or_else(|| self.controller().to_owned())
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.field_manager()), ..PatchParams::default() }
    }
}

/// Whether a write had an effect: the server keeps the version of an object that it does not change.
fn is_changed<T>(before: &Object<T>, written: &Value) -> bool {
    written["metadata"]["resourceVersion"] != before.resource_version().to_string()
}
