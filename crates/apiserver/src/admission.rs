//! Admission plugins: they complete and check objects between decoding and storage, by what other objects say.
//!
//! [`plugins`] is the list. `NamespaceLifecycle` is a part of the verbs: see `verbs/namespaces.rs`.

mod claim_resize;
mod default_class;
mod in_use_protection;
mod index;
mod limit_ranger;
mod plugins;
mod priority;
mod quota;
mod resources;
mod runtime_class;
mod service_account;
mod taints;
mod tolerations;
pub(crate) mod usage;

use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

pub use self::plugins::AdmissionPluginError;
pub(crate) use self::plugins::{Plugin, Plugins, RunningControllers};
pub(crate) use self::priority::SYSTEM_CLASSES;
pub(crate) use self::resources::ResourceList;

use self::index::Index;
use crate::ids::Ids;
use crate::registry::{Lifecycle, Object, Registry, Resource};
use crate::storage::{Storage, StorageError, Update, guaranteed_update};
use crate::verbs::error::{Rejection, VerbError};

/// The enabled admission plugins of a server, with the objects that they look at.
#[derive(Debug)]
pub(crate) struct Admission {
    plugins: Plugins,
    limit_ranges: Arc<Index>,
    priority_classes: Arc<Index>,
    runtime_classes: Arc<Index>,
    service_accounts: Arc<Index>,
    storage_classes: Arc<Index>,
    ingress_classes: Arc<Index>,
    quotas: Arc<Index>,
    /// Held while an object is charged to quotas and stored, and while the usage of a quota is computed.
    quota_turn: Mutex<()>,
}

/// The resources that plugins treat differently from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    Node,
    Claim,
    Volume,
    AttributesClass,
    Ingress,
    PriorityClass,
    Other,
}

impl Subject {
    fn of(resource: &Resource) -> Self {
        match (resource.group.as_str(), resource.plural.as_str()) {
            _ if resource.lifecycle == Lifecycle::Pod => Self::Pod,
            ("", "nodes") => Self::Node,
            ("", "persistentvolumeclaims") => Self::Claim,
            ("", "persistentvolumes") => Self::Volume,
            ("storage.k8s.io", "volumeattributesclasses") => Self::AttributesClass,
            ("networking.k8s.io", "ingresses") => Self::Ingress,
            ("scheduling.k8s.io", "priorityclasses") => Self::PriorityClass,
            _ => Self::Other,
        }
    }
}

impl Admission {
    pub(crate) fn new(registry: &Registry, plugins: Plugins) -> Self {
        let index = |group, version, plural| {
            Index::new(Arc::clone(registry.find(group, version, plural).expect("a built-in resource")))
        };
        Self {
            plugins,
            limit_ranges: index("", "v1", "limitranges"),
            priority_classes: index("scheduling.k8s.io", "v1", "priorityclasses"),
            runtime_classes: index("node.k8s.io", "v1", "runtimeclasses"),
            service_accounts: index("", "v1", "serviceaccounts"),
            storage_classes: index("storage.k8s.io", "v1", "storageclasses"),
            ingress_classes: index("networking.k8s.io", "v1", "ingressclasses"),
            quotas: index("", "v1", "resourcequotas"),
            quota_turn: Mutex::default(),
        }
    }

    /// Starts to follow the objects that plugins look at.
    pub(crate) async fn start(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        for (plugin, index) in [
            (Plugin::LimitRanger, &self.limit_ranges),
            (Plugin::Priority, &self.priority_classes),
            (Plugin::RuntimeClass, &self.runtime_classes),
            (Plugin::ServiceAccount, &self.service_accounts),
            (Plugin::DefaultIngressClass, &self.ingress_classes),
            (Plugin::ResourceQuota, &self.quotas),
        ] {
            if self.has(plugin) {
                index.start(storage).await?;
            }
        }
        if self.has(Plugin::DefaultStorageClass) || self.has(Plugin::PersistentVolumeClaimResize) {
            self.storage_classes.start(storage).await?;
        }
        Ok(())
    }

