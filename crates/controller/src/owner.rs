//! Owner references, and names of children.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_informer::{DecodeError, Object, ObjectKey, ObjectReferences};

/// An object cannot be controlled by another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The child has another controller already.
    #[error("{child} is controlled by {kind} {name} already")]
    Controlled {
        /// Name of the child.
        child: String,
        /// Kind of its controller.
        kind: String,
        /// Name of its controller.
        name: String,
    },
    /// A namespaced owner can only own objects in its namespace.
    #[error(
        "{owner} cannot own {child}, which is in another namespace or in none: name the owner in a label of the child, map it with Controller::watches, and delete the child in a finalizer"
    )]
    OtherNamespace {
        /// The owner.
        owner: ObjectKey,
        /// The child.
        child: ObjectKey,
    },
    /// The owner cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Makes `owner` the controller of `child`, and puts it into the owner's namespace if it has none. The garbage collector
/// deletes the child after its owner, and [`Controller::owns`](crate::Controller::owns) reconciles the owner if the child
/// changes.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{Kind, Limits, Object, Origin};
/// use kube_informer_controller::{child_name, controlled_by};
///
/// # let origin = std::sync::Arc::new(Origin::new(Kind::namespaced("apps", "v1", "Deployment", "deployments")));
/// # let json = r#"{"metadata":{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"7"}}"#;
/// # let owner = Object::parse(&origin, json.into(), &Limits::default())?;
/// let mut child = ConfigMap::default();
/// child.metadata.name = Some(child_name(&owner, "settings"));
/// let child = controlled_by(child, &owner)?; // for context.apply(&child)
/// assert_eq!(child.metadata.namespace.as_deref(), Some("shop"));
/// assert_eq!(child.metadata.owner_references.unwrap()[0].uid, "u-1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn controlled_by<C, K>(mut child: C, owner: &Object<K>) -> Result<C, OwnerError>
where
    C: kube::Resource<DynamicType = ()>,
    C::Scope: 'static,
{
    let reference = owner.controller_owner_ref()?;
    let meta = child.meta_mut();
    if let Some(namespace) = owner.namespace() {
        let namespaced = kube_informer::kind_of::<C>().namespaced;
        let own = meta.namespace.clone().filter(|_| namespaced);
        if !namespaced || own.as_deref().is_some_and(|own| own != namespace) {
            let child = ObjectKey::new(own.as_deref(), name(meta));
            return Err(OwnerError::OtherNamespace { owner: owner.key().clone(), child });
        }
        meta.namespace = Some(namespace.to_owned());
    }
    let owners = meta.owner_references.get_or_insert_default();
    let is_other = |known: &&OwnerReference| known.controller == Some(true) && known.uid != reference.uid;
    if let Some(OwnerReference { kind, name: other, .. }) = owners.iter().find(is_other) {
        let (kind, other) = (kind.clone(), other.clone());
        return Err(OwnerError::Controlled { child: name(meta).to_owned(), kind, name: other });
    }
    owners.retain(|known| known.uid != reference.uid);
    owners.push(reference);
    Ok(child)
}

fn name(meta: &kube::core::ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

/// Longest name of a child: a DNS label, which every kind accepts.
const MAX_NAME: usize = 63;

/// The name of a child: it follows from the owner and `suffix` alone, so that a create whose response got lost is found again.
/// Names longer than 63 characters are cut, and end in a hash.
///
/// ```
/// # use kube_informer::{Kind, Limits, Object, Origin};
/// # use kube_informer_controller::child_name;
/// # let origin = std::sync::Arc::new(Origin::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps")));
/// # let json = r#"{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"}}"#;
/// # let owner = Object::parse(&origin, json.into(), &Limits::default())?;
/// assert_eq!(child_name(&owner, "config"), "web-config");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn child_name<K>(owner: &Object<K>, suffix: &str) -> String {
    let whole = format!("{}-{suffix}", owner.name());
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let hash = format!("{:08x}", hash(&whole));
    let cut: String = whole.chars().take(MAX_NAME - hash.len() - 1).collect();
    format!("{}-{hash}", cut.trim_end_matches(['-', '.']))
}

/// FNV-1a: the same in every process and version, unlike the hasher of the standard library. Another name would be another child.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Node};
    use kube_informer::{Kind, Limits, Origin};
    use serde_json::{Value, json};

    fn owner(name: &str, uid: &str) -> Object<Value> {
        let origin =
            std::sync::Arc::new(Origin::new(Kind::namespaced("apps", "v1", "Deployment", "deployments")));
        let json =
            json!({"metadata": {"namespace": "shop", "name": name, "uid": uid, "resourceVersion": "1"}});
        Object::parse(&origin, json.to_string().into(), &Limits::default()).unwrap()
    }

    #[test]
    fn a_child_has_one_controller_in_its_own_namespace() {
        let (web, other) = (owner("web", "u-1"), owner("other", "u-2"));
        let child = controlled_by(ConfigMap::default(), &web).unwrap();
        assert_eq!(child.metadata.namespace.as_deref(), Some("shop"));
        let again = controlled_by(child.clone(), &web).unwrap();
        let owners = again.metadata.owner_references.unwrap();
        assert_eq!((owners.len(), owners[0].uid.as_str(), owners[0].controller), (1, "u-1", Some(true)));
        let error = controlled_by(child, &other).unwrap_err();
        assert_eq!(error.to_string(), " is controlled by Deployment web already");
        assert!(controlled_by(Node::default(), &web).is_err(), "no namespace");
        let mut elsewhere = ConfigMap::default();
        elsewhere.metadata.namespace = Some("till".to_owned());
        let error = controlled_by(elsewhere, &web).unwrap_err();
        assert!(matches!(error, OwnerError::OtherNamespace { .. }));
        assert!(
            error.to_string().contains("label") && error.to_string().contains("Controller::watches"),
            "{error}"
        );
    }

    #[test]
    fn names_of_children_are_different_and_fit() {
        let long = "a".repeat(70);
        let names = [child_name(&owner(&long, ""), "x"), child_name(&owner(&long, ""), "y")];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME), "{names:?}");
        assert_eq!(names[0], child_name(&owner(&long, "another uid"), "x"));
    }

    #[test]
    fn the_name_of_a_child_is_the_same_in_every_version_of_a_program() {
        // Test vectors of the authors of FNV.
        assert_eq!((hash(""), hash("a"), hash("foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
        let name = child_name(&owner(&"a".repeat(70), ""), "x");
        assert_eq!(name, format!("{}-{:08x}", "a".repeat(54), hash(&format!("{}-x", "a".repeat(70)))));
    }
}
