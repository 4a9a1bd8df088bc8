//! The controlling owner of an object.

use crate::Uid;
use std::sync::Arc;

/// The owner reference of the controller of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Group and version of the owner, such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Kind of the owner, such as `ReplicaSet`.
    pub kind: Arc<str>,
    /// Name of the owner; it is in the namespace of the owned object, or cluster-scoped.
    pub name: Arc<str>,
    /// Uid of the owner.
    pub uid: Uid,
}
