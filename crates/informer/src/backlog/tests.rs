use super::*;
use crate::{
    fixtures::{object, object_of, short_event},
    indexer::Indexer,
    scope::{Partitions, Scope},
};

mod model;

fn added(object: AnyObject) -> (Event<Value>, Option<AnyObject>) {
    (Event::Added { object, initial: false }, None)
}

fn updated(old: AnyObject, new: AnyObject) -> (Event<Value>, Option<AnyObject>) {
    (Event::Updated { old: old.clone(), new }, Some(old))
}

/// The end of what was seen in state `old`, reported with its final state.
fn deleted(old: AnyObject, last: AnyObject) -> (Event<Value>, Option<AnyObject>) {
    (Event::Deleted(Deleted::Seen(last)), Some(old))
}

/// A backlog with room for one event, which is taken by another object.
fn full() -> Backlog {
    let mut backlog = Backlog::new(1);
    push(&mut backlog, [added(object("ns/first", 1))]);
    backlog
}

fn push(backlog: &mut Backlog, events: impl IntoIterator<Item = (Event<Value>, Option<AnyObject>)>) {
    events.into_iter().for_each(|(event, seen)| backlog.push(event, seen));
}

fn drain(backlog: &mut Backlog) -> Vec<String> {
    std::iter::from_fn(|| backlog.next()).map(|event| short_event(&event)).collect()
}

/// The events after the first one.
fn net(events: impl IntoIterator<Item = (Event<Value>, Option<AnyObject>)>) -> Vec<String> {
    let mut backlog = full();
    push(&mut backlog, events);
    drain(&mut backlog).split_off(1)
}

fn snapshot(scope: &Scope, objects: impl IntoIterator<Item = AnyObject>) -> Arc<Contents> {
    let indexer = Indexer::new(Partitions::of_scope(scope));
    let mut store = indexer.begin();
    for object in objects {
        store.put(object);
    }
    store.publish().contents()
}

#[test]
fn up_to_the_bound_events_stay_as_they_are() {
    let mut backlog = Backlog::new(4);
    let [one, two, three] = [1, 2, 3].map(|version| object("ns/a", version));
    let events = [
        added(one.clone()),
        updated(one, two.clone()),
        updated(two.clone(), three.clone()),
        deleted(three, two),
    ];
    push(&mut backlog, events);
    assert_eq!((backlog.len(), backlog.coalesced()), (4, 0));
    assert_eq!(drain(&mut backlog), ["+a@1", "~a@1>2", "~a@2>3", "-a@2"]);
}

#[test]
fn unseen_and_present_is_an_add_of_the_latest() {
    let [one, two] = [2, 3].map(|version| object("ns/a", version));
    assert_eq!(net([added(one.clone()), updated(one, two)]), ["+a@3"]);
}

#[test]
fn unseen_and_deleted_is_nothing() {
    let [one, end] = [2, 3].map(|version| object("ns/a", version));
    assert!(net([added(one.clone()), deleted(one, end)]).is_empty());
}

#[test]
fn seen_and_the_same_object_is_one_update() {
    let [one, two, three] = [1, 2, 3].map(|version| object("ns/a", version));
    assert_eq!(net([updated(one, two.clone()), updated(two, three)]), ["~a@1>3"]);
}

#[test]
fn seen_and_deleted_is_a_delete() {
    let [one, two, end] = [1, 2, 3].map(|version| object("ns/a", version));
    assert_eq!(net([updated(one, two.clone()), deleted(two, end)]), ["-a@3"]);
}

#[test]
fn seen_and_another_object_is_an_end_and_an_add() {
    let [one, end] = [1, 2].map(|version| object_of("ns/a", "first", version));
    let another = object_of("ns/a", "second", 3);
    assert_eq!(
        net([deleted(one.clone(), end), added(another.clone())]),
        ["-a@2", "+a@3"],
        "the end was seen"
    );
    let unseen = Event::Deleted(Deleted::unknown(one.clone()));
    assert_eq!(net([(unseen, Some(one)), added(another)]), ["-a@1?", "+a@3"], "the end was not");
}

