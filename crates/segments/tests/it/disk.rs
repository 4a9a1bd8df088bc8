//! A store on disk, with a disk that fails.

use crate::faulty::{Faults, FaultyFile};
use kube_informer_segments::{Body, DiskOptions, ReadError, SegmentStore, StoreOptions};
use std::{
    future::Future,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Wake, Waker},
    thread,
};

fn store(disk: DiskOptions) -> SegmentStore {
    SegmentStore::on_disk(StoreOptions::default(), disk, ())
}

/// A number again and again, so that any mixture of two bodies shows.
fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut content = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(len.div_ceil(8));
    content.truncate(len);
    content
}

fn insert(store: &SegmentStore, seeds: std::ops::Range<u64>, len: usize) -> Vec<(u64, Body)> {
    seeds.map(|seed| (seed, store.insert(seed, &content(seed, len)))).collect()
}

fn check(bodies: &[(u64, Body)], len: usize) {
    let mut buffer = Vec::new();
    for (seed, body) in bodies {
        assert_eq!(body.read(&mut buffer).unwrap(), *seed);
        assert!(buffer == content(*seed, len), "body {seed}");
    }
}

fn spill_all(store: &SegmentStore) {
    while store.is_spill_due() {
        store.spill().unwrap();
    }
}

fn settle(store: &SegmentStore) {
    for _ in 0..100_000 {
        spill_all(store);
        if !store.compact(64 << 10, |_, _, _| None).more {
            return;
        }
    }
    panic!("compaction does not end");
}

#[test]
fn content_is_in_the_file_and_not_in_memory() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(100_000));
    let bodies = insert(&store, 0..200, 40_000);
    spill_all(&store);
    let usage = store.usage();
    assert!(usage.total() < 600_000, "{usage:?}");
    assert!(usage.cached <= 100_000 && usage.disk_live > 7_500_000, "{usage:?}");
    assert!(usage.disk() - file.len() < 4096, "the last block may be incomplete");
    check(&bodies, 40_000);
    let reads = file.reads();
    assert!(reads >= 190, "{reads}");
    check(&bodies[199..], 40_000);
    assert_eq!(file.reads(), reads, "read a moment ago");
    assert!(bodies[199].1.is_in_memory() && !bodies[0].1.is_in_memory());
    assert_eq!((bodies[0].1.len(), bodies[0].1.tag(), file.reads()), (40_000, 0, reads), "not from the file");
}

#[test]
fn a_real_file_has_no_name_and_no_plain_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(DiskOptions::in_directory(directory.path()).cache_bytes(0));
    let body = store.insert(1, &b"top secret ".repeat(40_000));
    spill_all(&store);
    assert!(!body.is_in_memory());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let mut buffer = Vec::new();
    assert_eq!(body.read(&mut buffer).unwrap(), 1);
    assert_eq!(buffer, b"top secret ".repeat(40_000));
}

#[test]
fn nothing_in_the_file_is_plain() {
    let file = FaultyFile::default();
    let store = store(file.options());
    let bodies: Vec<Body> = (0..600).map(|_| store.insert(1, &b"top secret ".repeat(100))).collect();
    spill_all(&store);
    let bytes = file.bytes();
    assert!(bytes.len() > 500 * 1100, "{}", bytes.len());
    assert!(!bytes.windows(10).any(|window| window == b"top secret"));
    assert!(
        !bytes[..200_000].windows(16).any(|window| window == &bytes[400_000..400_016]),
        "bodies look alike"
    );
    drop(bodies);
}

#[test]
fn the_file_stays_small() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(0));
    let mut random = fastrand::Rng::with_seed(1);
    let mut bodies = insert(&store, 0..2000, 2000);
    for seed in 2000..8000_u64 {
        let at = random.usize(..bodies.len());
        bodies[at] = (seed, store.insert(seed, &content(seed, 2000)));
        if seed % 100 == 0 {
            settle(&store);
        }
    }
    settle(&store);
    let usage = store.usage();
    assert!(usage.disk() <= usage.disk_live * 5 / 4, "{usage:?}");
    check(&bodies, 2000);
    // Much is dropped: the file becomes shorter, although what is left is anywhere in it.
    let mut at = 0;
    bodies.retain(|_| {
        at += 1;
        at % 10 == 0
    });
    settle(&store);
    store.spill().unwrap();
    let usage = store.usage();
    assert!(usage.disk() <= 600_000 && usage.disk() - file.len() < 4096, "{usage:?}");
    check(&bodies, 2000);
}

