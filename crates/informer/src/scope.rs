//! Which part of a collection an informer covers.

use kube_informer_wire::ObjectKey;
use std::{collections::BTreeSet, fmt};

/// The namespaces an informer covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum Scope {
    /// Everything: all namespaces, or a cluster-scoped kind.
    #[default]
    All,
    /// These namespaces and no others. Each one is listed and watched on its own, so that rights in these
    /// namespaces are enough.
    Namespaces(BTreeSet<String>),
}

impl Scope {
    /// One namespace.
    pub fn namespace(name: impl Into<String>) -> Self {
        Self::namespaces([name])
    }

    /// Several namespaces.
    pub fn namespaces<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Namespaces(names.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all namespaces"),
            Self::Namespaces(names) => f.write_str(&names.iter().cloned().collect::<Vec<_>>().join(",")),
        }
    }
}

/// The part of a store that one reflector fills.
pub(crate) type Partition = usize;

/// How a scope is divided among reflectors: one for everything, or one for each namespace.
///
/// Invariant: never empty; the partitions are disjoint.
#[derive(Debug, Clone)]
pub(crate) struct Partitions(Vec<Option<String>>);

impl Partitions {
    pub(crate) fn of_scope(scope: &Scope) -> Self {
        match scope {
            Scope::Namespaces(names) if !names.is_empty() => Self(names.iter().cloned().map(Some).collect()),
            _ => Self(vec![None]),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn all(&self) -> std::ops::Range<Partition> {
        0..self.0.len()
    }

    /// The namespace of a partition; `None` is all of them.
    pub(crate) fn namespace(&self, partition: Partition) -> Option<&str> {
        self.0.get(partition)?.as_deref()
    }

    /// Whether an object belongs to a partition.
    pub(crate) fn contains(&self, partition: Partition, key: &ObjectKey) -> bool {
        match self.namespace(partition) {
            None => true,
            namespace => key.namespace() == namespace,
        }
    }

    /// The partition that objects of a namespace belong to.
    pub(crate) fn of_namespace(&self, namespace: Option<&str>) -> Option<Partition> {
        self.0.iter().position(|name| name.is_none() || name.as_deref() == namespace)
    }
}