#[test]
fn of_several_objects_of_one_name_the_seen_and_the_last_are_delivered() {
    let first = object_of("ns/a", "first", 1);
    let second = object_of("ns/a", "second", 3);
    let third = object_of("ns/a", "third", 5);
    let story = [
        deleted(first.clone(), object_of("ns/a", "first", 2)),
        added(second.clone()),
        deleted(second, object_of("ns/a", "second", 4)),
    ];
    assert_eq!(net(story.clone()), ["-a@2"]);
    assert_eq!(net(story.into_iter().chain([added(third)])), ["-a@2", "+a@5"]);
}

#[test]
fn an_object_that_left_the_selection_and_came_back_is_an_update() {
    let [seen, left, back] = [1, 2, 3].map(|version| object("ns/a", version));
    assert_eq!(net([deleted(seen, left), added(back)]), ["~a@1>3"]);
}

#[test]
fn a_resync_of_a_pending_object_adds_nothing() {
    let [one, two] = [1, 2].map(|version| object("ns/a", version));
    assert_eq!(net([updated(one, two.clone()), updated(two.clone(), two.clone())]), ["~a@1>2"]);
    assert_eq!(net([updated(two.clone(), two)]), ["~a@2>2"]);
}

#[test]
fn net_effects_come_in_the_order_in_which_objects_were_touched() {
    let events = ["ns/c", "ns/a", "ns/b", "ns/a", "ns/c"].map(|key| added(object(key, 2)));
    assert_eq!(net(events), ["+c@2", "+a@2", "+b@2"]);
}

#[test]
fn coalescing_is_counted() {
    let mut backlog = full();
    let versions: Vec<_> = (1..=10).map(|version| object("ns/a", version)).collect();
    push(&mut backlog, versions.windows(2).map(|pair| updated(pair[0].clone(), pair[1].clone())));
    assert_eq!((backlog.len(), backlog.coalesced()), (2, 8));
}

#[test]
fn after_the_overflow_every_event_is_delivered_again() {
    let mut backlog = full();
    push(&mut backlog, [added(object("ns/a", 1))]);
    assert_eq!(drain(&mut backlog).len(), 2);
    push(&mut backlog, [added(object("ns/b", 2))]);
    assert!(backlog.overflow.is_empty());
    assert_eq!(drain(&mut backlog), ["+b@2"]);
}

#[test]
fn a_walk_is_a_cursor_and_not_a_copy() {
    let mut backlog = Backlog::new(1);
    let snapshot = snapshot(&Scope::all(), ["ns/b", "ns/a", "ns/c"].map(|key| object(key, 1)));
    backlog.walk(Arc::clone(&snapshot), None);
    assert_eq!((backlog.len(), Arc::strong_count(&snapshot)), (1, 2));
    push(&mut backlog, [updated(object("ns/a", 1), object("ns/a", 2))]);
    assert!(!backlog.is_walked());
    assert_eq!(drain(&mut backlog), ["+a@1!", "+b@1!", "+c@1!", "~a@1>2"]);
    // The listener drops it without its lock.
    drop(backlog.take_discarded());
    assert_eq!((backlog.is_walked(), Arc::strong_count(&snapshot)), (true, 1));
}

#[test]
fn a_walk_is_delivered_once_the_next_event_is_requested() {
    let mut backlog = Backlog::new(1);
    backlog.walk(snapshot(&Scope::all(), [object("ns/a", 1)]), None);
    assert!(backlog.next().is_some() && !backlog.is_walked(), "the handler may still be busy with it");
    assert!(backlog.next().is_none() && backlog.is_walked());
}

#[test]
fn a_walk_over_one_partition_leaves_out_the_others() {
    let mut backlog = Backlog::new(1);
    let scope = Scope::namespaces(["x", "y"]).unwrap();
    backlog.walk(snapshot(&scope, ["x/a", "y/b", "x/c"].map(|key| object(key, 1))), Some(0));
    assert_eq!(drain(&mut backlog), ["+a@1!", "+c@1!"]);
}

