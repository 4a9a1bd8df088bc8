//! A store on a disk that fails, against a model: a list of byte strings.

use crate::faulty::{Faults, FaultyFile};
use kube_informer_segments::{Body, SegmentStore, StoreOptions};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Insert { len: usize, byte: u8 },
    Drop { at: usize },
    Read { at: usize },
    Spill,
    Compact { bytes: usize },
    BeginRewrite,
    Rewrite { bytes: usize },
    Fault(Fault),
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    Full,
    Reads,
    Writes,
    Short(usize),
    Flip(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![4 => 0..2000_usize, 4 => 2000..30_000_usize, 1 => 100_000..300_000_usize];
    let fault = prop_oneof![
        3 => Just(Fault::None),
        1 => Just(Fault::Full),
        1 => Just(Fault::Reads),
        1 => Just(Fault::Writes),
        1 => (1..5000_usize).prop_map(Fault::Short),
        2 => any::<usize>().prop_map(Fault::Flip),
    ];
    let step = prop_oneof![
        8 => (len, any::<u8>()).prop_map(|(len, byte)| Step::Insert { len, byte }),
        4 => any::<usize>().prop_map(|at| Step::Drop { at }),
        6 => any::<usize>().prop_map(|at| Step::Read { at }),
        3 => Just(Step::Spill),
        3 => (0..300_000_usize).prop_map(|bytes| Step::Compact { bytes }),
        1 => Just(Step::BeginRewrite),
        2 => (0..300_000_usize).prop_map(|bytes| Step::Rewrite { bytes }),
        1 => fault.prop_map(Step::Fault),
    ];
    prop::collection::vec(step, 1..150)
}

fn content(byte: u8, len: usize) -> Vec<u8> {
    let mut content =
        (u64::from(byte) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().repeat(len.div_ceil(8));
    content.truncate(len);
    content
}

struct Model {
    file: FaultyFile,
    faults: Faults,
    flipped: bool,
    store: SegmentStore,
    bodies: Vec<(Body, u8, usize)>,
}

impl Model {
    fn run(&mut self, step: Step) {
        match step {
            Step::Insert { len, byte } => {
                let body = self.store.insert(byte.into(), &content(byte, len));
                self.bodies.push((body, byte, len));
            }
            Step::Drop { at } if !self.bodies.is_empty() => {
                self.bodies.swap_remove(at % self.bodies.len());
            }
            Step::Read { at } if !self.bodies.is_empty() => self.check(at % self.bodies.len()),
            Step::Spill => {
                let result = self.store.spill();
                assert!(result.is_ok() || self.faults.fail_writes || self.faults.full_at.is_some());
            }
            Step::Compact { bytes } => _ = self.store.compact(bytes, |_, _, _| None),
            Step::BeginRewrite => self.store.begin_rewrite(),
            Step::Rewrite { bytes } => {
                _ = self.store.rewrite(bytes, |tag, bytes, out| {
                    out.extend_from_slice(bytes);
                    Some(tag + 256)
                });
            }
            Step::Fault(fault) => self.fault(fault),
            Step::Drop { .. } | Step::Read { .. } => {}
        }
        let live: usize = self.bodies.iter().map(|(_, _, len)| 16 + len.div_ceil(8) * 8).sum();
        let usage = self.store.usage();
        assert_eq!(usage.live + usage.disk_live, live);
        assert!(usage.cached <= 60_000);
    }

    fn fault(&mut self, fault: Fault) {
        self.faults = Faults::default();
        match fault {
            Fault::None => {}
            Fault::Full => self.faults.full_at = Some(self.file.len()),
            Fault::Reads => self.faults.fail_reads = true,
            Fault::Writes => self.faults.fail_writes = true,
            Fault::Short(most) => self.faults.short = Some(most),
            Fault::Flip(at) => {
                self.flipped |= self.file.len() > 0;
                self.file.flip(at);
            }
        }
        self.file.set(self.faults);
    }

    /// A body has its content, or an error that has a reason.
    fn check(&self, at: usize) {
        let (body, byte, len) = &self.bodies[at];
        assert_eq!((body.tag() as u8, body.len()), (*byte, *len));
        let in_memory = body.is_in_memory();
        let mut buffer = vec![1, 2, 3];
        match body.read(&mut buffer) {
            Ok(tag) => assert!(tag as u8 == *byte && buffer == content(*byte, *len) && !body.is_lost()),
            Err(error) => {
                assert!(self.faults.fail_reads || self.flipped, "{error}");
                assert!(!in_memory && buffer.is_empty() && body.is_lost());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn every_body_has_its_content_or_an_error(steps in steps(), segment_bytes in 1000..300_000_usize) {
        let mut options = StoreOptions::default();
        options.segment_bytes = segment_bytes;
        let file = FaultyFile::default();
        let disk = file.options().cache_bytes(60_000).buffer_bytes(0);
        let store = SegmentStore::on_disk(options, disk, ());
        let mut model =
            Model { file, faults: Faults::default(), flipped: false, store, bodies: Vec::new() };
        for step in steps {
            model.run(step);
        }
        (0..model.bodies.len()).for_each(|at| model.check(at));
        model.fault(Fault::None);
        for _ in 0..10_000 {
            model.store.spill().expect("a disk that works");
            if !model.store.compact(100_000, |_, _, _| None).more && !model.store.is_spill_due() {
                break;
            }
        }
        (0..model.bodies.len()).for_each(|at| model.check(at));
        model.bodies.clear();
        model.store.begin_rewrite();
        model.store.spill().expect("a disk that works");
        let usage = model.store.usage();
        prop_assert_eq!((usage.live, usage.garbage, usage.segments), (0, 0, 0), "nothing is left of nothing");
        prop_assert_eq!((usage.disk(), model.file.len(), usage.cached), (0, 0, 0));
    }
}
