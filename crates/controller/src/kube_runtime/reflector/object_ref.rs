//! Typed references to objects.

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Resource,
    api::{ApiResource, DynamicObject},
};
use kube_informer::ObjectKey;
use std::{
    fmt,
    hash::{Hash, Hasher},
};

/// A reference to an object of type `K`: its name, and its namespace if it has one.
///
/// References are equal if type, name and namespace are; [`extra`](Self::extra) is not compared.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube_informer_controller::kube_runtime::reflector::ObjectRef;
///
/// let config = ObjectRef::<ConfigMap>::new("a").within("shop");
/// assert_eq!(config.to_string(), "ConfigMap.v1./a.shop");
/// assert_ne!(config.erase(), ObjectRef::<Secret>::new("a").within("shop").erase());
/// ```
#[non_exhaustive]
pub struct ObjectRef<K: Resource> {
    /// The resource, for types that are known at run time only.
    pub dyntype: K::DynamicType,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; `None` for cluster-scoped ones.
    pub namespace: Option<String>,
    /// The version that was referred to.
    pub extra: ObjectRefExtra,
}

/// The version of an object that an [`ObjectRef`] was made from, if it was made from one.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ObjectRefExtra {
    /// Resource version of the object.
    pub resource_version: Option<String>,
    /// Uid of the object.
    pub uid: Option<String>,
}

impl<K: Resource> ObjectRef<K>
where
    K::DynamicType: Default,
{
    /// A reference to a name, in no namespace.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::new_with(name, K::DynamicType::default())
    }

    /// A reference to an object. The name is empty if the object has none.
    #[must_use]
    pub fn from_obj(object: &K) -> Self {
        Self::from_obj_with(object, K::DynamicType::default())
    }
}

impl<K: Resource> ObjectRef<K> {
    /// A reference to a name of a resource, in no namespace.
    #[must_use]
    pub fn new_with(name: &str, dyntype: K::DynamicType) -> Self {
        Self { dyntype, name: name.to_owned(), namespace: None, extra: ObjectRefExtra::default() }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// A reference to an object of a resource. The name is empty if the object has none.
    #[must_use]
    pub fn from_obj_with(object: &K, dyntype: K::DynamicType) -> Self {
        let meta = object.meta();
        Self {
            dyntype,
            name: meta.name.clone().unwrap_or_default(),
            namespace: meta.namespace.clone(),
            extra: ObjectRefExtra { resource_version: meta.resource_version.clone(), uid: meta.uid.clone() },
        }
    }

    /// The owner that a reference in `namespace` names; `None` if it is of another type.
    #[must_use]
    pub fn from_owner_ref(
        namespace: Option<&str>,
        owner: &OwnerReference,
        dyntype: K::DynamicType,
    ) -> Option<Self> {
        let is_type = owner.api_version == K::api_version(&dyntype) && owner.kind == K::kind(&dyntype);
        is_type.then(|| Self {
            dyntype,
            name: owner.name.clone(),
            namespace: namespace.map(str::to_owned),
            extra: ObjectRefExtra { resource_version: None, uid: Some(owner.uid.clone()) },
        })
    }

    /// The same name of another type.
    #[must_use]
    pub fn into_kind_unchecked<K2: Resource>(self, dyntype: K2::DynamicType) -> ObjectRef<K2> {
        let Self { name, namespace, extra, .. } = self;
        ObjectRef { dyntype, name, namespace, extra }
    }

    /// The reference with its type as a value.
    #[must_use]
    pub fn erase(self) -> ObjectRef<DynamicObject> {
        let resource = ApiResource {
            group: K::group(&self.dyntype).into_owned(),
            version: K::version(&self.dyntype).into_owned(),
            api_version: K::api_version(&self.dyntype).into_owned(),
            kind: K::kind(&self.dyntype).into_owned(),
            plural: K::plural(&self.dyntype).into_owned(),
        };
        self.into_kind_unchecked(resource)
    }

    /// The key of the object in a cache.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.as_deref(), &self.name)
    }

    /// A reference to a key of a cache.
    pub(crate) fn from_key(key: &ObjectKey, dyntype: K::DynamicType) -> Self {
        let reference = Self::new_with(key.name(), dyntype);
        match key.namespace() {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
}

impl<K: Resource> From<&K> for ObjectRef<K>
where
    K::DynamicType: Default,
{
    fn from(object: &K) -> Self {
        Self::from_obj(object)
    }
}

impl<K: Resource> From<ObjectRef<K>> for ObjectReference {
    fn from(reference: ObjectRef<K>) -> Self {
        let ObjectRef { dyntype, name, namespace, extra } = reference;
        Self {
            api_version: Some(K::api_version(&dyntype).into_owned()),
            kind: Some(K::kind(&dyntype).into_owned()),
            name: Some(name),
            namespace,
            resource_version: extra.resource_version,
            uid: extra.uid,
            field_path: None,
        }
    }
}

impl<K: Resource> fmt::Display for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dyntype, name, namespace, .. } = self;
        let (kind, version, group) = (K::kind(dyntype), K::version(dyntype), K::group(dyntype));
        write!(f, "{kind}.{version}.{group}/{name}")?;
        match namespace {
            Some(namespace) => write!(f, ".{namespace}"),
            None => Ok(()),
        }
    }
}

// Derived implementations would require them of `K`, of which there is no value.

impl<K: Resource> fmt::Debug for ObjectRef<K>
where
    K::DynamicType: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dyntype, name, namespace, extra } = self;
        f.debug_struct("ObjectRef")
            .field("dyntype", dyntype)
            .field("name", name)
            .field("namespace", namespace)
            .field("extra", extra)
            .finish()
    }
}

impl<K: Resource> Clone for ObjectRef<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            dyntype: self.dyntype.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            extra: self.extra.clone(),
        }
    }
}

impl<K: Resource> PartialEq for ObjectRef<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        (&self.dyntype, &self.name, &self.namespace) == (&other.dyntype, &other.name, &other.namespace)
    }
}

impl<K: Resource> Eq for ObjectRef<K> where K::DynamicType: Eq {}

impl<K: Resource> Hash for ObjectRef<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.dyntype, &self.name, &self.namespace).hash(state);
    }
}
