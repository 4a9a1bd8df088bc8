//! Objects that are not accepted in the present state of the store.

use crate::status::{FieldError, FieldErrors};

/// The reason why an object is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejection {
    #[error("not found")]
    NotFound,
    #[error("already exists")]
    AlreadyExists { being_deleted: bool },
    /// All generated names were taken.
    #[error("already exists, the server was not able to generate a unique name for the object")]
    NoUniqueName,
    /// A concurrent write changed the object.
    #[error("the object has been modified; please apply your changes to the latest version and try again")]
    Modified,
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    Precondition(#[from] Precondition),
    #[error("unable to create new content in namespace {namespace} because it is being terminated")]
    NamespaceTerminating { namespace: String },
    #[error("this namespace may not be deleted")]
    NamespaceNotDeletable,
    /// An admission plugin rejects the object.
    #[error("{0}")]
    Forbidden(String),
    /// A pod cannot be evicted now.
    #[error(transparent)]
    EvictionBlocked(Blocked),
    #[error("invalid")]
    Invalid(FieldErrors),
    /// A PUT without the resource version that this resource requires.
    #[error("metadata.resourceVersion must be specified for an update")]
    VersionRequired,
    #[error("strconv.ParseUint: parsing {0:?}: invalid syntax")]
    VersionMalformed(String),
    #[error("resourceVersion should not be set on objects to be created")]
    VersionOnCreate,
    #[error("invalid TokenRequest")]
    InvalidTokenRequest(FieldErrors),
    #[error("invalid Scale")]
    InvalidScale(FieldError),
}

/// A difference between the stored object and the one that the request expects.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Conflict {
    /// A PUT for an object with another uid. `path` is the part of the storage key after `/registry/`.
    #[error(
        "StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )]
    OtherUid { path: String, wanted: String, found: String },
    /// An apply for an object with a uid, but the object does not exist.
    #[error("uid mismatch: the provided object specified uid {0}, and no existing object was found")]
    UidNotFound(String),
    #[error("the UID in the token request ({sent}) does not match the UID of the service account ({found})")]
    TokenUid { sent: String, found: String },
    #[error(
        "the UID in the bound object reference ({0}) does not match the UID in record. The object might have been deleted and then \
         recreated"
    )]
    BoundObjectUid(String),
    #[error("pod {0} is being deleted, cannot be assigned to a host")]
    PodDeleting(String),
    #[error("pod {pod} is already assigned to node {node:?}")]
    PodAssigned { pod: String, node: String },
}

/// Why a pod cannot be evicted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Blocked {
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    Budget {
        /// About the budget.
        cause: String,
        /// Seconds until another attempt may succeed, if that can be foreseen.
        retry_after: Option<u32>,
    },
    #[error(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )]
    SeveralBudgets,
}

impl Blocked {
    /// The controller of the budget has not seen its last change.
    pub(crate) fn processing(budget: &str) -> Self {
        let cause = format!("The disruption budget {budget} is still being processed by the server.");
        Self::Budget { cause, retry_after: Some(10) }
    }
}

/// A precondition of a delete that does not hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Precondition {
    #[error(
        "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and \
         then recreated"
    )]
    Uid { wanted: String, found: String },
    #[error(
        "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object \
         might have been modified"
    )]
    Version { wanted: String, found: String },
}
