use super::*;
use crate::{
    fixtures::{Stored, object, object_of, parse, short, short_delta},
    scope::Scope,
};
use proptest::prelude::*;
use serde_json::json;

mod model;

fn fifo() -> DeltaFifo {
    DeltaFifo::new(Partitions::of_scope(&Scope::all()))
}

fn at(version: u64) -> Position {
    Position { partition: 0, version: version.into() }
}

fn add(fifo: &mut DeltaFifo, key: &str, version: u64, known: &Stored) -> Offered {
    fifo.offer(Change::Added(object(key, version)), Some(at(version)), known)
}

fn update(fifo: &mut DeltaFifo, key: &str, version: u64, known: &Stored) -> Offered {
    fifo.offer(Change::Modified(object(key, version)), Some(at(version)), known)
}

fn delete(fifo: &mut DeltaFifo, key: &str, version: u64, known: &Stored) -> Offered {
    fifo.offer(Change::Deleted(object(key, version)), Some(at(version)), known)
}

fn replace(fifo: &mut DeltaFifo, objects: Vec<AnyObject>, version: u64, known: &Stored) {
    let mut staged = Staged::default();
    for object in objects {
        fifo.stage(&mut staged, object, Compare::Version, known);
    }
    fifo.replace(staged, at(version), known);
}

fn pop(fifo: &mut DeltaFifo, max: usize) -> Vec<String> {
    fifo.pop_expanded(max).map_or_else(Vec::new, |batch| batch.deltas.iter().map(short_delta).collect())
}

impl DeltaFifo {
    /// Stages a listed object as a reflector does.
    fn stage(&self, staged: &mut Staged, object: AnyObject, compare: Compare, known: &dyn Known) {
        if self.is_known(&object, compare, known) { staged.note(&object) } else { staged.insert(object) }
    }

    fn pop_expanded(&mut self, max: usize) -> Option<Batch> {
        self.pop(max).map(Batch::expanded)
    }

    fn resync_all(&mut self, known: &dyn Known) {
        self.resync(&known.keys_after(None, usize::MAX), known);
    }
}

/// Pops, stores and commits one batch.
fn apply(fifo: &mut DeltaFifo, max: usize, store: &mut Stored) -> Vec<String> {
    let Some(batch) = fifo.pop_expanded(max) else { return Vec::new() };
    batch.deltas.iter().for_each(|delta| store.apply(delta));
    fifo.commit();
    batch.deltas.iter().map(short_delta).collect()
}