    pub(crate) fn has(&self, plugin: Plugin) -> bool {
        self.plugins.has(plugin)
    }

    /// The resource of priority classes.
    pub(crate) fn priority_classes(&self) -> &Arc<Resource> {
        self.priority_classes.resource()
    }

    /// The resource of quotas.
    pub(crate) fn quotas(&self) -> &Arc<Resource> {
        self.quotas.resource()
    }

    /// Waits until no object is being charged to a quota.
    pub(crate) async fn quota_turn(&self) -> MutexGuard<'_, ()> {
        self.quota_turn.lock().await
    }

    /// Completes a new object, which has its defaults, or rejects it.
    pub(crate) async fn complete(
        &self,
        storage: &dyn Storage,
        ids: &Ids,
        resource: &Resource,
        object: &mut Object,
    ) -> Result<(), VerbError> {
        match Subject::of(resource) {
            Subject::Pod => self.complete_pod(storage, ids, resource, object).await?,
            Subject::Node if self.has(Plugin::TaintNodesByCondition) => taints::add_not_ready(object),
            Subject::Claim => {
                if self.has(Plugin::DefaultStorageClass) {
                    default_class::of_claim(&self.storage_classes, object);
                }
                self.protect(object, in_use_protection::CLAIM);
            }
            Subject::Volume => self.protect(object, in_use_protection::VOLUME),
            Subject::AttributesClass => self.protect(object, in_use_protection::ATTRIBUTES_CLASS),
            Subject::Ingress if self.has(Plugin::DefaultIngressClass) => {
                default_class::of_ingress(&self.ingress_classes, object);
            }
            Subject::Node | Subject::Ingress | Subject::PriorityClass | Subject::Other => {}
        }
        Ok(())
    }

    fn protect(&self, object: &mut Object, finalizer: &str) {
        if self.has(Plugin::StorageObjectInUseProtection) {
            in_use_protection::protect(object, finalizer);
        }
    }

    async fn complete_pod(
        &self,
        storage: &dyn Storage,
        ids: &Ids,
        resource: &Resource,
        object: &mut Object,
    ) -> Result<(), VerbError> {
        if self.has(Plugin::LimitRanger) {
            for range in self.limit_ranges.in_namespace(object.namespace().unwrap_or_default()) {
                limit_ranger::add_defaults(&range, object);
            }
        }
        if self.has(Plugin::ServiceAccount) {
            let volume = ids.name(service_account::VOLUME_PREFIX);
            let admitted = service_account::admit(&self.service_accounts, storage, object, &volume).await?;
            admitted.map_err(|why| forbidden(resource, object, why))?;
        }
        if self.has(Plugin::Priority) {
            let admitted = priority::admit(&self.priority_classes, storage, object).await?;
            admitted.map_err(|why| forbidden(resource, object, why))?;
        }
        if self.has(Plugin::DefaultTolerationSeconds) {
            tolerations::add_defaults(object);
        }
        if self.has(Plugin::RuntimeClass) {
            let admitted = runtime_class::admit(&self.runtime_classes, storage, object).await?;
            admitted.map_err(|why| forbidden(resource, object, why))?;
        }
        Ok(())
    }

    /// Completes an object that replaces `old`.
    pub(crate) fn complete_update(&self, resource: &Resource, object: &mut Object, old: &Object) {
        if Subject::of(resource) != Subject::Pod {
            return;
        }
        if self.has(Plugin::Priority) {
            for field in ["priority", "preemptionPolicy"] {
                let former = old.at("/spec").and_then(|spec| spec.get(field));
                if let Some(former) = former.filter(|former| !former.is_null()) {
                    let own = object.section_mut("spec").entry(field).or_insert(serde_json::Value::Null);
                    if own.is_null() {
                        *own = former.clone();
                    }
                }
            }
        }
        if self.has(Plugin::DefaultTolerationSeconds) {
            tolerations::add_defaults(object);
        }
    }

    /// Checks a valid object that is new, or that replaces `old`.
    pub(crate) fn check(
        &self,
        resource: &Resource,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), VerbError> {
        let subject = Subject::of(resource);
        // Containers of a pod do not change, and objects that are being deleted need not be within limits.
        let is_limited = match subject {
            Subject::Pod => old.is_none(),
            Subject::Claim => !old.is_some_and(Object::is_deleting),
            _ => false,
        };
        if is_limited && self.has(Plugin::LimitRanger) {
            for range in self.limit_ranges.in_namespace(object.namespace().unwrap_or_default()) {
                let allowed = match subject {
                    Subject::Pod => limit_ranger::check_pod(&range, object),
                    _ => limit_ranger::check_claim(&range, object),
                };
                allowed.map_err(|why| forbidden(resource, object, why))?;
            }
        }
        if let Some(old) =
            old.filter(|_| subject == Subject::Claim && self.has(Plugin::PersistentVolumeClaimResize))
        {
            let allowed = claim_resize::check(&self.storage_classes, object, old);
            allowed.map_err(|why| forbidden(resource, object, why))?;
        }
        if subject == Subject::PriorityClass && self.has(Plugin::Priority) {
            let allowed = priority::check_class(&self.priority_classes, object);
            allowed.map_err(|why| forbidden(resource, object, why))?;
        }
        // Checked, not charged: the change of the object makes the controller compute the usage again.
        if old.is_some() && usage::may_grow(resource) && self.has(Plugin::ResourceQuota) {
            for quota in self.quotas.in_namespace(object.namespace().unwrap_or_default()) {
                let charged = quota::charge(&quota, resource, object, old);
                charged.map_err(|why| forbidden(resource, object, why))?;
            }
        }
        Ok(())
    }

    /// Charges a new object to the quotas of its namespace. The guard has to be held until the object is stored.
    pub(crate) async fn charge(
        &self,
        storage: &dyn Storage,
        resource: &Resource,
        object: &Object,
    ) -> Result<Option<MutexGuard<'_, ()>>, VerbError> {
        if !self.has(Plugin::ResourceQuota) || !resource.namespaced {
            return Ok(None);
        }
        let namespace = object.namespace().unwrap_or_default();
        if self.quotas.in_namespace(namespace).is_empty() {
            return Ok(None);
        }
        let turn = self.quota_turn().await;
        let quotas = self.quotas.in_namespace(namespace);
        // All of them are checked first, so that none is charged if another one rejects the object.
        for quota in &quotas {
            quota::charge(quota, resource, object, None).map_err(|why| forbidden(resource, object, why))?;
        }
        for quota in &quotas {
            self.charge_one(storage, quota, resource, object).await?;
        }
        Ok(Some(turn))
    }

    async fn charge_one(
        &self,
        storage: &dyn Storage,
        quota: &Object,
        resource: &Resource,
        object: &Object,
    ) -> Result<(), VerbError> {
        let quotas = self.quotas();
        let name = quota.name().unwrap_or_default();
        let key = quotas.storage_key(quota.namespace(), name);
        let charged = guaranteed_update(storage, &key, None, |stored| {
            let mut quota = quotas.decode(stored)?;
            let total = quota::charge(&quota, resource, object, None);
            Ok(match total.map_err(|why| forbidden(resource, object, why))? {
                Some(total) => {
                    quota.section_mut("status").insert("used".to_owned(), total.to_json());
                    Update::Write(quotas.encode(&quota)?)
                }
                None => Update::Unchanged,
            })
        })
        .await;
        match charged.map_err(|error| VerbError::update(quotas, name, error)) {
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

fn forbidden(resource: &Resource, object: &Object, why: String) -> VerbError {
    VerbError::rejected(resource, object.name(), Rejection::Forbidden(why))
}
