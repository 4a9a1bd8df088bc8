//! The errors of verbs. They do not know HTTP: `status/from_error.rs` converts each to a `Status`.
//!
//! Where kube-apiserver has a message for an error, the text of the error is that message, because clients match on it.

mod decode;
mod rejection;
mod request;

pub(crate) use self::decode::DecodeError;
pub(crate) use self::rejection::{Blocked, Conflict, Precondition, Rejection};
pub(crate) use self::request::{RequestError, VersionError};

use std::fmt;

use crate::budget::TooLarge;
use crate::caches::CacheError;
use crate::cpu_pool::PoolError;
use crate::managed::{ApplyError, Conflicts};
use crate::patch::PatchError;
use crate::registry::{CodecError, Group, Resource};
use crate::storage::{StorageError, UpdateError};
use crate::watch_cache::ReadError;
use crate::work::Abandoned;

/// The object that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: Group,
    pub(crate) plural: String,
    pub(crate) kind: String,
    /// `None` if the object has no name yet.
    pub(crate) name: Option<String>,
}

/// The error of a verb.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerbError {
    /// The request cannot be executed, whatever is stored.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The body cannot be decoded.
    #[error(transparent)]
    Decode(#[from] Box<DecodeError>),
    /// The object is not accepted in the present state of the store.
    #[error("{0}: {1}")]
    Rejected(Box<Target>, Box<Rejection>),
    #[error(transparent)]
    Patch(#[from] PatchError),
    /// An apply that would change fields of other managers.
    #[error("apply failed with {} conflicts", .0.total)]
    ApplyConflicts(Conflicts),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Codec(CodecError),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
    #[error(transparent)]
    Pool(PoolError),
    /// An object that can be scaled has no replica count.
    #[error("the spec replicas field {0:?} does not exist")]
    NoReplicas(String),
    /// The key that signs tokens cannot be generated.
    #[error("failed to generate token: this machine has no randomness")]
    NoRandomness,
    /// A merge returned a value that is no object.
    #[error("an applied object has metadata")]
    NotAnObject,
}

impl Target {
    pub(crate) fn new(resource: &Resource, name: Option<&str>) -> Self {
        Self {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
            kind: resource.kind.clone(),
            name: name.map(str::to_owned),
        }
    }

    /// `deployments.apps`, or `pods` in the core group.
    pub(crate) fn qualified(&self) -> String {
        self.group.qualify(&self.plural)
    }

    /// `Deployment.apps`, or `Pod` in the core group.
    pub(crate) fn kind_with_group(&self) -> String {
        self.group.qualify(&self.kind)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.qualified(), self.name.as_deref().unwrap_or_default())
    }
}

impl VerbError {
    pub(crate) fn rejected(resource: &Resource, name: Option<&str>, rejection: Rejection) -> Self {
        Self::Rejected(Box::new(Target::new(resource, name)), Box::new(rejection))
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::rejected(resource, Some(name), Rejection::NotFound)
    }

    /// The error of a read or write of one object in the store.
    pub(crate) fn storage(resource: &Resource, name: &str, error: StorageError) -> Self {
        match error {
            StorageError::NotFound => Self::not_found(resource, name),
            StorageError::Exists(_) => {
                Self::rejected(resource, Some(name), Rejection::AlreadyExists { being_deleted: false })
            }
            StorageError::Conflict(_) => Self::rejected(resource, Some(name), Rejection::Modified),
            other => Self::Storage(other),
        }
    }

    /// The error of an update of one object.
    pub(crate) fn update(resource: &Resource, name: &str, error: UpdateError<Self>) -> Self {
        match error {
            UpdateError::Refused(error) => error,
            UpdateError::Storage(error) => Self::storage(resource, name, error),
        }
    }

    fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(_, rejection) => Some(rejection),
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self.rejection(), Some(Rejection::NotFound))
    }

    /// Whether the object is not in the state that the request expects.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(
            self.rejection(),
            Some(Rejection::Modified | Rejection::Conflict(_) | Rejection::Precondition(_))
        )
    }
}

impl From<DecodeError> for VerbError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(Box::new(error))
    }
}

impl From<CodecError> for VerbError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::TooLarge(error) => Self::TooLarge(error),
            other => Self::Codec(other),
        }
    }
}

impl From<ApplyError> for VerbError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflicts(conflicts) => Self::ApplyConflicts(conflicts),
            ApplyError::Abandoned => Self::Abandoned(Abandoned),
        }
    }
}

impl From<CacheError> for VerbError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::NotServed => RequestError::NoSuchResource.into(),
            CacheError::Storage(error) => Self::Storage(error),
        }
    }
}

impl From<PoolError> for VerbError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Abandoned(abandoned) => Self::Abandoned(abandoned),
            other => Self::Pool(other),
        }
    }
}
