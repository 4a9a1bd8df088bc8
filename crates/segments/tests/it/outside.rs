//! Bodies that are outside of the store until they are moved.

use crate::faulty::FaultyFile;
use kube_informer_segments::{Body, BodySource, OutsideBody, ReadError, SegmentStore, StoreOptions};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

const BODIES: usize = 5000;

/// Bodies of different lengths, some of which cannot be read while `fails` is set.
#[derive(Default)]
struct Source {
    reads: AtomicUsize,
    fails: AtomicBool,
}

fn content(number: usize) -> Vec<u8> {
    (number as u64).to_le_bytes().repeat(1 + number % 40)
}

impl BodySource for Source {
    fn read(&self, number: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        self.reads.fetch_add(1, Relaxed);
        if self.fails.load(Relaxed) && number.is_multiple_of(1000) {
            return Err(ReadError::WrongBytes);
        }
        buffer.clear();
        buffer.extend_from_slice(&content(number as usize));
        Ok(())
    }
}

fn adopt(store: &SegmentStore) -> (Arc<Source>, Vec<Body>) {
    adopt_some(store, BODIES)
}

fn adopt_some(store: &SegmentStore, count: usize) -> (Arc<Source>, Vec<Body>) {
    let source = Arc::new(Source::default());
    let known = |number: usize| OutsideBody {
        number: number as u32,
        tag: number as u64,
        len: content(number).len() as u32,
    };
    let known: Vec<_> = (0..count).map(known).collect();
    let bodies = store.adopt(&(Arc::clone(&source) as Arc<dyn BodySource>), &known);
    (source, bodies)
}

fn check(bodies: &[Body], which: impl Iterator<Item = usize>) {
    let mut buffer = Vec::new();
    for (body, number) in bodies.iter().zip(which) {
        assert_eq!(body.read(&mut buffer).unwrap(), number as u64);
        assert_eq!(buffer, content(number), "body {number}");
    }
}

fn compact(store: &SegmentStore) {
    store.move_adopted();
    for _ in 0..10_000 {
        while store.is_spill_due() {
            store.spill().unwrap();
        }
        if !store.compact(4096, |_, _, _| None).more {
            return;
        }
    }
    panic!("compaction does not end");
}

#[test]
fn they_are_read_from_the_source_until_they_are_moved() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt(&store);
    assert_eq!(source.reads.load(Relaxed), 0);
    assert_eq!((bodies[7].tag(), bodies[7].len(), bodies[7].is_in_memory()), (7, content(7).len(), false));
    assert!(store.may_block());
    let usage = store.usage();
    assert_eq!((usage.live, usage.disk_live), (0, store.live_bytes()), "{usage:?}");
    check(&bodies, 0..);
    assert!(!store.compact(4096, |_, _, _| None).more, "not before they may be moved");
    assert_eq!(source.reads.load(Relaxed), BODIES);

    compact(&store);
    let usage = store.usage();
    assert_eq!((usage.live, usage.disk_live, usage.disk_garbage), (store.live_bytes(), 0, 0), "{usage:?}");
    assert!(!store.may_block() && bodies.iter().all(Body::is_in_memory));
    assert_eq!(Arc::strong_count(&source), 1, "it is not needed any more");
    check(&bodies, 0..);
    assert_eq!(source.reads.load(Relaxed), 2 * BODIES, "moved once each");
}

#[test]
fn those_that_are_dropped_are_not_moved() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt(&store);
    let kept: Vec<_> = bodies.into_iter().step_by(3).collect();
    compact(&store);
    assert_eq!(source.reads.load(Relaxed), kept.len());
    check(&kept, (0..).step_by(3));
    drop(kept);
    assert_eq!((store.live_bytes(), store.usage().segments), (0, 1), "one is open");
    let (source, bodies) = adopt(&store);
    drop(bodies);
    assert_eq!((Arc::strong_count(&source), store.may_block()), (1, false));
}

#[test]
fn one_that_cannot_be_read_is_lost_until_it_can_be() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt(&store);
    source.fails.store(true, Relaxed);
    compact(&store);
    let mut buffer = Vec::new();
    let lost: Vec<_> = (0..BODIES).filter(|&number| bodies[number].is_lost()).collect();
    assert_eq!((lost, store.lost()), (vec![0, 1000, 2000, 3000, 4000], 5));
    assert!(bodies[1000].read(&mut buffer).is_err() && buffer.is_empty());
    assert!(!store.may_block(), "compaction leaves them alone");
    source.fails.store(false, Relaxed);
    check(&bodies, 0..);
    assert_eq!(store.lost(), 0);
}

#[test]
fn moving_blocks_as_long_as_bodies_are_read_from_the_source() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt_some(&store, 500);
    source.fails.store(true, Relaxed);
    store.move_adopted();
    while store.may_block() {
        assert!(store.compact(8, |_, _, _| None).more);
    }
    let reads = source.reads.load(Relaxed);
    while store.compact(4096, |_, _, _| None).more {}
    assert_eq!(source.reads.load(Relaxed), reads, "a step blocked although none may block");
    drop(bodies);
}

#[test]
fn a_segment_that_was_given_up_is_emptied_later() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt_some(&store, 100);
    source.fails.store(true, Relaxed);
    store.move_adopted();
    let panic = |_, _: &[u8], _: &mut Vec<u8>| panic!("in the middle of a segment");
    assert!(catch_unwind(AssertUnwindSafe(|| store.compact(4096, panic))).is_err());
    while store.compact(4096, |_, _, _| None).more {}
    assert_eq!((store.may_block(), store.lost()), (false, 1));
    check(&bodies[1..], 1..100);
    assert!(bodies[1..].iter().all(Body::is_in_memory), "the one that cannot be read stays where it is");
}

#[test]
fn rewriting_moves_them_too() {
    let store = SegmentStore::new();
    let (source, bodies) = adopt(&store);
    source.fails.store(true, Relaxed);
    store.begin_rewrite();
    while store.rewrite(4096, |tag, _, _| Some(tag).filter(|_| false)).more {}
    assert!(!store.may_block(), "nothing is left for compaction");
    source.fails.store(false, Relaxed);
    check(&bodies, 0..);
}

#[test]
fn a_store_on_disk_writes_them_to_its_file() {
    let file = FaultyFile::default();
    let store = SegmentStore::on_disk(StoreOptions::default(), file.options().cache_bytes(0), ());
    let (source, bodies) = adopt(&store);
    compact(&store);
    assert_eq!(Arc::strong_count(&source), 1);
    let usage = store.usage();
    assert!(usage.disk_live > usage.live, "{usage:?}");
    check(&bodies, 0..);
}
