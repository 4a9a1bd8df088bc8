//! Persisted caches.

use kube_informer_persist::{
    BelongsTo, CacheDir, Disk, EncryptionKey, Log, MemoryDisk, OpenedLog, Position, Restored, Rewrite,
    inspect_on,
};
use std::{
    collections::BTreeMap,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

type Files = BTreeMap<String, Vec<u8>>;

/// Key, identity, tag and content.
type Object = (String, Vec<u8>, u64, Vec<u8>);

/// The state that was committed at one position.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    objects: BTreeMap<String, Object>,
    dictionaries: Vec<(u32, Vec<u8>)>,
}

/// Valid directories, and every state that was ever committed in one of them, by version.
struct Fixtures {
    /// The files at several times of several histories, and whether they are encrypted.
    directories: Vec<(Files, bool)>,
    states: BTreeMap<String, State>,
}

/// Any change of the bytes of a valid directory gives an error, or a state that was committed.
///
/// The first byte selects a directory, each five further bytes are a change of it. The input is not the bytes of a
/// directory, because libFuzzer finds out checksums, and a valid checksum of other bytes is not a defect.
///
/// 1. Opening it fails, discards it, or restores a committed state. Each content is the committed one, or damaged.
/// 2. Inspecting it before changes nothing, and finds the same.
/// 3. Afterwards the log works: one more commit is restored.
pub fn cache_directory(data: &[u8]) {
    static FIXTURES: OnceLock<Fixtures> = OnceLock::new();
    let fixtures = FIXTURES.get_or_init(Fixtures::new);
    let (first, changes) = data.split_first().unwrap_or((&0, &[]));
    let (files, is_encrypted) = &fixtures.directories[usize::from(*first) % fixtures.directories.len()];
    let mut files = files.clone();
    for change in changes.chunks_exact(5) {
        fixtures.change(&mut files, [change[0], change[1], change[2], change[3], change[4]]);
    }
    let key = is_encrypted.then(key);
    fixtures.check(&MemoryDisk::with_files(files), key.as_ref());
}

impl Fixtures {
    fn new() -> Self {
        let mut fixtures = Self { directories: Vec::new(), states: BTreeMap::new() };
        for (history, is_encrypted) in [("plain", false), ("sealed", true), ("other", false)] {
            History::new(history, is_encrypted, &mut fixtures).run();
        }
        fixtures
    }

    /// Changes one file: which, how, where (two bytes), and how much or by what.
    fn change(&self, files: &mut Files, [file, how, high, low, by]: [u8; 5]) {
        let Some(name) = files.keys().nth(usize::from(file) % files.len().max(1)).cloned() else { return };
        let bytes = files.get_mut(&name).expect("a file of this name");
        let at = usize::from(u16::from_be_bytes([high, low])) % (bytes.len() + 1);
        let end = (at + usize::from(by)).min(bytes.len());
        match how % 12 {
            0 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << (by % 8)),
            1 => bytes[at..].iter_mut().take(1).for_each(|byte| *byte = by),
            2 => bytes.truncate(at),
            3 => bytes[at..end].fill(0),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            6 => {
                let copy = bytes[at..end].to_vec();
                bytes.extend(copy);
            }
            7 => bytes.extend(std::iter::repeat_n(high, by.into())),
            8 => drop(files.remove(&name)),
            // Parts of another time, or of another history.
            9 => {
                if let Some(other) = self.other(by, &name) {
                    let len = other.len().min(bytes.len());
                    let (from, to) = (at.min(len), usize::from(low) * 8 % (len + 1));
                    bytes[from.min(to)..from.max(to)].copy_from_slice(&other[from.min(to)..from.max(to)]);
                }
            }
            10 => {
                if let Some(other) = self.other(by, &name) {
                    *bytes = other.clone();
                }
            }
            _ => {
                let moved = files.remove(&name).expect("a file of this name");
                let names = ["pods.log", "pods.log.new", "pods.1.bodies", "pods.2.bodies", "services.log"];
                files.insert(names[usize::from(by) % names.len()].to_owned(), moved);
            }
        }
    }

    fn other(&self, directory: u8, name: &str) -> Option<&Vec<u8>> {
        self.directories[usize::from(directory) % self.directories.len()].0.get(name)
    }

    fn check(&self, disk: &MemoryDisk, key: Option<&EncryptionKey>) {
        let before = disk.files();
        let inspected = inspect_on(disk, key).expect("files in memory can be read");
        assert_eq!(disk.files(), before, "inspecting changes nothing");
        let inspected = inspected.into_iter().find(|log| log.file == "pods.log");
        let inspected = inspected.and_then(|log| log.restored).map(|restored| self.known(&restored));
        let Some(opened) = open(disk, key) else { return };
        let restored = opened.restored.as_ref().map(|restored| self.known(restored));
        assert!(restored.is_none() || restored == inspected, "inspecting finds the same");
        let mut state = restored.unwrap_or_default();
        let OpenedLog { mut log, .. } = opened;
        let object: Object = ("default/new".into(), b"identity".to_vec(), 1, b"content".to_vec());
        log.put(&object.0, &object.1, object.2, &object.3);
        state.objects.insert(object.0.clone(), object);
        log.commit(&position("new")).expect("a log that was opened can be written to");
        drop(log);
        let again = open(disk, key).and_then(|opened| opened.restored).expect("the new commit is restored");
        assert_eq!(again.position.version, "new");
        compare(&again, &state);
    }

    /// The state that was committed at the restored position, after it was compared.
    fn known<D: Disk>(&self, restored: &Restored<D>) -> State {
        let version = &restored.position.version;
        let state = self.states.get(version).unwrap_or_else(|| panic!("{version} was never committed"));
        assert_eq!(restored.position, position(version));
        compare(restored, state);
        state.clone()
    }
}

