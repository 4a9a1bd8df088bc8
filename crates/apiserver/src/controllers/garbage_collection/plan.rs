//! The decision of garbage collection about one object: a pure function of the graph.

use std::sync::Arc;

use super::graph::Graph;
use crate::controllers::metadata::{Metadata, Owner};
use crate::verbs::delete::PropagationPolicy;

/// The action for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// Remove the owner from these dependents, then its finalizer.
    Orphan {
        uid: String,
        dependents: Vec<Arc<str>>,
    },
    /// No dependent blocks the deletion: remove the finalizer.
    StopWaiting {
        uid: String,
    },
    /// Remove these owners; others are left.
    Release {
        uid: String,
        owners: Vec<String>,
    },
    /// No owner is left. `unblock` first makes its owners stop waiting for it, because they would wait for each other.
    Delete {
        uid: String,
        policy: PropagationPolicy,
        unblock: bool,
    },
}

/// The owners of a dependent by their state.
#[derive(Default)]
struct Owners<'o> {
    /// They exist and stay.
    solid: usize,
    /// They do not exist.
    dangling: Vec<&'o Owner>,
    /// They are being deleted and wait for their dependents.
    waiting: Vec<&'o Owner>,
}

impl Graph {
    /// `served` returns whether a kind is served, by apiVersion and kind: an owner of an unknown kind may exist.
    pub(super) fn plan(&self, key: &str, served: impl Fn(&str, &str) -> bool) -> Plan {
        let Some(node) = self.node(key) else { return Plan::Nothing };
        let uid = node.uid.clone();
        if node.is_orphaning() {
            return Plan::Orphan { dependents: self.dependents(&uid).cloned().collect(), uid };
        }
        if node.waits_for_dependents() {
            let blocked = self.dependents(&uid).any(|key| self.blocks(key, &uid));
            return if blocked { Plan::Nothing } else { Plan::StopWaiting { uid } };
        }
        if node.is_deleting() || node.owners.is_empty() {
            return Plan::Nothing;
        }
        self.plan_dependent(node, served)
    }

    fn plan_dependent(&self, node: &Metadata, served: impl Fn(&str, &str) -> bool) -> Plan {
        let uid = node.uid.clone();
        let owners = self.classify(node, served);
        if owners.solid > 0 {
            let gone: Vec<String> =
                owners.dangling.iter().chain(&owners.waiting).map(|owner| owner.uid.clone()).collect();
            return if gone.is_empty() { Plan::Nothing } else { Plan::Release { uid, owners: gone } };
        }
        if !owners.waiting.is_empty() && self.dependents(&uid).next().is_some() {
            let circle = |key: &Arc<str>| self.node(key).is_some_and(Metadata::waits_for_dependents);
            let unblock = self.dependents(&uid).any(circle);
            return Plan::Delete { uid, policy: PropagationPolicy::Foreground, unblock };
        }
        Plan::Delete { uid, policy: node.policy(), unblock: false }
    }

