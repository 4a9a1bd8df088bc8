//! Bodies that cannot be decoded.

use serde_json::Value;

use crate::registry::{Group, Resource};

/// A body that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// Neither JSON nor YAML. `data` is the start of the body.
    #[error(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {why} \
         ({data})"
    )]
    Unrecognized { kind: String, why: String, data: String },
    /// The content is not an object of the resource.
    #[error("{kind} in version {version:?} cannot be handled as a {wanted}: {why}")]
    CannotBeHandled { kind: String, version: String, wanted: String, why: String },
    #[error("the API version in the data ({sent}) does not match the expected API version ({wanted})")]
    OtherApiVersion { sent: String, wanted: String },
    /// A custom object of another kind. The response names that kind.
    #[error("kind must be {wanted}")]
    OtherKind { kind: String, wanted: String, group: Group, name: Option<String> },
    #[error("the namespace of the provided object does not match the namespace sent on the request")]
    OtherNamespace,
    #[error("the name of the object ({name} based on URL) was undeterminable: name must be provided")]
    NoName { name: String },
    #[error("the name of the object ({sent}) does not match the name on the URL ({name})")]
    OtherName { sent: String, name: String },
    #[error("error decoding patch: {0}")]
    PatchNotJson(serde_json::Error),
    /// The result of a patch is not an object of the resource.
    #[error("the result of the patch is invalid: {why}")]
    PatchResult { value: Value, why: String },
    #[error("error decoding YAML: {0}")]
    ApplyNotYaml(String),
    #[error("error strict decoding YAML: {0}")]
    ApplyNotStrict(String),
    #[error("invalid object type: {group}/{version}, Kind={kind}")]
    ApplyType { group: String, version: String, kind: String },
    #[error("failed to create typed patch object ({object}): {why}")]
    ApplyNotTyped { object: String, why: String },
    #[error("metadata.managedFields must be nil")]
    ApplyManagedFields,
    #[error("error decoding {options}: {error}")]
    DeleteOptions { options: &'static str, error: serde_json::Error },
    #[error("decoded object cannot be converted to DeleteOptions: it is a {0}")]
    NotDeleteOptions(String),
    #[error("cannot bind token to object of type {0}")]
    TokenBoundToOther(String),
    #[error("cannot bind token for serviceaccount {0:?} to pod running with different serviceaccount name.")]
    TokenBoundToForeignPod(String),
    /// The Scale of an object without a replica count still has none.
    #[error("the spec replicas field {0:?} cannot be empty")]
    EmptyReplicas(String),
    #[error("a {0} must be a JSON object")]
    NotAnObject(&'static str),
    #[error("a binding must name its pod in metadata.name")]
    BindingWithoutPod,
    #[error("a binding must name its node in target.name")]
    BindingWithoutNode,
}

impl DecodeError {
    /// An object that says it is of this kind and version cannot be one of the resource's.
    pub(crate) fn cannot_be_handled(resource: &Resource, kind: &str, version: &str, why: String) -> Self {
        Self::CannotBeHandled {
            kind: kind.to_owned(),
            version: version.to_owned(),
            wanted: resource.kind.clone(),
            why,
        }
    }
}
