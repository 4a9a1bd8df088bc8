//! An index of watchers by scope and field selector, to find those affected by a change without visiting all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::filter::{Filter, field};
use super::request::Scope;
use crate::storage::{Change, Stored};

/// The slots of watchers by scope and, scope a scope, by the field value that their selector requires. A pod that moves from one node
/// to another then affects the watchers of two nodes, not of five thousand.
///
/// All maps are ordered, so that the same watchers are always woken in the same order.
#[derive(Default)]
pub(super) struct WatcherIndex {
    scopes: BTreeMap<Scope, ScopeIndex>,
}

#[derive(Default)]
struct ScopeIndex {
    /// Watchers whose selector requires no field value.
    any: BTreeSet<usize>,
    /// Field, value, watchers.
    by_field: BTreeMap<Box<str>, BTreeMap<Box<str>, BTreeSet<usize>>>,
}

impl WatcherIndex {
    pub(super) fn add(&mut self, filter: &Filter, slot: usize) {
        let scope = self.scopes.entry(filter.scope().clone()).or_default();
        match filter.required_field() {
            None => scope.any.insert(slot),
            Some((field, value)) => {
                let values = scope.by_field.entry(field.into()).or_default();
                values.entry(value.into()).or_default().insert(slot)
            }
        };
    }

    pub(super) fn remove(&mut self, filter: &Filter, slot: usize) {
        let Some(scope) = self.scopes.get_mut(filter.scope()) else { return };
        match filter.required_field() {
            None => {
                scope.any.remove(&slot);
            }
            Some((field, value)) => {
                let Some(values) = scope.by_field.get_mut(field) else { return };
                let Some(slots) = values.get_mut(value) else { return };
                slots.remove(&slot);
                if slots.is_empty() {
                    values.remove(value);
                }
                if values.is_empty() {
                    scope.by_field.remove(field);
                }
            }
        }
        if scope.any.is_empty() && scope.by_field.is_empty() {
            self.scopes.remove(filter.scope());
        }
    }

    /// Calls `call` for each watcher whose scope and required field value match the previous or the current version. A watcher may be
    /// visited twice.
    pub(super) fn for_each_candidate(&self, change: &Change, mut call: impl FnMut(usize)) {
        for scope in scopes(change).iter().filter_map(|scope| self.scopes.get(scope)) {
            scope.any.iter().copied().for_each(&mut call);
            for (name, values) in &scope.by_field {
                // A version written before the field became selectable may have any value: every watcher of the field is a candidate.
                if versions(change).any(|stored| field(stored, name).is_none()) {
                    values.values().flatten().copied().for_each(&mut call);
                    continue;
                }
                let value = |stored: &Stored| values.get(field(stored, name).unwrap_or_default());
                for slots in versions(change).filter_map(value) {
                    slots.iter().copied().for_each(&mut call);
                }
            }
        }
    }
}

fn versions(change: &Change) -> impl Iterator<Item = &Stored> {
    [&change.previous, &change.current].into_iter().flatten().map(|stored| &**stored)
}

/// The scopes that include the changed object: everything, its namespace, the object itself with and without a namespace.
fn scopes(change: &Change) -> [Scope; 4] {
    let mut parts = change.key().rsplit('/');
    let name = parts.next().unwrap_or_default().to_owned();
    let namespace = parts.next().unwrap_or_default().to_owned();
    [
        Scope::All,
        Scope::Namespace(namespace.clone()),
        Scope::Object { namespace: Some(namespace), name: name.clone() },
        Scope::Object { namespace: None, name },
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::storage::Document;
    use crate::watch_cache::Resource;

    fn filter(scope: Scope, fields: &str) -> Filter {
        let pods = Resource { prefix: "/pods/".to_owned(), namespaced: true, cached: true };
        Filter::new(&pods, &scope, &Default::default(), &fields.parse().unwrap())
    }

    fn on(node: &str) -> Option<Arc<Stored>> {
        let document = Document::encode(&json!({"metadata": {}}), [("spec.nodeName", node)]).unwrap();
        Some(Arc::new(Stored { key: "/pods/a/x".into(), revision: 1, document }))
    }

    fn candidates(
        index: &WatcherIndex,
        previous: Option<Arc<Stored>>,
        current: Option<Arc<Stored>>,
    ) -> Vec<usize> {
        let mut slots = BTreeSet::new();
        index.for_each_candidate(&Change { revision: 1, previous, current }, |slot| {
            slots.insert(slot);
        });
        slots.into_iter().collect()
    }

    #[test]
    fn a_moved_object_affects_the_watchers_of_both_values_and_of_no_value() {
        let filters = [
            filter(Scope::All, ""),
            filter(Scope::All, "spec.nodeName=n1"),
            filter(Scope::All, "spec.nodeName=n2"),
            filter(Scope::All, "spec.nodeName=n3"),
            filter(Scope::Namespace("a".to_owned()), ""),
            filter(Scope::Namespace("b".to_owned()), ""),
            filter(Scope::Namespace("a".to_owned()), "metadata.name=x"),
            filter(Scope::Namespace("a".to_owned()), "metadata.name=y"),
            filter(Scope::All, "metadata.name=x"),
            filter(Scope::All, "spec.nodeName="),
            filter(Scope::All, "spec.nodeName!=n1"),
        ];
        let mut index = WatcherIndex::default();
        filters.iter().enumerate().for_each(|(slot, filter)| index.add(filter, slot));
        assert_eq!(candidates(&index, on("n1"), on("n2")), [0, 1, 2, 4, 6, 8, 10]);
        assert_eq!(candidates(&index, None, on("")), [0, 4, 6, 8, 9, 10]);
        assert_eq!(candidates(&index, on("n3"), None), [0, 3, 4, 6, 8, 10]);
        filters.iter().enumerate().for_each(|(slot, filter)| index.remove(filter, slot));
        assert!(index.scopes.is_empty(), "removing all watchers empties the index");
    }
}