#[test]
fn changes_come_out_in_the_order_they_went_in() {
    let (mut fifo, store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/b", 1, &store);
    add(&mut fifo, "ns/a", 2, &store);
    update(&mut fifo, "ns/b", 3, &store);
    delete(&mut fifo, "ns/a", 4, &store);
    assert_eq!(fifo.len(), 4);
    assert_eq!(pop(&mut fifo, 100), ["+b@1", "+a@2", "~b@3", "-a@4"]);
    assert_eq!(fifo.len(), 0);
    fifo.commit();
    assert!(fifo.pop_expanded(1).is_none());
}

#[test]
fn a_batch_is_a_prefix_and_the_rest_of_a_key_stays_queued() {
    let (mut fifo, mut store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/a", 1, &store);
    add(&mut fifo, "ns/b", 2, &store);
    update(&mut fifo, "ns/a", 3, &store);
    assert_eq!(apply(&mut fifo, 1, &mut store), ["+a@1"]);
    assert_eq!(fifo.list().iter().map(short).collect::<Vec<_>>(), ["b@2", "a@3"]);
    assert_eq!(apply(&mut fifo, 1, &mut store), ["+b@2"]);
    assert_eq!(apply(&mut fifo, 1, &mut store), ["~a@3"]);
}

#[test]
fn each_batch_says_how_far_it_reaches() {
    let (mut fifo, store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/a", 5, &store);
    fifo.bookmark(at(9));
    let batch = fifo.pop_expanded(1).unwrap();
    assert_eq!(batch.positions[&0], 5.into());
    fifo.commit();
    let batch = fifo.pop_expanded(1).unwrap();
    assert!(batch.deltas.is_empty());
    assert_eq!(batch.positions[&0], 9.into());
}

#[test]
fn bookmarks_in_a_row_are_one() {
    let (mut fifo, store) = (fifo(), Stored::default());
    (1..100).for_each(|version| fifo.bookmark(at(version)));
    assert_eq!(fifo.queue.len(), 1);
    assert_eq!(fifo.pop_expanded(10).unwrap().positions[&0], 99.into());
    fifo.commit();
    add(&mut fifo, "ns/a", 100, &store);
    fifo.bookmark(at(101));
    update(&mut fifo, "ns/a", 102, &store);
    // The change in between is not overtaken, although its key is filed under an older number.
    fifo.bookmark(at(103));
    let reached = std::iter::from_fn(|| {
        let batch = fifo.pop_expanded(1)?;
        fifo.commit();
        batch.positions.get(&0).map(ToString::to_string)
    });
    assert_eq!(reached.collect::<Vec<_>>(), ["100", "101", "102", "103"]);
}

#[test]
fn a_list_without_a_version_leaves_the_position_open() {
    let (mut fifo, store) = (fifo(), Stored::default());
    fifo.replace(Staged::default(), Position { partition: 0, version: ResourceVersion::unset() }, &store);
    let batch = fifo.pop_expanded(1).unwrap();
    assert_eq!((batch.replaced, batch.positions.len()), (Some(0), 0));
}

#[test]
fn a_replace_is_tombstones_then_list_order_in_one_batch() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1), object("ns/b", 2), object("ns/c", 3)]));
    update(&mut fifo, "ns/a", 5, &store);
    replace(&mut fifo, vec![object("ns/z", 8), object("ns/b", 7), object("ns/d", 6)], 9, &store);
    add(&mut fifo, "ns/e", 10, &store);
    assert_eq!(pop(&mut fifo, 100), ["~a@5"]);
    fifo.commit();
    let batch = fifo.pop_expanded(1).unwrap();
    let deltas: Vec<_> = batch.deltas.iter().map(short_delta).collect();
    assert_eq!(deltas, ["-a@5?", "-c@3?", "=z@8", "=b@7", "=d@6"]);
    assert_eq!((batch.replaced, &batch.positions[&0]), (Some(0), &9.into()));
    fifo.commit();
    assert_eq!(pop(&mut fifo, 100), ["+e@10"]);
}

#[test]
fn a_replace_carries_the_newest_state_that_was_queued() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1)]));
    update(&mut fifo, "ns/a", 5, &store);
    add(&mut fifo, "ns/only-queued", 6, &store);
    replace(&mut fifo, vec![], 9, &store);
    apply(&mut fifo, 100, &mut store.clone());
    assert_eq!(pop(&mut fifo, 100), ["-a@5?", "-only-queued@6?"]);
}

#[test]
fn a_replace_makes_no_second_delete() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1)]));
    delete(&mut fifo, "ns/a", 5, &store);
    replace(&mut fifo, vec![], 9, &store);
    assert_eq!(pop(&mut fifo, 100), ["-a@5"]);
    fifo.commit();
    assert!(pop(&mut fifo, 100).is_empty(), "the list itself, and no tombstone");
}

#[test]
fn a_queued_delete_does_not_swallow_the_listed_object() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1)]));
    delete(&mut fifo, "ns/a", 5, &store);
    replace(&mut fifo, vec![object_of("ns/a", "another", 7)], 9, &store);
    assert_eq!(pop(&mut fifo, 100), ["-a@5"]);
    fifo.commit();
    assert_eq!(pop(&mut fifo, 100), ["=a@7"]);
}