#[test]
fn a_full_disk_keeps_everything_in_memory_until_there_is_room() {
    let file = FaultyFile::default();
    file.set(Faults { full_at: Some(300_000), ..Faults::default() });
    let store = store(file.options().buffer_bytes(2 << 20).cache_bytes(0));
    let mut bodies = insert(&store, 0..100, 3000);
    store.spill().unwrap();
    let mut error = None;
    let mut next = 100;
    while store.has_room() {
        bodies.extend(insert(&store, next..next + 1, 3000));
        next += 1;
        if store.is_spill_due() {
            error = store.spill().err().or(error);
        }
    }
    assert_eq!(error.map(|error| error.kind()), Some(std::io::ErrorKind::StorageFull));
    assert!(store.usage().live > 1_500_000 && store.is_congested());
    assert!(store.spill().is_err());
    check(&bodies, 3000);
    // Compaction brings nothing more into memory.
    bodies.retain(|(seed, _)| *seed >= 100 || seed % 2 == 0);
    assert_eq!(store.compact(1 << 20, |_, _, _| None).moved, 0);
    file.set(Faults::default());
    settle(&store);
    assert!(store.has_room() && store.usage().live < 600_000, "{:?}", store.usage());
    check(&bodies, 3000);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn whoever_waits_for_room_is_woken() {
    let file = FaultyFile::default();
    let store = store(file.options().buffer_bytes(1 << 20).cache_bytes(0));
    let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
    let mut rooms: Vec<_> = wakes.iter().map(|_| Box::pin(store.room())).collect();
    let wakers = wakes.clone().map(Waker::from);
    let mut poll = |at: usize| rooms[at].as_mut().poll(&mut Context::from_waker(&wakers[at])).is_ready();
    assert!(poll(0) && poll(1));
    let bodies = insert(&store, 0..40, 40_000);
    assert!(!poll(0) && !poll(1) && !poll(0));
    spill_all(&store);
    assert!(wakes.iter().all(|wakes| wakes.0.load(Relaxed) == 1));
    assert!(poll(0) && poll(1));
    let more = insert(&store, 0..40, 40_000);
    assert!(!poll(0));
    drop(more);
    assert_eq!(wakes[0].0.load(Relaxed), 2, "dropping bodies makes room, too");
    assert!(poll(0));
    drop(bodies);
}

#[test]
fn wrong_bytes_are_an_error_and_never_content() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(0));
    let bodies = insert(&store, 0..400, 1500);
    spill_all(&store);
    let on_disk: Vec<_> = bodies.iter().filter(|(_, body)| !body.is_in_memory()).collect();
    assert!(on_disk.len() > 100);
    for at in 0..50 {
        file.flip(at * 4999);
    }
    let mut buffer = Vec::new();
    let (mut wrong, mut right) = (0, 0);
    for (seed, body) in &on_disk {
        match body.read(&mut buffer) {
            Ok(_) => {
                assert!(buffer == content(*seed, 1500) && !body.is_lost());
                right += 1;
            }
            Err(error) => {
                assert!(matches!(error, ReadError::WrongBytes), "{error}");
                assert!(buffer.is_empty() && body.is_lost());
                wrong += 1;
            }
        }
    }
    assert!(wrong >= 30 && right > 50, "{wrong} {right}");
    assert_eq!(store.lost(), wrong);
    drop(bodies);
    assert_eq!(store.lost(), 0, "a dropped body is not lost");
}

#[test]
fn bytes_of_an_earlier_body_in_the_same_place_are_wrong() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(0));
    let first = store.insert(1, &content(1, 300_000));
    spill_all(&store);
    let before = file.bytes();
    drop(first);
    let second = store.insert(1, &content(2, 300_000));
    spill_all(&store);
    assert_eq!(file.len(), before.len(), "in the same place");
    file.restore(&before);
    assert!(matches!(second.read(&mut Vec::new()), Err(ReadError::WrongBytes)));
}

