//! References to cached objects, ready for an API call.

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube_informer_wire::{DecodeError, Object};
use serde::Deserialize;

/// References to an object, for events and owner references.
pub trait ObjectReferences {
    /// A reference for the `involvedObject` of an event and the like.
    fn object_ref(&self) -> Result<ObjectReference, DecodeError>;

    /// An owner reference that makes this object the controller of another one.
    fn controller_owner_ref(&self) -> Result<OwnerReference, DecodeError>;
}

/// The uid as the server wrote it: what goes back to it must be exact.
fn uid<T>(object: &Object<T>) -> Result<String, DecodeError> {
    #[derive(Deserialize)]
    struct View {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        uid: String,
    }
    Ok(object.view::<View>()?.metadata.uid)
}

impl<T> ObjectReferences for Object<T> {
    fn object_ref(&self) -> Result<ObjectReference, DecodeError> {
        Ok(ObjectReference {
            api_version: Some(self.kind().api_version()),
            kind: Some(self.kind().kind.clone()),
            name: Some(self.name().to_owned()),
            namespace: self.namespace().map(str::to_owned),
            resource_version: Some(self.resource_version().to_string()),
            uid: Some(uid(self)?),
            field_path: None,
        })
    }

    fn controller_owner_ref(&self) -> Result<OwnerReference, DecodeError> {
        Ok(OwnerReference {
            api_version: self.kind().api_version(),
            kind: self.kind().kind.clone(),
            name: self.name().to_owned(),
            uid: uid(self)?,
            controller: Some(true),
            block_owner_deletion: Some(true),
        })
    }
}
