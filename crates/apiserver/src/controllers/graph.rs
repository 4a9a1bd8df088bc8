//! Who belongs to whom: kept in step with the store by what it tells.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Switches;
use super::node::Node;
use crate::storage::{Change, Stored};

/// Where pods are stored.
const PODS: &str = "/pods/";

/// Objects by key and by uid, and the dependents of each uid, whether or not it exists.
///
/// Invariant: `dependents[u]` has exactly the keys of nodes with an owner reference to `u`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Arc<str>, Node>,
    keys: HashMap<String, Arc<str>>,
    dependents: HashMap<String, BTreeSet<Arc<str>>>,
    /// Uids of which we have seen the end, as long as somebody refers to them: no kind has to be looked up to know that they are gone.
    gone: HashSet<String>,
}

impl Graph {
    pub(super) fn put(&mut self, stored: &Stored) {
        self.remove(&stored.key);
        let Some(node) = Node::read(stored) else { return };
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(Arc::clone(&stored.key));
        }
        self.keys.insert(node.uid.clone(), Arc::clone(&stored.key));
        self.nodes.insert(Arc::clone(&stored.key), node);
    }

    fn remove(&mut self, key: &str) -> Option<Node> {
        let node = self.nodes.remove(key)?;
        self.keys.remove(&node.uid);
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                    self.gone.remove(&owner.uid);
                }
            }
        }
        Some(node)
    }

    fn end(&mut self, key: &str) -> Option<Node> {
        let node = self.remove(key)?;
        if self.dependents.contains_key(&node.uid) {
            self.gone.insert(node.uid.clone());
        }
        Some(node)
    }

    /// Whether an object with this uid has been there and is no more.
    pub(super) fn has_ended(&self, uid: &str) -> bool {
        self.gone.contains(uid)
    }

    pub(super) fn node(&self, key: &str) -> Option<&Node> {
        self.nodes.get(key)
    }

    /// The object with a uid, as somebody in this namespace may own it: in the same namespace, or in none.
    pub(super) fn owner(&self, uid: &str, namespace: &str) -> Option<&Node> {
        let node = self.nodes.get(self.keys.get(uid)?)?;
        (node.namespace.is_empty() || node.namespace == namespace).then_some(node)
    }

    /// Keys of those who refer to a uid as their owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Arc<str>> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Repeats a change; gives the keys that may need to be looked at now.
    pub(super) fn apply(&mut self, change: &Change, switches: Switches) -> Vec<Arc<str>> {
        let key = change.key();
        let old = match &change.current {
            Some(stored) => {
                let old = self.nodes.get(key).cloned();
                self.put(stored);
                old
            }
            None => self.end(key),
        };
        let mut look = Vec::new();
        if self.is_interesting(key, switches) {
            look.push(Arc::clone(key));
        }
        if switches.garbage_collection {
            self.look_around(key, old.as_ref(), &mut look);
        }
        look
    }

    /// Those whom a change of another may concern.
    fn look_around(&self, key: &str, old: Option<&Node>, look: &mut Vec<Arc<str>>) {
        let new = self.nodes.get(key);
        let waits = new.is_some_and(Node::waits_for_dependents);
        let began = waits && !old.is_some_and(Node::waits_for_dependents);
        if let Some(gone) = old.filter(|old| new.is_none_or(|new| new.uid != old.uid)) {
            look.extend(self.dependents(&gone.uid).cloned());
        }
        if let Some(node) = new.filter(|_| began) {
            look.extend(self.dependents(&node.uid).cloned());
        }
        // An owner may have waited for this one.
        for owner in old.into_iter().flat_map(|old| &old.owners) {
            let key = self.keys.get(&owner.uid);
            look.extend(
                key.filter(|key| self.nodes.get(*key).is_some_and(Node::waits_for_dependents)).cloned(),
            );
        }
    }

    /// Every key that may need to be looked at.
    pub(super) fn interesting(&self, switches: Switches) -> Vec<Arc<str>> {
        self.nodes.keys().filter(|key| self.is_interesting(key, switches)).cloned().collect()
    }

    fn is_interesting(&self, key: &str, switches: Switches) -> bool {
        let Some(node) = self.nodes.get(key) else { return false };
        if switches.finalize_pods && is_pod(key) && node.is_stopping() {
            return true;
        }
        let owner = |uid: &str| self.owner(uid, &node.namespace);
        switches.garbage_collection
            && (node.is_orphaning()
                || node.waits_for_dependents()
                || node.owners.iter().any(|o| owner(&o.uid).is_none_or(Node::waits_for_dependents)))
    }
}

pub(super) fn is_pod(key: &str) -> bool {
    key.starts_with(PODS)
}
