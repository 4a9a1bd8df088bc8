//! Random operations and crashes, checked against a model.
//!
//! `PERSIST_SEEDS` is the number of seeds.

use crate::fixtures::{Object, pods, position, put, put_new, read};
use crash_disk::{Note, Operation, RecordingDisk, after_kill, after_power_loss};
use kube_informer_persist::{CacheDir, Disk, EncryptionKey, Log, MemoryDisk, OpenedLog};
use std::{collections::BTreeMap, ops::RangeInclusive};

/// Seeds, unless `PERSIST_SEEDS` is set.
const SEEDS: u64 = 12;
/// Crashes of each kind for a seed.
const CRASHES: usize = 6;

/// A committed state.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    objects: BTreeMap<String, Object>,
    dictionaries: BTreeMap<u32, Vec<u8>>,
}

/// A log that is written to, and what must be in it.
struct World {
    random: fastrand::Rng,
    disk: RecordingDisk,
    key: Option<EncryptionKey>,
    log: Option<Log<RecordingDisk>>,
    current: State,
    /// Committed states. The position is the index. The first one stands for a log without a position.
    states: Vec<State>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let key = random.bool().then(|| EncryptionKey::new([7; 32]));
        let (disk, current) = (RecordingDisk::default(), State::default());
        let mut world =
            Self { random, disk, key, log: None, current: current.clone(), states: vec![current] };
        world.reopen();
        world
    }

    fn run(seed: u64) -> Self {
        let mut world = Self::new(seed);
        for _ in 0..world.random.usize(5..60) {
            world.step();
        }
        world.log = None;
        world
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..9 => {
                let object = self.any_object();
                put(self.log(), &object);
                self.current.objects.insert(object.0.clone(), object);
            }
            9..12 => {
                let key = self.any_key();
                self.log().delete(&key);
                self.current.objects.remove(&key);
            }
            12 => {
                let (id, bytes) = (self.random.u32(..3), self.any_bytes());
                self.log().dictionary(id, &bytes);
                self.current.dictionaries.insert(id, bytes);
            }
            13..17 => self.commit(),
            17 => {
                self.log().sync().expect("syncs");
                self.disk.note(Note::Synced(self.states.len() - 1));
            }
            18 => self.rewrite(),
            _ => self.reopen(),
        }
    }

    fn commit(&mut self) {
        let version = self.attempt();
        self.log().commit(&position(&version.to_string())).expect("commits");
        self.disk.note(Note::Committed(version));
    }

    fn attempt(&mut self) -> usize {
        let version = self.states.len();
        self.states.push(self.current.clone());
        self.disk.note(Note::Attempted(version));
        version
    }

    /// Writes a new generation, with changes of the log in the meantime, and finishes it or gives it up.
    fn rewrite(&mut self) {
        let mut rewrite = self.log().begin_rewrite().expect("begins");
        let State { objects, dictionaries } = self.current.clone();
        dictionaries.iter().for_each(|(id, bytes)| rewrite.dictionary(*id, bytes));
        objects.values().for_each(|object| put_new(&mut rewrite, object));
        for _ in 0..self.random.usize(..3) {
            let object = self.any_object();
            put(self.log(), &object);
            put_new(&mut rewrite, &object);
            self.current.objects.insert(object.0.clone(), object);
            if self.random.bool() {
                self.commit();
            }
        }
        if self.random.u8(..4) == 0 {
            return;
        }
        let version = self.attempt();
        self.log = Some(rewrite.finish(&position(&version.to_string())).expect("finishes"));
        self.disk.note(Note::Committed(version));
        self.disk.note(Note::Synced(version));
    }

    /// Loses what was not committed.
    fn reopen(&mut self) {
        self.log = None;
        let opened = open(&self.disk, self.key.as_ref());
        let last = self.states.len() - 1;
        check(&opened, &self.states, last..=last, true);
        self.log = Some(opened.log);
        self.current = self.states[last].clone();
    }

    fn log(&mut self) -> &mut Log<RecordingDisk> {
        self.log.as_mut().expect("open while the world runs")
    }

    fn any_key(&mut self) -> String {
        format!("namespace/{}", self.random.u8(..10))
    }

    fn any_object(&mut self) -> Object {
        (self.any_key(), self.any_bytes(), self.random.u64(..), self.any_bytes())
    }

    fn any_bytes(&mut self) -> Vec<u8> {
        let len = match self.random.u8(..20) {
            0 => 0,
            // More than is buffered: it is written before the commit.
            1 if self.random.u8(..40) == 0 => 1 << 20,
            1 => 4000,
            _ => self.random.usize(..60),
        };
        // Parts of the format in the content must not be taken for it.
        let mut bytes = b"\xabpos\xabchg".repeat(len.div_ceil(8));
        bytes.truncate(len);
        bytes.iter_mut().take(8).for_each(|byte| *byte ^= self.random.u8(..2));
        bytes
    }

    /// The states that may be restored if operations end here: from the last one that `is_floor` accepts.
    fn expected(operations: &[Operation], is_floor: impl Fn(Note) -> Option<usize>) -> RangeInclusive<usize> {
        let notes = || {
            operations.iter().filter_map(|operation| match operation {
                Operation::Note(note) => Some(*note),
                _ => None,
            })
        };
        let attempted = |note| if let Note::Attempted(state) = note { Some(state) } else { None };
        let (floor, top) =
            (notes().filter_map(is_floor).next_back(), notes().filter_map(attempted).next_back());
        floor.unwrap_or(0)..=top.unwrap_or(0)
    }
}

