//! The graph of owners and dependents, kept in step with the store.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::controllers::metadata::{Metadata, Observation};
use crate::storage::Stored;

/// Objects by key and by uid, and the dependents of each uid, whether or not an object has that uid.
///
/// Invariant: `dependents[u]` has exactly the keys of nodes with an owner reference to `u`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Arc<str>, Metadata>,
    keys: HashMap<String, Arc<str>>,
    dependents: HashMap<String, BTreeSet<Arc<str>>>,
    /// Uids of removed objects that still have dependents. Such an owner is known to be gone even if its kind is not served.
    removed: HashSet<String>,
}

impl Graph {
    pub(super) fn put(&mut self, stored: &Stored) {
        self.replace(&stored.key, Metadata::read(stored));
    }

    fn replace(&mut self, key: &Arc<str>, node: Option<Metadata>) {
        let old = self.unlink(key);
        if let Some(node) = node {
            for owner in &node.owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(Arc::clone(key));
            }
            self.keys.insert(node.uid.clone(), Arc::clone(key));
            self.nodes.insert(Arc::clone(key), node);
        }
        self.forget_owners(old.as_ref());
    }

    fn unlink(&mut self, key: &str) -> Option<Metadata> {
        let node = self.nodes.remove(key)?;
        self.keys.remove(&node.uid);
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        Some(node)
    }

    /// Forgets the removed owners of a node that have no dependents any more. Called when the node has been replaced: a
    /// dependent that changes stays one.
    fn forget_owners(&mut self, node: Option<&Metadata>) {
        for owner in node.into_iter().flat_map(|node| &node.owners) {
            if !self.dependents.contains_key(&owner.uid) {
                self.removed.remove(&owner.uid);
            }
        }
    }

    fn remove_object(&mut self, key: &str) -> Option<Metadata> {
        let node = self.unlink(key)?;
        self.forget_owners(Some(&node));
        if self.dependents.contains_key(&node.uid) {
            self.removed.insert(node.uid.clone());
        }
        Some(node)
    }

    /// Whether an object with this uid was removed and still has dependents.
    pub(super) fn was_removed(&self, uid: &str) -> bool {
        self.removed.contains(uid)
    }

    pub(super) fn node(&self, key: &str) -> Option<&Metadata> {
        self.nodes.get(key)
    }

    /// The object with a uid, if it may own objects of this namespace: it is in the same namespace, or in none.
    pub(super) fn owner(&self, uid: &str, namespace: &str) -> Option<&Metadata> {
        let node = self.nodes.get(self.keys.get(uid)?)?;
        (node.namespace.is_empty() || node.namespace == namespace).then_some(node)
    }

    /// Keys of the objects that refer to a uid as their owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Arc<str>> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Applies a change. Returns the keys to reconcile.
    pub(super) fn apply(&mut self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let key = change.key();
        let old = if change.is_removal() {
            self.remove_object(key)
        } else {
            let old = self.nodes.get(key).cloned();
            self.replace(key, change.metadata().cloned());
            old
        };
        let mut keys = Vec::new();
        if self.needs_collection(key) {
            keys.push(Arc::clone(key));
        }
        self.add_affected(key, old.as_ref(), &mut keys);
        keys
    }

    /// Adds the owners and dependents that a change of an object may concern.
    fn add_affected(&self, key: &str, old: Option<&Metadata>, keys: &mut Vec<Arc<str>>) {
        let new = self.nodes.get(key);
        let waits = new.is_some_and(Metadata::waits_for_dependents);
        let began = waits && !old.is_some_and(Metadata::waits_for_dependents);
        if let Some(gone) = old.filter(|old| new.is_none_or(|new| new.uid != old.uid)) {
            keys.extend(self.dependents(&gone.uid).cloned());
        }
        if let Some(node) = new.filter(|_| began) {
            keys.extend(self.dependents(&node.uid).cloned());
        }
        // An owner may be waiting for this object.
        for owner in old.into_iter().flat_map(|old| &old.owners) {
            let key = self.keys.get(&owner.uid);
            keys.extend(
                key.filter(|key| self.nodes.get(*key).is_some_and(Metadata::waits_for_dependents)).cloned(),
            );
        }
    }

    /// The keys of all objects that may have to be collected.
    pub(super) fn uncollected(&self) -> Vec<Arc<str>> {
        self.nodes.keys().filter(|key| self.needs_collection(key)).cloned().collect()
    }

    fn needs_collection(&self, key: &str) -> bool {
        let Some(node) = self.nodes.get(key) else { return false };
        let owner = |uid: &str| self.owner(uid, &node.namespace);
        node.is_orphaning()
            || node.waits_for_dependents()
            || node.owners.iter().any(|o| owner(&o.uid).is_none_or(Metadata::waits_for_dependents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dependent_that_changes_stays_one_of_its_removed_owner() {
        let mut graph = Graph::default();
        let (owner, dependent): (Arc<str>, Arc<str>) = ("owner".into(), "dependent".into());
        let node = |uid: &str, owners: &[&str]| {
            let owners: Vec<_> = owners.iter().map(|uid| json!({ "uid": uid })).collect();
            serde_json::from_value(json!({"uid": uid, "ownerReferences": owners})).ok()
        };
        graph.replace(&owner, node("1", &[]));
        graph.replace(&dependent, node("2", &["1"]));
        graph.remove_object(&owner);
        assert!(graph.was_removed("1"));
        graph.replace(&dependent, node("2", &["1"]));
        assert!(graph.was_removed("1"), "only an update");
        graph.replace(&dependent, node("2", &[]));
        assert!(!graph.was_removed("1") && graph.removed.is_empty());
    }
}
