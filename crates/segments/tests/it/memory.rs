//! The reported memory against the allocator's.

use cap::Cap;
use kube_informer_segments::{Body, SegmentStore};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Runs a test in a process of its own, because others allocate at the same time. False in that process.
fn has_run_alone(test: &str) -> bool {
    if std::env::var_os("SEGMENTS_MEMORY").is_some() {
        return false;
    }
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env("SEGMENTS_MEMORY", "1")
        .status();
    assert!(run.unwrap().success());
    true
}

#[test]
fn the_report_adds_up() {
    if has_run_alone("memory::the_report_adds_up") {
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

#[test]
fn a_rewrite_needs_the_memory_of_few_segments() {
    if has_run_alone("memory::a_rewrite_needs_the_memory_of_few_segments") {
        return;
    }
    const SEGMENT: usize = 256 << 10;
    let before = ALLOCATOR.allocated();
    let store = SegmentStore::new();
    let bodies: Vec<Body> = (0..20_000).map(|_| store.insert(1, &[1; 1000])).collect();
    let bodies_only = size_of_val(&*bodies);
    let allocated = || ALLOCATOR.allocated() - before - bodies_only;
    let (full, mut steps) = (allocated(), 0);
    store.begin_rewrite();
    while store
        .rewrite(64 << 10, |tag, bytes, out| {
            out.extend_from_slice(&bytes[..800]);
            Some(tag)
        })
        .more
    {
        let (reported, allocated) = (store.usage().total(), allocated());
        assert!(allocated <= full + 2 * SEGMENT, "{allocated} of {full} after step {steps}");
        assert!(reported.abs_diff(allocated) < reported / 50, "reported {reported}, allocated {allocated}");
        steps += 1;
    }
    assert!(steps > 100, "{steps} steps");
    let (reported, allocated) = (store.usage().total(), allocated());
    assert!(allocated < full / 100 * 84, "{allocated} of {full}");
    assert!(reported.abs_diff(allocated) < reported / 50, "reported {reported}, allocated {allocated}");
}
