//! The namespaces that an informer covers.

use kube_informer_wire::ObjectKey;
use std::{collections::BTreeSet, fmt, sync::Arc};

/// Longest name of a namespace.
const MAX_NAME: usize = 63;

/// The namespaces that an informer covers.
///
/// ```
/// use kube_informer::{Scope, ScopeError};
///
/// let shop = Scope::namespace("shop")?;
/// let both = Scope::namespaces(["shop", "till"])?;
/// assert!(Scope::namespace("").is_err()); // use Scope::all()
/// # Ok::<(), ScopeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scope(Covered);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
enum Covered {
    #[default]
    All,
    /// Each name is valid.
    Namespaces(BTreeSet<String>),
}

/// A set of namespaces that no informer can cover.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// The name of a namespace is empty.
    #[error("the name of a namespace is empty; Scope::all() covers all namespaces")]
    EmptyName,
    /// No namespace can have this name, so that the server would return an empty list for ever.
    #[error(
        "{name:?} is not the name of a namespace (a DNS label: at most 63 of a-z, 0-9 and -, no - at either end)"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// The set of namespaces is empty.
    #[error("the set of namespaces is empty; Scope::none() covers none, Scope::all() covers all of them")]
    NoNamespaces,
}

impl Scope {
    /// Everything: all namespaces, or a cluster-scoped kind.
    pub fn all() -> Self {
        Self(Covered::All)
    }

    /// Nothing. An informer of it sends no requests; its cache is synced and stays empty.
    pub fn none() -> Self {
        Self(Covered::Namespaces(BTreeSet::new()))
    }

    /// One namespace.
    pub fn namespace(name: impl Into<String>) -> Result<Self, ScopeError> {
        Self::namespaces([name])
    }

    /// These namespaces and no others. Each one is listed and watched on its own, so that permissions in these namespaces
    /// are enough.
    pub fn namespaces<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Result<Self, ScopeError> {
        let names = names.into_iter().map(|name| valid(name.into())).collect::<Result<BTreeSet<_>, _>>()?;
        if names.is_empty() {
            return Err(ScopeError::NoNamespaces);
        }
        Ok(Self(Covered::Namespaces(names)))
    }

    /// Whether it covers all namespaces.
    pub fn is_all(&self) -> bool {
        self.0 == Covered::All
    }
}

fn valid(name: String) -> Result<String, ScopeError> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends = !name.starts_with('-') && !name.ends_with('-');
    match name.len() {
        0 => Err(ScopeError::EmptyName),
        1..=MAX_NAME if ends && name.chars().all(inner) => Ok(name),
        _ => Err(ScopeError::InvalidName { name }),
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Covered::All => f.write_str("all namespaces"),
            Covered::Namespaces(names) if names.is_empty() => f.write_str("no namespaces"),
            Covered::Namespaces(names) => f.write_str(&names.iter().cloned().collect::<Vec<_>>().join(",")),
        }
    }
}

/// The part of a store that one reflector fills.
pub(crate) type Partition = usize;

/// How a scope is divided among reflectors: one for everything, or one for each namespace.
///
/// Invariant: the partitions are disjoint. There is none if the scope is empty.
#[derive(Debug, Clone)]
pub(crate) struct Partitions(Arc<[Option<String>]>);

impl Partitions {
    pub(crate) fn of_scope(scope: &Scope) -> Self {
        match &scope.0 {
            Covered::All => Self(Arc::new([None])),
            Covered::Namespaces(names) => Self(names.iter().cloned().map(Some).collect()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_namespace_can_have_are_errors() {
        assert_eq!(Scope::namespace(""), Err(ScopeError::EmptyName));
        assert_eq!(Scope::namespaces(["a", ""]), Err(ScopeError::EmptyName));
        assert!(ScopeError::EmptyName.to_string().contains("Scope::all()"));
        assert_eq!(Scope::namespaces([""; 0]), Err(ScopeError::NoNamespaces));
        for name in ["-a", "a-", "A", "a/b", "..", "a.b", "ä", "a b", &"a".repeat(64)] {
            assert!(matches!(Scope::namespace(name), Err(ScopeError::InvalidName { .. })), "{name}");
        }
        for name in ["a", "kube-system", "0", &"a".repeat(63)] {
            assert_eq!(Scope::namespace(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn none_is_not_all() {
        assert_eq!(Partitions::of_scope(&Scope::none()).len(), 0);
        assert_eq!(Partitions::of_scope(&Scope::all()).len(), 1);
        assert_eq!(Scope::none().to_string(), "no namespaces");
        assert!(Scope::default().is_all() && !Scope::none().is_all());
    }
}