#[test]
fn unchanged_items_of_a_list_are_not_queued() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1), object("ns/b", 2)]));
    replace(&mut fifo, vec![object("ns/a", 1), object("ns/b", 3)], 9, &store);
    assert_eq!((fifo.len(), pop(&mut fifo, 100)), (1, vec!["=b@3".to_owned()]));
}

#[test]
fn in_a_new_epoch_content_decides() {
    let was =
        parse(&json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}, "data": {"x": "old"}}));
    let now =
        parse(&json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}, "data": {"x": "new"}}));
    let (fifo, store) = (fifo(), Stored::of([was.clone()]));
    let staged = |object: &AnyObject, compare| {
        let mut staged = Staged::default();
        fifo.stage(&mut staged, object.clone(), compare, &store);
        staged.take_changed().len()
    };
    assert_eq!(staged(&now, Compare::Version), 0, "within one history the version says it all");
    assert_eq!(staged(&now, Compare::Content), 1);
    assert_eq!(staged(&was, Compare::Content), 0);
}

#[test]
fn objects_without_a_version_are_compared_by_content() {
    let unset = |x: &str| parse(&json!({"metadata": {"name": "a", "uid": "u"}, "data": {"x": x}}));
    let (mut fifo, store) = (fifo(), Stored::of([unset("1")]));
    replace(&mut fifo, vec![unset("1")], 1, &store);
    assert_eq!(fifo.len(), 0);
    replace(&mut fifo, vec![unset("2")], 2, &store);
    assert_eq!(fifo.len(), 1);
}

#[test]
fn of_duplicate_items_the_last_one_counts() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/b", 1)]));
    let items = vec![object("ns/a", 5), object("ns/b", 1), object("ns/a", 6), object("ns/b", 7)];
    replace(&mut fifo, items, 9, &store);
    assert_eq!(pop(&mut fifo, 100), ["=a@6", "=b@7"]);
}

#[test]
fn deletes_while_a_list_streams_in_take_items_back() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 1)]));
    let mut staged = Staged::default();
    for object in [object("ns/a", 2), object("ns/b", 3), object("ns/c", 4)] {
        fifo.stage(&mut staged, object, Compare::Version, &store);
    }
    staged.remove(object("ns/a", 5).key());
    staged.remove(object("ns/b", 6).key());
    fifo.stage(&mut staged, object("ns/b", 7), Compare::Version, &store);
    fifo.replace(staged, at(9), &store);
    assert_eq!(pop(&mut fifo, 100), ["-a@1?", "=c@4", "=b@7"]);
}

#[test]
fn an_object_that_may_be_a_malformed_item_is_kept() {
    let store = Stored::of(["ns/a", "ns/c", "ns/e", "ns/g"].map(|key| object(key, 1)));
    let gone = |items: &[&str]| {
        let mut fifo = fifo();
        let mut staged = Staged::default();
        for item in items {
            match *item {
                "?" => staged.malformed(None),
                "ns/c?" => staged.malformed(Some(object("ns/c", 1).key())),
                key => fifo.stage(&mut staged, object(key, 1), Compare::Version, &store),
            }
        }
        fifo.replace(staged, at(9), &store);
        pop(&mut fifo, 100).into_iter().filter(|delta| delta.starts_with('-')).collect::<Vec<_>>()
    };
    assert_eq!(gone(&["ns/a", "ns/g"]), ["-c@1?", "-e@1?"]);
    assert_eq!(gone(&["ns/a", "ns/c?", "ns/g"]), ["-e@1?"], "c says that it is there");
    assert_eq!(gone(&["ns/a", "?", "ns/d", "ns/g"]), ["-e@1?"], "c may be the malformed one, e cannot");
    assert_eq!(gone(&["?", "?", "ns/c", "ns/e"]), ["-g@1?"], "open to the front");
    assert_eq!(gone(&["ns/a", "ns/b", "?"]), Vec::<String>::new(), "open to the back");
    assert_eq!(gone(&["ns/g", "?", "ns/a"]), Vec::<String>::new(), "out of order, it may be anything");
}