#[test]
fn a_disk_that_fails_for_a_while_loses_nothing() {
    let file = FaultyFile::default();
    let faults = |fail_open, fail_writes, fail_reads| Faults {
        fail_open,
        fail_writes,
        fail_reads,
        ..Faults::default()
    };
    file.set(faults(true, false, false));
    let store = store(file.options().cache_bytes(0));
    let mut bodies = insert(&store, 0..300, 1000);
    assert!(store.spill().is_err(), "cannot be opened");
    file.set(faults(false, true, false));
    assert!(store.spill().is_err(), "cannot be written");
    check(&bodies, 1000);
    file.set(Faults { short: Some(1000), ..Faults::default() });
    store.spill().unwrap();
    check(&bodies, 1000);
    file.set(faults(false, false, true));
    let lost = bodies.iter().find(|(_, body)| !body.is_in_memory()).unwrap();
    let error = lost.1.read(&mut Vec::new()).unwrap_err();
    assert!(matches!(error, ReadError::Io(_)) && lost.1.is_lost(), "{error}");
    bodies.retain(|(seed, _)| seed % 3 == 0);
    // Compaction leaves alone what it cannot read, and ends.
    settle(&store);
    assert!(store.lost() > 50);
    file.set(Faults::default());
    check(&bodies, 1000);
    assert_eq!(store.lost(), 0);
}

#[test]
fn a_slow_disk_does_not_slow_down_what_is_in_memory() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(0));
    let mut bodies = insert(&store, 0..400, 1000);
    file.set(Faults { hang_writes: true, ..Faults::default() });
    thread::scope(|scope| {
        let spilling = scope.spawn(|| store.spill().unwrap());
        file.until_hanging();
        check(&bodies, 1000);
        bodies.extend(insert(&store, 400..500, 1000));
        bodies.drain(..50);
        check(&bodies, 1000);
        assert!(bodies.iter().all(|(_, body)| body.is_in_memory()));
        file.set(Faults::default());
        spilling.join().unwrap();
    });
    assert!(bodies.iter().any(|(_, body)| !body.is_in_memory()));
    check(&bodies, 1000);
}

#[test]
fn a_rewrite_reaches_what_is_written_to_disk_meanwhile() {
    let file = FaultyFile::default();
    let store = store(file.options().cache_bytes(0).buffer_bytes(0));
    let mut bodies = insert(&store, 0..500, 2000);
    spill_all(&store);
    store.begin_rewrite();
    // So much arrives that there is no room for what is still to be rewritten.
    bodies.extend(insert(&store, 500..1200, 2000));
    let rewrite = |tag: u64, bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(bytes);
        (tag < 10_000).then_some(tag + 10_000)
    };
    let mut steps = 0;
    while store.rewrite(10_000, rewrite).more {
        spill_all(&store);
        steps += 1;
        assert!(steps < 10_000);
    }
    let mut buffer = Vec::new();
    for (seed, body) in &bodies {
        let tag = body.read(&mut buffer).unwrap();
        assert!(buffer == content(*seed, 2000));
        assert!(*seed >= 500 || tag == seed + 10_000, "body {seed} escaped");
    }
}

#[test]
fn readers_see_whole_bodies_while_they_move() {
    let file = FaultyFile::default();
    let mut options = StoreOptions::default();
    options.segment_bytes = 16 << 10;
    options.garbage_percent = 2;
    let store = SegmentStore::on_disk(options, file.options().cache_bytes(50_000), ());
    let bodies: Vec<std::sync::Mutex<Arc<(u64, Body)>>> =
        insert(&store, 0..500, 1000).into_iter().map(|body| std::sync::Mutex::new(Arc::new(body))).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (bodies, done) = (&bodies, &done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut buffer = Vec::new();
                while !done.load(Relaxed) {
                    let body = Arc::clone(&bodies[random.usize(..bodies.len())].lock().unwrap());
                    assert_eq!(body.1.read(&mut buffer).unwrap(), body.0);
                    assert!(buffer == content(body.0, 1000));
                }
            });
        }
        let (upkeep, done_of_upkeep) = (store.clone(), &done);
        scope.spawn(move || {
            while !done_of_upkeep.load(Relaxed) {
                if upkeep.is_spill_due() {
                    upkeep.spill().unwrap();
                }
                upkeep.compact(8 << 10, |_, _, _| None);
                thread::yield_now();
            }
        });
        let mut random = fastrand::Rng::with_seed(9);
        for seed in 500..u64::MAX {
            let new = Arc::new((seed, store.insert(seed, &content(seed, 1000))));
            *bodies[random.usize(..bodies.len())].lock().unwrap() = new;
            // On a busy machine, the thread for upkeep may not have run yet.
            if seed >= 8000 && store.usage().disk_live > 0 {
                break;
            }
        }
        done.store(true, Relaxed);
    });
    assert!(store.usage().disk_live > 0);
    assert_eq!(store.live_bytes(), 500 * 1016, "every body is counted once");
}
