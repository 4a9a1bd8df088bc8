//! Inspection of a directory, beside its owner and after damage.

use crate::fixtures::{object, open, pods, position, put};
use kube_informer_persist::{
    CacheDir, Discarded, EncryptionKey, InspectedLog, MemoryDisk, inspect, inspect_on,
};

fn written(key: Option<&EncryptionKey>) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, key).log;
    put(&mut log, &object("a", 1));
    put(&mut log, &object("b", 60));
    log.commit(&position("10")).expect("commits");
    put(&mut log, &object("b", 50));
    log.commit(&position("20")).expect("commits");
    disk
}

fn only(disk: &MemoryDisk, key: Option<&EncryptionKey>) -> InspectedLog<MemoryDisk> {
    let before = disk.files();
    let mut logs = inspect_on(disk, key).expect("readable");
    assert_eq!(disk.files(), before, "nothing is changed");
    assert_eq!(logs.len(), 1);
    logs.remove(0)
}

#[test]
fn a_log_is_described() {
    let disk = written(None);
    let log = only(&disk, None);
    assert_eq!((log.file.as_str(), log.name.as_str(), log.generation), ("pods.log", "pods", 1));
    assert_eq!((&log.belongs_to, log.is_encrypted, &log.problem), (&pods(), false, &None));
    let files = disk.files();
    assert_eq!((log.log_bytes, log.bodies_bytes), (files["pods.log"].len() as u64, 111));
    // Entries of two objects with a header of 33 bytes and a key of one byte, and bodies of 1 and 50 bytes.
    assert_eq!(log.live_bytes, 2 * 34 + 10 + 11 + 1 + 50);
    assert_eq!(log.garbage_bytes(), log.log_bytes + log.bodies_bytes - log.live_bytes);
    assert_eq!(log.verify().expect("readable"), []);
    let restored = log.restored.expect("restored");
    assert_eq!((restored.position, restored.objects.len()), (position("20"), 2));
}

#[test]
fn a_log_is_read_beside_its_owner() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = directory.path().join("cache");
    let mut log = CacheDir::open(&path).expect("opens").open_log("pods", &pods(), None).expect("opens").log;
    let version = || {
        let logs = inspect(&path, None).expect("readable");
        logs.into_iter().next().and_then(|log| log.restored).map(|restored| restored.position.version)
    };
    assert_eq!(version(), None);
    put(&mut log, &object("a", 1));
    log.commit(&position("10")).expect("commits");
    put(&mut log, &object("b", 2));
    assert_eq!(version(), Some("10".into()));
    let rewrite = log.begin_rewrite().expect("begins");
    assert_eq!(version(), Some("10".into()));
    let _log = rewrite.finish(&position("20")).expect("finishes");
    assert_eq!(version(), Some("20".into()));
}

#[test]
fn without_the_key_only_the_header_is_read() {
    let key = EncryptionKey::new([7; 32]);
    let disk = written(Some(&key));
    for (given, problem) in
        [(None, Discarded::KeyMissing), (Some(EncryptionKey::new([8; 32])), Discarded::WrongKey)]
    {
        let log = only(&disk, given.as_ref());
        assert_eq!((&log.belongs_to, log.is_encrypted, log.problem), (&pods(), true, Some(problem)));
        assert!(log.restored.is_none());
    }
    assert_eq!(only(&disk, Some(&key)).restored.map(|restored| restored.objects.len()), Some(2));
    assert!(only(&written(None), Some(&key)).restored.is_some(), "a key that is not needed does no harm");
}

#[test]
fn damage_is_reported() {
    let mut files = written(None).files();
    *files.get_mut("pods.1.bodies").expect("bodies").last_mut().expect("not empty") ^= 1;
    let log = only(&MemoryDisk::with_files(files.clone()), None);
    let damaged = log.verify().expect("readable");
    let restored = log.restored.as_ref().expect("restored");
    assert_eq!(damaged.iter().map(|object| restored.key(object)).collect::<Vec<_>>(), ["b"]);

    *files.get_mut("pods.log").expect("a log").last_mut().expect("not empty") ^= 1;
    let log = only(&MemoryDisk::with_files(files.clone()), None);
    let restored = log.restored.expect("the position before");
    assert_eq!(restored.position.version, "10");
    assert!(restored.dropped_bytes > 0);

    files.get_mut("pods.log").expect("a log")[20] ^= 1;
    let log = only(&MemoryDisk::with_files(files), None);
    assert_eq!((log.name.as_str(), log.problem), ("", Some(Discarded::Damaged { at: 16 })));
}

#[test]
fn a_missing_directory_is_an_error() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let missing = directory.path().join("missing");
    assert_eq!(inspect(&missing, None).expect_err("missing").kind(), std::io::ErrorKind::NotFound);
    assert!(!missing.exists());
}