#[test]
fn a_replace_touches_only_its_partition() {
    let mut fifo = DeltaFifo::new(Partitions::of_scope(&Scope::namespaces(["x", "y"]).unwrap()));
    let store = Stored::of([object("x/a", 1), object("y/a", 2)]);
    fifo.offer(Change::Added(object("y/b", 3)), Some(Position { partition: 1, version: 3.into() }), &store);
    fifo.replace(Staged::default(), at(9), &store);
    let batch = fifo.pop_expanded(100).unwrap();
    assert_eq!(batch.deltas.iter().map(short_delta).collect::<Vec<_>>(), ["+b@3"]);
    fifo.commit();
    let batch = fifo.pop_expanded(100).unwrap();
    assert_eq!(batch.deltas.iter().map(short_delta).collect::<Vec<_>>(), ["-a@1?"]);
    assert_eq!(batch.positions.into_iter().collect::<Vec<_>>(), [(0, 9.into())]);
}

#[test]
fn deletes_of_the_unknown_and_second_deletes_are_no_news() {
    let (mut fifo, mut store) = (fifo(), Stored::of([object("ns/a", 1)]));
    assert_eq!(delete(&mut fifo, "ns/unknown", 2, &store), Offered::Known);
    assert_eq!(delete(&mut fifo, "ns/a", 3, &store), Offered::Queued);
    assert_eq!(delete(&mut fifo, "ns/a", 4, &store), Offered::Known);
    let popped = fifo.pop_expanded(100).unwrap();
    assert_eq!(popped.deltas.iter().map(short_delta).collect::<Vec<_>>(), ["-a@3"]);
    assert_eq!(popped.positions[&0], 4.into(), "the position goes on all the same");
    assert_eq!(delete(&mut fifo, "ns/a", 5, &store), Offered::Known, "in flight");
    popped.deltas.iter().for_each(|delta| store.apply(delta));
    fifo.commit();
    assert_eq!(delete(&mut fifo, "ns/a", 6, &store), Offered::Known, "gone");
}

#[test]
fn late_and_repeated_changes_are_not_queued() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/a", 5)]));
    assert_eq!(update(&mut fifo, "ns/a", 5, &store), Offered::Known);
    assert_eq!(update(&mut fifo, "ns/a", 4, &store), Offered::Stale);
    assert_eq!(delete(&mut fifo, "ns/a", 4, &store), Offered::Stale);
    assert_eq!(delete(&mut fifo, "ns/a", 7, &store), Offered::Queued);
    assert_eq!(add(&mut fifo, "ns/a", 6, &store), Offered::Stale, "older than its end");
    assert_eq!(add(&mut fifo, "ns/a", 8, &store), Offered::Queued);
    assert_eq!(fifo.len(), 2);
}

#[test]
fn judging_changes_nothing() {
    let (fifo, store) = (fifo(), Stored::of([object("ns/a", 5)]));
    let verdicts = [4, 5, 6].map(|version| fifo.judge(&Change::Modified(object("ns/a", version)), &store));
    assert_eq!(verdicts, [Offered::Stale, Offered::Known, Offered::Queued]);
    assert_eq!(fifo.len(), 0);
}

#[test]
fn a_delete_of_another_uid_deletes_the_known_object_unseen() {
    let (mut fifo, store) = (fifo(), Stored::of([object_of("ns/a", "first", 5)]));
    fifo.offer(Change::Deleted(object_of("ns/a", "second", 9)), Some(at(9)), &store);
    assert_eq!(pop(&mut fifo, 100), ["-a@5?"]);
}

#[test]
fn a_resync_skips_queued_and_deleted_objects() {
    let (mut fifo, store) = (fifo(), Stored::of(["ns/a", "ns/b", "ns/c"].map(|key| object(key, 1))));
    update(&mut fifo, "ns/b", 5, &store);
    delete(&mut fifo, "ns/c", 6, &store);
    fifo.resync_all(&store);
    fifo.resync_all(&store);
    assert_eq!(pop(&mut fifo, 100), ["~b@5", "-c@6", ".a@1"]);
}