    fn classify<'n>(&self, node: &'n Metadata, served: impl Fn(&str, &str) -> bool) -> Owners<'n> {
        let mut owners = Owners::default();
        for owner in &node.owners {
            match self.owner(&owner.uid, &node.namespace) {
                Some(found) if found.waits_for_dependents() => owners.waiting.push(owner),
                None if self.was_removed(&owner.uid) || served(&owner.api_version, &owner.kind) => {
                    owners.dangling.push(owner);
                }
                Some(_) | None => owners.solid += 1,
            }
        }
        owners
    }

    fn blocks(&self, key: &str, owner: &str) -> bool {
        let owners = self.node(key).into_iter().flat_map(|node| &node.owners);
        owners.into_iter().any(|o| o.uid == owner && o.blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Document, Stored};
    use serde_json::{Value, json};

    fn graph(objects: &[(&str, Value)]) -> Graph {
        let mut graph = Graph::default();
        for (key, mut metadata) in objects.iter().cloned() {
            metadata["namespace"] = "a".into();
            let document = Document::encode(&json!({"metadata": metadata}), []).unwrap();
            graph.put(&Stored { key: key.into(), revision: 1, document });
        }
        graph
    }

    fn plan(graph: &Graph, key: &str) -> Plan {
        graph.plan(key, |_, kind| kind == "Known")
    }

    fn owned_by(uid: &str) -> Value {
        json!({"uid": uid, "apiVersion": "v1", "kind": "Known", "name": "x", "blockOwnerDeletion": true})
    }

    fn going(uid: &str, finalizers: &[&str]) -> Value {
        json!({"uid": uid, "deletionTimestamp": "t", "deletionGracePeriodSeconds": 0, "finalizers": finalizers})
    }

    #[test]
    fn a_dependent_goes_with_its_last_owner() {
        let two = json!({"uid": "d", "ownerReferences": [owned_by("o"), owned_by("gone")]});
        let both = graph(&[("/x/a/o", json!({"uid": "o"})), ("/x/a/d", two.clone())]);
        assert_eq!(plan(&both, "/x/a/d"), Plan::Release { uid: "d".into(), owners: vec!["gone".into()] });
        let none = graph(&[("/x/a/d", two)]);
        assert_eq!(
            plan(&none, "/x/a/d"),
            Plan::Delete { uid: "d".into(), policy: PropagationPolicy::Background, unblock: false }
        );
        let held = json!({"uid": "d", "finalizers": ["orphan"], "ownerReferences": [owned_by("gone")]});
        let held = graph(&[("/x/a/d", held)]);
        assert_eq!(
            plan(&held, "/x/a/d"),
            Plan::Delete { uid: "d".into(), policy: PropagationPolicy::Orphan, unblock: false }
        );
    }

    #[test]
    fn owners_of_unknown_kinds_count_as_existing() {
        let unknown = json!({"uid": "d", "ownerReferences": [{"uid": "gone", "apiVersion": "x/v1", "kind": "Widget", "name": "w"}]});
        assert_eq!(plan(&graph(&[("/x/a/d", unknown)]), "/x/a/d"), Plan::Nothing);
        let elsewhere = json!({"uid": "d", "ownerReferences": [owned_by("o")]});
        let mut graph = graph(&[("/x/a/d", elsewhere)]);
        let other = Document::encode(&json!({"metadata": {"uid": "o", "namespace": "b"}}), []).unwrap();
        graph.put(&Stored { key: "/x/b/o".into(), revision: 1, document: other });
        assert!(
            matches!(plan(&graph, "/x/a/d"), Plan::Delete { .. }),
            "an owner in another namespace does not count"
        );
    }

    #[test]
    fn in_the_foreground_dependents_go_first() {
        let dependent = json!({"uid": "d", "ownerReferences": [owned_by("o")]});
        let objects = [("/x/a/o", going("o", &["foregroundDeletion"])), ("/x/a/d", dependent)];
        let graph = graph(&objects);
        assert_eq!(plan(&graph, "/x/a/o"), Plan::Nothing, "it waits");
        assert_eq!(
            plan(&graph, "/x/a/d"),
            Plan::Delete { uid: "d".into(), policy: PropagationPolicy::Background, unblock: false }
        );
        let alone = super::tests::graph(&objects[..1]);
        assert_eq!(plan(&alone, "/x/a/o"), Plan::StopWaiting { uid: "o".into() });
    }

    #[test]
    fn a_circle_is_broken() {
        let mut o = going("o", &["foregroundDeletion"]);
        o["ownerReferences"] = json!([owned_by("d")]);
        let d = json!({"uid": "d", "ownerReferences": [owned_by("o")]});
        let graph = graph(&[("/x/a/o", o), ("/x/a/d", d)]);
        assert_eq!(
            plan(&graph, "/x/a/d"),
            Plan::Delete { uid: "d".into(), policy: PropagationPolicy::Foreground, unblock: true }
        );
    }

    #[test]
    fn an_object_that_blocks_its_own_deletion_stays() {
        // kube-controller-manager finds the object among its own blocking dependents and waits for ever.
        let mut own = going("o", &["foregroundDeletion"]);
        own["ownerReferences"] = json!([owned_by("o")]);
        assert_eq!(plan(&graph(&[("/x/a/o", own.clone())]), "/x/a/o"), Plan::Nothing);
        own["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
        assert_eq!(plan(&graph(&[("/x/a/o", own)]), "/x/a/o"), Plan::StopWaiting { uid: "o".into() });
    }

    #[test]
    fn orphans_lose_their_owner_and_stay() {
        let d = json!({"uid": "d", "ownerReferences": [owned_by("o")]});
        let graph = graph(&[("/x/a/o", going("o", &["orphan", "other"])), ("/x/a/d", d)]);
        assert_eq!(
            plan(&graph, "/x/a/o"),
            Plan::Orphan { uid: "o".into(), dependents: vec!["/x/a/d".into()] }
        );
        assert_eq!(plan(&graph, "/x/a/d"), Plan::Nothing);
    }
}
