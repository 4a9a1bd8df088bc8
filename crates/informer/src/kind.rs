//! The kinds of Rust types.

use k8s_openapi::ClusterResourceScope;
use kube::{
    core::{ApiResource, DynamicResourceScope},
    discovery::{ApiCapabilities, Scope},
};
use kube_informer_wire::Kind;
use std::any::TypeId;

/// The kind of a type that `kube` knows.
pub fn kind_of<K>() -> Kind
where
    K: kube::Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let scope = TypeId::of::<K::Scope>();
    let cluster = scope == TypeId::of::<ClusterResourceScope>();
    debug_assert!(scope != TypeId::of::<DynamicResourceScope>(), "a dynamic type has a dynamic kind");
    Kind {
        group: K::group(&()).into_owned(),
        version: K::version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        plural: K::plural(&()).into_owned(),
        namespaced: !cluster,
    }
}

/// The kind of a resource that [`kube::discovery`] found.
pub fn kind_of_discovered(resource: &ApiResource, capabilities: &ApiCapabilities) -> Kind {
    Kind { namespaced: capabilities.scope == Scope::Namespaced, ..kind_of_resource(resource) }
}

/// The kind of a resource written down by hand. Whether it is namespaced is not part of an [`ApiResource`]; it
/// matters only for informers of single namespaces, which presume it.
pub(crate) fn kind_of_resource(resource: &ApiResource) -> Kind {
    let ApiResource { group, version, kind, plural, .. } = resource.clone();
    Kind { group, version, kind, plural, namespaced: true }
}
