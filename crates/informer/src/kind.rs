//! The [`Kind`] of Rust types and discovered resources.

use k8s_openapi::ClusterResourceScope;
use kube::{
    core::{ApiResource, DynamicResourceScope},
    discovery::{ApiCapabilities, Scope},
};
use kube_informer_wire::Kind;
use std::any::TypeId;

/// The kind of a type that implements [`kube::Resource`].
pub fn kind_of<K>() -> Kind
where
    K: kube::Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let scope = TypeId::of::<K::Scope>();
    let cluster = scope == TypeId::of::<ClusterResourceScope>();
    debug_assert!(
        scope != TypeId::of::<DynamicResourceScope>(),
        "the kind of a dynamic type is known at run time only"
    );
    Kind {
        group: K::group(&()).into_owned(),
        version: K::version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        plural: K::plural(&()).into_owned(),
        namespaced: !cluster,
    }
}

/// The kind of a resource from [`kube::discovery`].
pub fn kind_of_discovered(resource: &ApiResource, capabilities: &ApiCapabilities) -> Kind {
    Kind { namespaced: capabilities.scope == Scope::Namespaced, ..kind_of_resource(resource) }
}

/// The kind of an [`ApiResource`], which does not say whether it is namespaced. Namespaced is assumed: it matters only
/// for informers of single namespaces.
pub(crate) fn kind_of_resource(resource: &ApiResource) -> Kind {
    let ApiResource { group, version, kind, plural, .. } = resource.clone();
    Kind { group, version, kind, plural, namespaced: true }
}
