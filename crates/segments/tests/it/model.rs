//! The store against a model: a list of byte strings.

use kube_informer_segments::{Body, SegmentStore, StoreOptions};
use proptest::prelude::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
};

#[derive(Debug, Clone)]
enum Step {
    Insert { len: usize, byte: u8 },
    Drop { at: usize },
    Read { at: usize },
    Compact { bytes: usize, rewrite: bool },
    BeginRewrite,
    Rewrite { bytes: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![8 => 0..200_usize, 2 => 200..3000_usize, 1 => 3000..20_000_usize];
    let step = prop_oneof![
        6 => (len, any::<u8>()).prop_map(|(len, byte)| Step::Insert { len, byte }),
        4 => any::<usize>().prop_map(|at| Step::Drop { at }),
        3 => any::<usize>().prop_map(|at| Step::Read { at }),
        2 => (0..10_000_usize, any::<bool>()).prop_map(|(bytes, rewrite)| Step::Compact { bytes, rewrite }),
        1 => Just(Step::BeginRewrite),
        2 => (0..20_000_usize).prop_map(|bytes| Step::Rewrite { bytes }),
    ];
    prop::collection::vec(step, 1..300)
}

/// The bytes of a body, made from its content so that another encoding of them can be distinguished from wrong ones.
fn encode(tag: u64, byte: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| byte.wrapping_add(at as u8).wrapping_mul(tag as u8 | 1)).collect()
}

/// A rewrite: the next tag, with bytes that belong to it and another length.
fn re_encode(tag: u64, bytes: &[u8], out: &mut Vec<u8>) -> Option<u64> {
    let inverse = (0..=255_u8).find(|inverse| inverse.wrapping_mul(tag as u8 | 1) == 1)?;
    let next = tag + 2;
    out.extend(bytes.iter().map(|byte| byte.wrapping_mul(inverse).wrapping_mul(next as u8 | 1)));
    Some(next)
}

struct Model {
    store: SegmentStore,
    bodies: Vec<(Body, u8, usize)>,
}

impl Model {
    fn run(&mut self, step: Step) {
        match step {
            Step::Insert { len, byte } => {
                let body = self.store.insert(1, &encode(1, byte, len));
                self.bodies.push((body, byte, len));
            }
            Step::Drop { at } if !self.bodies.is_empty() => {
                self.bodies.swap_remove(at % self.bodies.len());
            }
            Step::Read { at } if !self.bodies.is_empty() => self.check(at % self.bodies.len()),
            Step::Compact { bytes, rewrite } => {
                self.store.compact(bytes, |tag, bytes, out| match rewrite {
                    true => re_encode(tag, bytes, out),
                    false => None,
                });
            }
            Step::BeginRewrite => self.store.begin_rewrite(),
            Step::Rewrite { bytes } => _ = self.store.rewrite(bytes, re_encode),
            Step::Drop { .. } | Step::Read { .. } => {}
        }
        let live: usize = self.bodies.iter().map(|(_, _, len)| 16 + len.div_ceil(8) * 8).sum();
        assert_eq!(self.store.usage().live, live);
    }

    fn check(&self, at: usize) {
        let (body, byte, len) = &self.bodies[at];
        let mut buffer = vec![1, 2, 3];
        let tag = body.read(&mut buffer).unwrap();
        assert_eq!(buffer, encode(tag, *byte, *len), "tag {tag}");
        assert_eq!((body.tag(), body.len()), (tag, *len));
    }