fn open<D: Disk + Clone>(disk: &D, key: Option<&EncryptionKey>) -> OpenedLog<D> {
    CacheDir::on(disk.clone()).expect("not locked").open_log("pods", &pods(), key).expect("opens")
}

/// Checks that one of the expected states is restored, and returns it. Contents may be damaged, but not wrong.
fn check<D: Disk>(
    opened: &OpenedLog<D>,
    states: &[State],
    expected: RangeInclusive<usize>,
    must_be_intact: bool,
) -> usize {
    let Some(restored) = &opened.restored else {
        assert!(expected.contains(&0), "nothing restored ({:?}), expected {expected:?}", opened.discarded);
        return 0;
    };
    assert_eq!(opened.discarded, None);
    let version: usize = restored.position.version.parse().expect("a number");
    assert!(expected.contains(&version), "{version} restored, expected {expected:?}");
    let State { objects, dictionaries } = &states[version];
    let saved: BTreeMap<u32, Vec<u8>> = restored.dictionaries.iter().cloned().collect();
    assert_eq!(&saved, dictionaries);
    assert_eq!(restored.objects.len(), objects.len());
    for (saved, object) in restored.objects.iter().zip(objects.values()) {
        let mut content = Vec::new();
        let is_read = restored.bodies.read(&saved.content, &mut content).is_ok();
        assert!(is_read || !must_be_intact, "a body of state {version} is damaged");
        let content = if is_read { content } else { object.3.clone() };
        assert_eq!(&read(restored, saved, content), object);
    }
    version
}

/// A log that was restored continues: one more commit is restored again.
fn check_continuation(
    disk: &MemoryDisk,
    key: Option<&EncryptionKey>,
    mut states: Vec<State>,
    restored: usize,
) {
    let mut log = open(disk, key).log;
    let object: Object = ("namespace/new".into(), b"identity".to_vec(), 1, b"content".to_vec());
    put(&mut log, &object);
    let mut state = states[restored].clone();
    state.objects.insert(object.0.clone(), object);
    let last = states.len();
    states.push(state);
    log.commit(&position(&last.to_string())).expect("commits");
    drop(log);
    check(&open(disk, key), &states, last..=last, false);
    assert_eq!(disk.files().len(), 2, "no file is left over");
}

fn for_each_crash(check: impl Fn(&World, &[Operation], &mut fastrand::Rng)) {
    let seeds = std::env::var("PERSIST_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    for seed in 0..seeds.unwrap_or(SEEDS) {
        let world = World::run(seed);
        let operations = world.disk.operations();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..CRASHES {
            let end = random.usize(..=operations.len());
            check(&world, &operations[..end], &mut random);
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_committed() {
    for_each_crash(|world, operations, random| {
        let disk = after_kill(operations, random);
        let committed = |note| if let Note::Committed(state) = note { Some(state) } else { None };
        let opened = open(&disk, world.key.as_ref());
        let restored = check(&opened, &world.states, World::expected(operations, committed), true);
        drop(opened);
        check_continuation(&disk, world.key.as_ref(), world.states.clone(), restored);
    });
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_synced() {
    for_each_crash(|world, operations, random| {
        let disk = after_power_loss(operations, random);
        let synced = |note| if let Note::Synced(state) = note { Some(state) } else { None };
        let opened = open(&disk, world.key.as_ref());
        let restored = check(&opened, &world.states, World::expected(operations, synced), false);
        drop(opened);
        check_continuation(&disk, world.key.as_ref(), world.states.clone(), restored);
    });
}

#[test]
fn damaged_bytes_never_make_a_state_that_was_not_committed() {
    for_each_crash(|world, operations, random| {
        let mut files = after_kill(operations, random).files();
        for _ in 0..random.usize(1..4) {
            let Some(bytes) = random.choice(files.values_mut()) else { return };
            if let Some(byte) = random.choice(bytes.iter_mut()) {
                *byte = if random.bool() { random.u8(..) } else { *byte ^ (1 << random.u8(..8)) };
            }
        }
        let opened = open(&MemoryDisk::with_files(files), world.key.as_ref());
        check(&opened, &world.states, 0..=world.states.len() - 1, false);
    });
}
