//! Who may be concerned by a change, found without asking everybody.

use std::collections::{BTreeMap, BTreeSet};

use super::filter::{Filter, field};
use super::request::Scope;
use crate::storage::{Change, Stored};

/// Watchers by what they pin: a scope, and within it one field with one value if their selector demands that. A pod that moves from one
/// node to another concerns the watchers of two nodes, not of five thousand.
///
/// Ordered throughout, so that the same watchers are always woken in the same order.
#[derive(Default)]
pub(super) struct Interest {
    scopes: BTreeMap<Scope, Within>,
}

#[derive(Default)]
struct Within {
    /// Those who pin no field.
    any: BTreeSet<usize>,
    /// Field, value, watchers.
    pinned: BTreeMap<Box<str>, BTreeMap<Box<str>, BTreeSet<usize>>>,
}

impl Interest {
    pub(super) fn add(&mut self, filter: &Filter, slot: usize) {
        let within = self.scopes.entry(filter.scope().clone()).or_default();
        match filter.pinned() {
            None => within.any.insert(slot),
            Some((field, value)) => {
                let values = within.pinned.entry(field.into()).or_default();
                values.entry(value.into()).or_default().insert(slot)
            }
        };
    }

    pub(super) fn remove(&mut self, filter: &Filter, slot: usize) {
        let Some(within) = self.scopes.get_mut(filter.scope()) else { return };
        match filter.pinned() {
            None => {
                within.any.remove(&slot);
            }
            Some((field, value)) => {
                let Some(values) = within.pinned.get_mut(field) else { return };
                let Some(slots) = values.get_mut(value) else { return };
                slots.remove(&slot);
                if slots.is_empty() {
                    values.remove(value);
                }
                if values.is_empty() {
                    within.pinned.remove(field);
                }
            }
        }
        if within.any.is_empty() && within.pinned.is_empty() {
            self.scopes.remove(filter.scope());
        }
    }

    /// Calls for each watcher whose scope and pinned field fit the version before or after; for some twice.
    pub(super) fn concerned(&self, change: &Change, mut call: impl FnMut(usize)) {
        for within in scopes(change).iter().filter_map(|scope| self.scopes.get(scope)) {
            within.any.iter().copied().for_each(&mut call);
            for (name, values) in &within.pinned {
                // A version written before the field became selectable may have any value: all who pin one must look.
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

/// The scopes a change falls into: everything, its namespace, the object itself with and without a namespace.
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

    fn concerned(
        interest: &Interest,
        previous: Option<Arc<Stored>>,
        current: Option<Arc<Stored>>,
    ) -> Vec<usize> {
        let mut slots = BTreeSet::new();
        interest.concerned(&Change { revision: 1, previous, current }, |slot| {
            slots.insert(slot);
        });
        slots.into_iter().collect()
    }

    #[test]
    fn a_move_concerns_both_sides_and_who_pins_nothing() {
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
        let mut interest = Interest::default();
        filters.iter().enumerate().for_each(|(slot, filter)| interest.add(filter, slot));
        assert_eq!(concerned(&interest, on("n1"), on("n2")), [0, 1, 2, 4, 6, 8, 10]);
        assert_eq!(concerned(&interest, None, on("")), [0, 4, 6, 8, 9, 10]);
        assert_eq!(concerned(&interest, on("n3"), None), [0, 3, 4, 6, 8, 10]);
        filters.iter().enumerate().for_each(|(slot, filter)| interest.remove(filter, slot));
        assert!(interest.scopes.is_empty(), "nothing is left behind");
    }
}
