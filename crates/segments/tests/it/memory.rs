//! The reported memory against the allocator's.

use cap::Cap;
use kube_informer_segments::{Body, SegmentStore};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

#[test]
fn the_report_adds_up() {
    // Other tests allocate at the same time: run this one in a process of its own.
    if std::env::var_os("SEGMENTS_MEMORY").is_none() {
        let this = std::env::current_exe().unwrap();
        let run = std::process::Command::new(this)
            .args(["--exact", "memory::the_report_adds_up", "--test-threads=1"])
            .env("SEGMENTS_MEMORY", "1")
            .status();
        assert!(run.unwrap().success());
        return;
    }
    let mut bodies: Vec<Option<Body>> = (0..6_000).map(|_| None).collect();
    let before = ALLOCATOR.allocated();
    let store = SegmentStore::new();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..5 {
        for body in &mut bodies {
            if random.u8(..) < 128 {
                *body = Some(store.insert(round, &[0; 1500][..random.usize(..1500)]));
            }
            store.compact(2 << 10, |_, _, _| None);
        }
        let (reported, allocated) = (store.usage().total(), ALLOCATOR.allocated() - before);
        let ratio = allocated as f64 / reported as f64;
        assert!((0.98..1.02).contains(&ratio), "reported {reported}, allocated {allocated}");
    }
}