fn compare<D: Disk>(restored: &Restored<D>, state: &State) {
    assert_eq!(restored.dictionaries, state.dictionaries);
    assert_eq!(restored.objects.len(), state.objects.len());
    let mut content = Vec::new();
    for (saved, (key, identity, tag, expected)) in restored.objects.iter().zip(state.objects.values()) {
        assert_eq!((restored.key(saved), restored.identity(saved)), (key.as_str(), identity.as_slice()));
        assert_eq!(saved.content.tag, *tag);
        if restored.bodies.read(&saved.content, &mut content).is_ok() {
            assert_eq!(&content, expected);
        }
    }
}

/// `None` if the directory or the log is refused.
fn open(disk: &MemoryDisk, key: Option<&EncryptionKey>) -> Option<OpenedLog<MemoryDisk>> {
    CacheDir::on(disk.clone()).ok()?.open_log("pods", &belongs_to(), key).ok()
}

fn key() -> EncryptionKey {
    EncryptionKey::new([7; 32])
}

fn belongs_to() -> BelongsTo {
    BelongsTo::new().with("cluster", "1f6b").with("resource", "pods")
}

fn position(version: &str) -> Position {
    Position {
        version: version.into(),
        saved_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
    }
}

/// Writes one history of a log, and keeps copies of the directory.
struct History<'a> {
    name: &'static str,
    disk: MemoryDisk,
    is_encrypted: bool,
    state: State,
    fixtures: &'a mut Fixtures,
}

impl<'a> History<'a> {
    fn new(name: &'static str, is_encrypted: bool, fixtures: &'a mut Fixtures) -> Self {
        let disk = MemoryDisk::new();
        // Each history has its own random bytes.
        let mut used = vec![0; 1000 * fixtures.directories.len()];
        disk.fill_random(&mut used).expect("random bytes");
        Self { name, disk, is_encrypted, state: State::default(), fixtures }
    }

    fn run(mut self) {
        let key = self.is_encrypted.then(key);
        let mut log = open(&self.disk, key.as_ref()).expect("a new disk").log;
        self.keep();
        for number in 0..4 {
            log.put(&format!("default/{number}"), b"", 0, b"");
            self.put(&mut log, number % 3, 10 * u64::from(number));
        }
        self.dictionary(&mut log, 1);
        log.delete("default/3");
        self.state.objects.remove("default/3");
        self.commit(&mut log);
        self.put(&mut log, 1, 33);
        self.commit(&mut log);
        log.sync().expect("syncs");
        self.put(&mut log, 5, 60);
        log.delete("default/0");
        self.state.objects.remove("default/0");
        self.commit(&mut log);
        let rewrite = log.begin_rewrite().expect("begins");
        let log = self.rewrite(rewrite);
        self.continue_with(log);
    }

    fn rewrite(&mut self, mut rewrite: Rewrite<MemoryDisk>) -> Log<MemoryDisk> {
        let State { objects, dictionaries } = &self.state;
        dictionaries.iter().for_each(|(id, bytes)| rewrite.dictionary(*id, bytes));
        objects.values().for_each(|(key, identity, tag, content)| rewrite.put(key, identity, *tag, content));
        self.keep();
        let version = self.version();
        rewrite.finish(&position(&version)).expect("finishes")
    }

    fn continue_with(&mut self, mut log: Log<MemoryDisk>) {
        self.keep();
        self.put(&mut log, 1, 70);
        self.commit(&mut log);
        log.delete("default/5");
        self.keep();
    }

    fn put(&mut self, log: &mut Log<MemoryDisk>, key: u8, number: u64) {
        let key = format!("default/{key}");
        let identity = format!("identity {number} of {key} in {}", self.name).into_bytes();
        let content = format!("content {number} of {}", self.name).repeat(number as usize % 7).into_bytes();
        log.put(&key, &identity, number, &content);
        self.state.objects.insert(key.clone(), (key, identity, number, content));
    }

    fn dictionary(&mut self, log: &mut Log<MemoryDisk>, id: u32) {
        let bytes = format!("dictionary of {}", self.name).into_bytes();
        log.dictionary(id, &bytes);
        self.state.dictionaries.push((id, bytes));
    }

    fn commit(&mut self, log: &mut Log<MemoryDisk>) {
        let version = self.version();
        log.commit(&position(&version)).expect("commits");
        self.keep();
    }

    /// A version for the current state.
    fn version(&mut self) -> String {
        let version = format!("{}{}", self.name, self.fixtures.states.len());
        self.fixtures.states.insert(version.clone(), self.state.clone());
        version
    }

    /// Keeps a copy of the directory.
    fn keep(&mut self) {
        self.fixtures.directories.push((self.disk.files(), self.is_encrypted));
    }
}