#[test]
fn a_resync_of_nothing_is_nothing() {
    let mut fifo = fifo();
    fifo.resync_all(&Stored::default());
    assert!(fifo.pop_expanded(1).is_none());
}

/// Design §5.3: the object is neither queued nor stored while its batch is on the way.
#[test]
fn no_ghost_after_a_relist_while_the_object_is_in_flight() {
    let (mut fifo, mut store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/d", 5, &store);
    let in_flight = fifo.pop_expanded(100).unwrap();
    // The list does not have D, and no watch will ever report its end.
    replace(&mut fifo, vec![], 9, &store);
    in_flight.deltas.iter().for_each(|delta| store.apply(delta));
    fifo.commit();
    assert_eq!(apply(&mut fifo, 100, &mut store), ["-d@5?"]);
    assert!(store.0.is_empty(), "a ghost: {store:?}");
}

/// Design §5.3: the store still has the state before the one in flight.
#[test]
fn a_resync_does_not_bring_back_the_state_before_the_batch_in_flight() {
    let (mut fifo, mut store) = (fifo(), Stored::of([object("ns/a", 4)]));
    update(&mut fifo, "ns/a", 5, &store);
    let in_flight = fifo.pop_expanded(100).unwrap();
    fifo.resync_all(&store);
    in_flight.deltas.iter().for_each(|delta| store.apply(delta));
    fifo.commit();
    assert_eq!(apply(&mut fifo, 100, &mut store), [".a@5"]);
}

/// The same race, the other way round: what is in flight is a delete.
#[test]
fn nothing_rises_again_by_a_resync_or_relist_while_its_end_is_in_flight() {
    let (mut fifo, mut store) = (fifo(), Stored::of([object("ns/a", 4)]));
    delete(&mut fifo, "ns/a", 5, &store);
    let in_flight = fifo.pop_expanded(100).unwrap();
    fifo.resync_all(&store);
    replace(&mut fifo, vec![], 9, &store);
    in_flight.deltas.iter().for_each(|delta| store.apply(delta));
    fifo.commit();
    assert_eq!(apply(&mut fifo, 100, &mut store), Vec::<String>::new());
    assert!(store.0.is_empty());
}

#[test]
fn a_list_item_that_is_in_flight_is_no_news() {
    let (mut fifo, store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/a", 5, &store);
    let _in_flight = fifo.pop_expanded(100).unwrap();
    replace(&mut fifo, vec![object("ns/a", 5)], 9, &store);
    assert_eq!(fifo.len(), 0);
}

#[test]
fn an_empty_first_list_is_still_a_batch() {
    let (mut fifo, store) = (fifo(), Stored::default());
    replace(&mut fifo, vec![], 7, &store);
    let batch = fifo.pop_expanded(100).unwrap();
    assert!(batch.deltas.is_empty());
    assert_eq!((batch.replaced, &batch.positions[&0]), (Some(0), &7.into()));
}

#[test]
fn a_change_before_the_first_list_does_not_count_as_one() {
    let (mut fifo, store) = (fifo(), Stored::default());
    add(&mut fifo, "ns/a", 1, &store);
    assert_eq!(fifo.pop_expanded(100).unwrap().replaced, None);
    fifo.commit();
    fifo.bookmark(at(3));
    assert_eq!(fifo.pop_expanded(100).unwrap().replaced, None);
}

#[test]
fn two_lists_are_two_batches() {
    let (mut fifo, mut store) = (fifo(), Stored::default());
    replace(&mut fifo, vec![object("ns/a", 1)], 1, &store);
    replace(&mut fifo, vec![object("ns/b", 2)], 2, &store);
    assert_eq!(apply(&mut fifo, 100, &mut store), ["=a@1"]);
    assert_eq!(apply(&mut fifo, 100, &mut store), ["-a@1?", "=b@2"]);
}

#[test]
fn closed_nothing_comes_in_and_the_rest_goes_out() {
    let (mut fifo, store) = (fifo(), Stored::of([object("ns/x", 1)]));
    add(&mut fifo, "ns/a", 2, &store);
    fifo.close();
    assert!(fifo.is_closed());
    add(&mut fifo, "ns/b", 3, &store);
    replace(&mut fifo, vec![], 4, &store);
    fifo.resync_all(&store);
    fifo.bookmark(at(5));
    assert_eq!(pop(&mut fifo, 100), ["+a@2"]);
    fifo.commit();
    assert!(fifo.pop_expanded(100).is_none());
}

/// A delete of the old history is still queued, or in flight, when the server goes back.
#[test]
fn a_list_after_a_delete_decides_not_the_delete() {
    for in_flight in [false, true] {
        let (mut fifo, store) = (fifo(), Stored::of([object("ns/b", 152)]));
        delete(&mut fifo, "ns/b", 154, &store);
        if in_flight {
            fifo.pop_expanded(1);
        }
        replace(&mut fifo, vec![], 101, &store);
        assert_eq!(add(&mut fifo, "ns/b", 102, &store), Offered::Queued);
        assert_eq!(fifo.list().iter().map(short).collect::<Vec<_>>(), ["b@102"]);
    }
}

#[test]
fn an_object_kept_by_a_malformed_item_does_not_outlive_its_history() {
    let (mut fifo, mut store) = (fifo(), Stored::of([object("ns/a", 900)]));
    let mut staged = Staged::default();
    staged.malformed(Some(&"ns/a".parse().unwrap()));
    fifo.replace(staged, at(101), &store);
    assert_eq!(apply(&mut fifo, 1, &mut store), [""; 0]);
    assert_eq!(fifo.judge(&Change::Modified(object("ns/a", 900)), &store), Offered::Known);
    assert_eq!(update(&mut fifo, "ns/a", 102, &store), Offered::Queued);
    assert_eq!(apply(&mut fifo, 1, &mut store), ["~a@102"]);
    // Versions are compared again from here on.
    assert_eq!(update(&mut fifo, "ns/a", 101, &store), Offered::Stale);
}

/// Its last list before the restart had a malformed item in the place of the object.
#[test]
fn a_restored_object_of_an_earlier_history_may_be_replaced_by_a_lower_version() {
    let (mut fifo, mut store) = (fifo(), Stored::default());
    fifo.restore(vec![object("ns/a", 900), object("ns/b", 99)], at(101), SyncedBy::Proof);
    apply(&mut fifo, 1, &mut store);
    assert_eq!(update(&mut fifo, "ns/a", 102, &store), Offered::Queued);
    assert_eq!(update(&mut fifo, "ns/b", 98, &store), Offered::Stale);
}

#[test]
fn capacity_of_a_large_list_is_given_back() {
    let (mut fifo, mut store) = (fifo(), Stored::default());
    let objects = (0..20_000).map(|i| object(&format!("ns/{i}"), i + 1)).collect();
    replace(&mut fifo, objects, 20_000, &store);
    apply(&mut fifo, 1, &mut store);
    assert!(fifo.items.capacity() < 4096 && fifo.in_flight.changes.capacity() < 4096);
}

/// A list is one entry of the queue, but a resync queues each object.
#[test]
fn capacity_of_a_resync_of_all_objects_is_given_back() {
    let mut fifo = fifo();
    let store = Stored::of((0..20_000).map(|i| object(&format!("ns/{i}"), i + 1)));
    fifo.resync_all(&store);
    assert_eq!(fifo.len(), 20_000);
    while fifo.pop(1000).is_some() {
        fifo.commit();
    }
    assert!(fifo.items.capacity() < 4096 && fifo.in_flight.changes.capacity() < 4096);
}