    fn compact_fully(&self) {
        for _ in 0..100_000 {
            if !self.store.compact(1 << 10, |_, _, _| None).more {
                return;
            }
        }
        panic!("compaction does not end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_body_keeps_its_content(steps in steps(), segment_bytes in 64..40_000_usize) {
        let mut options = StoreOptions::default();
        options.segment_bytes = segment_bytes;
        let mut model = Model { store: SegmentStore::with_options(options), bodies: Vec::new() };
        for step in steps {
            model.run(step);
        }
        (0..model.bodies.len()).for_each(|at| model.check(at));
        model.compact_fully();
        (0..model.bodies.len()).for_each(|at| model.check(at));
        model.bodies.clear();
        model.store.begin_rewrite();
        let usage = model.store.usage();
        prop_assert_eq!((usage.live, usage.garbage, usage.segments), (0, 0, 0), "nothing is left of nothing");
    }
}

#[test]
fn a_rewrite_reaches_everything_that_was_there() {
    let store = SegmentStore::new();
    let bodies: Vec<Body> = (0..3000).map(|n| store.insert(1, &encode(1, n as u8, 700))).collect();
    store.begin_rewrite();
    let later = store.insert(1, &encode(1, 1, 700));
    while store.rewrite(10_000, re_encode).more {}
    let mut buffer = Vec::new();
    for (n, body) in bodies.iter().enumerate() {
        assert_eq!(body.read(&mut buffer).unwrap(), 3);
        assert_eq!(buffer, encode(3, n as u8, 700));
    }
    assert_eq!(later.tag(), 1, "not what was stored later");
    assert!(!store.rewrite(10_000, re_encode).more, "once");
}

#[test]
fn compaction_is_due_when_it_can_do_something() {
    let store = SegmentStore::new();
    let is_due = || {
        let mut due = std::pin::pin!(store.compaction_due());
        due.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    assert!(!is_due());
    let mut bodies: Vec<Body> = (0..2000).map(|n| store.insert(n, &[7; 500])).collect();
    assert!(!is_due());
    let mut steps = 0;
    let mut rng = fastrand::Rng::with_seed(1);
    while !bodies.is_empty() {
        // Not in order: segments would become empty without compaction.
        drop(bodies.swap_remove(rng.usize(..bodies.len())));
        while is_due() {
            steps += 1;
            store.compact(4096, |_, _, _| None);
        }
    }
    // A megabyte was dropped. To free a tenth of a segment, compaction moves the other nine tenths: 2,500 steps of 4 KiB.
    assert!(steps > 50 && steps < 4000, "{steps}");
    assert!(!is_due());
}

/// Counts how often it is woken.
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn the_task_that_waits_is_woken_once() {
    let (store, wakes, other) =
        (SegmentStore::new(), Arc::new(Wakes(AtomicUsize::new(0))), AtomicUsize::new(0));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut task = Context::from_waker(&waker);
    let mut due = std::pin::pin!(store.compaction_due_or(|| other.load(Relaxed) > 0));
    assert!(due.as_mut().poll(&mut task).is_pending());
    store.wake();
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(due.as_mut().poll(&mut task).is_pending(), "nothing to do after all");
    drop((0..2000).map(|n| store.insert(n, &[7; 500])).collect::<Vec<_>>());
    assert_eq!(wakes.0.load(Relaxed), 2, "garbage wakes it");
    store.begin_rewrite();
    other.store(1, Relaxed);
    assert!(due.as_mut().poll(&mut task).is_ready());
}

#[test]
fn compaction_bounds_garbage() {
    let mut random = fastrand::Rng::with_seed(1);
    let store = SegmentStore::new();
    let mut bodies: Vec<Body> =
        (0..4000).map(|n| store.insert(n, &vec![n as u8; random.usize(500..1500)])).collect();
    for n in 0..20_000_u64 {
        let at = random.usize(..bodies.len());
        bodies[at] = store.insert(n, &vec![n as u8; random.usize(500..1500)]);
        store.compact(8 << 10, |_, _, _| None);
    }
    let usage = store.usage();
    // Two open segments are not compacted.
    let open = 2 * (256 << 10);
    assert!(usage.garbage <= usage.live / 10 + open, "{usage:?}");
    assert!(usage.unused <= open + usage.live / 50, "{usage:?}");
}

#[test]
fn a_body_that_is_held_does_not_keep_its_segment() {
    let store = SegmentStore::new();
    let mut held = Vec::new();
    for n in 0..10_000_u64 {
        let body = store.insert(n, &[n as u8; 1000]);
        if n % 100 == 0 {
            held.push((n, body));
        }
    }
    while store.compact(64 << 10, |_, _, _| None).more {}
    let usage = store.usage();
    assert!(usage.total() < 10_000 * 1000 / 10, "one in a hundred is held: {usage:?}");
    let mut buffer = Vec::new();
    for (n, body) in &held {
        assert_eq!(body.read(&mut buffer).unwrap(), *n);
        assert_eq!(buffer, [*n as u8; 1000]);
    }
}

#[test]
fn a_step_moves_about_as_much_as_it_may() {
    let store = SegmentStore::new();
    let mut bodies: Vec<Body> = (0..5000).map(|n| store.insert(n, &[0; 1000])).collect();
    let mut odd = true;
    bodies.retain(|_| {
        std::mem::replace(&mut odd, false) || {
            odd = true;
            false
        }
    });
    loop {
        let step = store.compact(10_000, |_, _, _| None);
        assert!(step.moved <= 10_000 + 1016, "{step:?}");
        if !step.more {
            break;
        }
    }
}

#[test]
fn a_small_store_is_small() {
    let store = SegmentStore::new();
    let _bodies: Vec<Body> = (0..20).map(|n| store.insert(n, &[0; 100])).collect();
    assert!(store.usage().total() < 8 << 10, "{:?}", store.usage());
}