#[test]
fn cleared_it_holds_nothing() {
    let mut backlog = full();
    let snapshot = snapshot(&Scope::all(), [object("ns/a", 1)]);
    backlog.walk(Arc::clone(&snapshot), None);
    push(&mut backlog, [added(object("ns/b", 1)), added(object("ns/b", 2))]);
    drop(backlog.clear());
    assert_eq!((backlog.len(), backlog.is_walked(), Arc::strong_count(&snapshot)), (0, true, 1));
    assert_eq!(backlog.coalesced(), 1, "what was counted stays");
}

/// After a restore from a backup, an object may be back in an earlier state.
#[test]
fn seen_and_back_in_that_state_is_nothing() {
    let [one, two] = [1, 2].map(|version| object("ns/a", version));
    let then = |state: &AnyObject| [updated(one.clone(), two.clone()), updated(two.clone(), state.clone())];
    assert!(net(then(&one)).is_empty());
    let meta =
        serde_json::json!({"namespace": "ns", "name": "a", "uid": "uid-of-ns/a", "resourceVersion": "1"});
    let other = crate::fixtures::parse(&serde_json::json!({"metadata": meta, "data": "other"}));
    assert_eq!(net(then(&other)), ["~a@1>1"], "another state of the same version");
}

/// `ns/a` at a version, controlled by an owner.
fn owned(owner: &str, version: u64) -> AnyObject {
    let reference = serde_json::json!([{
        "apiVersion": "v1", "kind": "Owner", "name": owner, "uid": owner, "controller": true,
    }]);
    crate::fixtures::parse(&serde_json::json!({"metadata": {
        "namespace": "ns", "name": "a", "uid": "a", "resourceVersion": version.to_string(), "ownerReferences": reference,
    }}))
}

/// The owners that a handler would reconcile: those of old and new states.
fn owners(events: impl IntoIterator<Item = (Event<Value>, Option<AnyObject>)>) -> Vec<String> {
    let mut backlog = full();
    push(&mut backlog, events);
    backlog.next();
    let mut names = std::collections::BTreeSet::new();
    while let Some(event) = backlog.next() {
        let old = if let Event::Updated { old, .. } = &event { Some(old) } else { None };
        let states = old.into_iter().chain([event.object()]);
        names.extend(states.filter_map(|state| state.controller().map(|owner| owner.name.to_string())));
    }
    names.into_iter().collect()
}

#[test]
fn no_owner_of_coalesced_states_is_skipped() {
    let [x, y, z, w] = [("x", 1), ("y", 2), ("z", 3), ("w", 4)].map(|(owner, version)| owned(owner, version));
    let moves = || [updated(x.clone(), y.clone()), updated(y.clone(), z.clone())];
    assert_eq!(owners(moves()), ["x", "y", "z"]);
    assert_eq!(net(moves()), ["~a@1>2", "~a@2>3"]);
    let unseen = [added(x.clone()), updated(x.clone(), y.clone()), updated(y.clone(), z.clone())];
    assert_eq!(owners(unseen), ["x", "y", "z"]);
    let ended = [updated(x.clone(), y.clone()), deleted(y.clone(), y.clone())];
    assert_eq!(owners(ended), ["x", "y"]);
    let back = [updated(x.clone(), y.clone()), updated(y.clone(), owned("x", 5))];
    assert_eq!(owners(back), ["x", "y"]);
    let later = [updated(x.clone(), y.clone()), updated(y.clone(), owned("y", 6)), updated(owned("y", 6), w)];
    assert_eq!(owners(later), ["w", "x", "y"]);
}

#[test]
fn states_with_the_same_owner_are_one_event() {
    let moves = (1..50).map(|version| updated(owned("x", version), owned("x", version + 1)));
    assert_eq!(net(moves), ["~a@1>50"]);
    assert_eq!(net([added(owned("x", 1)), updated(owned("x", 1), owned("x", 2))]), ["+a@2"]);
    let flips = (1..1000).map(|version| {
        let owner = |version: u64| format!("o{}", version % 100);
        updated(owned(&owner(version), version), owned(&owner(version + 1), version + 1))
    });
    assert_eq!(net(flips).len(), MAX_OWNERS + 1, "bounded");
}
