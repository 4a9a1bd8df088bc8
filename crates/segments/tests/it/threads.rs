//! Readers, a writer and compaction at once.

use kube_informer_segments::{Body, SegmentStore, StoreOptions};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

const BODIES: usize = 300;
const WRITES: u64 = 30_000;

/// The content of a body: its tag again and again, so that any mixture of two bodies shows.
fn content(tag: u64) -> Vec<u8> {
    tag.to_le_bytes().repeat((tag % 97) as usize)
}

fn check(body: &Body, buffer: &mut Vec<u8>) {
    let tag = body.read(buffer).unwrap();
    assert_eq!(*buffer, content(tag));
}

#[test]
fn readers_see_whole_bodies_while_they_move() {
    let mut options = StoreOptions::default();
    options.segment_bytes = 8 << 10;
    options.garbage_percent = 2;
    let store = SegmentStore::with_options(options);
    let bodies: Arc<Vec<Mutex<Arc<Body>>>> = Arc::new(
        (0..BODIES).map(|n| Mutex::new(Arc::new(store.insert(n as u64, &content(n as u64))))).collect(),
    );
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (bodies, done) = (&bodies, &done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut buffer = Vec::new();
                let mut held = Vec::new();
                while !done.load(Relaxed) {
                    let body = Arc::clone(&bodies[random.usize(..BODIES)].lock().unwrap());
                    check(&body, &mut buffer);
                    // Some are held long after the writer replaced them, and dropped here.
                    held.push(body);
                    if held.len() > 50 {
                        check(&held[random.usize(..50)], &mut buffer);
                        held.swap_remove(random.usize(..50));
                    }
                }
                held.iter().for_each(|body| check(body, &mut buffer));
            });
        }
        let (store_of_compaction, done_of_compaction) = (store.clone(), &done);
        scope.spawn(move || {
            while !done_of_compaction.load(Relaxed) {
                if !store_of_compaction.compact(2 << 10, |_, _, _| None).more {
                    thread::yield_now();
                }
            }
        });
        let mut random = fastrand::Rng::with_seed(9);
        for tag in 0..WRITES {
            let new = Arc::new(store.insert(tag, &content(tag)));
            *bodies[random.usize(..BODIES)].lock().unwrap() = new;
        }
        done.store(true, Relaxed);
    });
    let live: usize = bodies.iter().map(|body| 16 + body.lock().unwrap().len()).sum();
    assert_eq!(store.usage().live, live, "every body is counted once");
}
