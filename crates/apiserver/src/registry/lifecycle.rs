//! Creation and deletion of the objects of a resource.

/// The lifecycle of the objects of a resource, as far as it differs between resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// A delete removes the object once it has no finalizers.
    Plain,
    /// A delete starts a grace period.
    Pod,
    /// A delete begins the termination of the namespace; `spec.finalizers` and the objects in it hold it.
    Namespace,
    /// A delete begins the removal of all custom objects; the CRD follows the last of them.
    CustomResourceDefinition,
    /// The server assigns the pod of this name to a node, and stores nothing else.
    Binding,
    /// The server fills in the status and stores nothing.
    Review(Review),
}

/// The subject of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    /// Finds the user of a token.
    Token,
    /// Finds the user of the caller.
    SelfSubject,
    /// Which rules apply to the caller?
    Rules,
    /// Is this access allowed?
    Access,
}
