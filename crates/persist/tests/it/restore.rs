//! What is restored after a log was closed, killed or damaged.

use kube_informer_persist::{BelongsTo, CacheDir, Discarded, EncryptionKey, MemoryDisk, OpenedLog, Position};
use std::time::{Duration, SystemTime};

fn position(version: &str) -> Position {
    Position {
        version: version.into(),
        saved_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
    }
}

fn pods() -> BelongsTo {
    BelongsTo::new().with("cluster", "1f6b").with("resource", "pods")
}

fn open(disk: &MemoryDisk, key: Option<&EncryptionKey>) -> OpenedLog<MemoryDisk> {
    CacheDir::on(disk.clone()).expect("not locked").open_log("pods", &pods(), key).expect("opens")
}

/// Version, and key, identity, tag and content of each object.
type State = (String, Vec<(String, Vec<u8>, u64, Vec<u8>)>);

fn state(opened: &OpenedLog<MemoryDisk>) -> Option<State> {
    let restored = opened.restored.as_ref()?;
    let mut content = Vec::new();
    let objects = restored.objects.iter().map(|object| {
        restored.bodies.read(&object.content, &mut content).expect("intact");
        (
            restored.key(object).to_owned(),
            restored.identity(object).to_vec(),
            object.content.tag,
            content.clone(),
        )
    });
    Some((restored.position.version.clone(), objects.collect()))
}

fn object(key: &str, number: u64) -> (String, Vec<u8>, u64, Vec<u8>) {
    (
        key.to_owned(),
        format!("identity {number}").into_bytes(),
        number,
        vec![number as u8; number as usize % 100],
    )
}

/// Two commits: a, b, c; then b replaced, c deleted, d added, and a change that no position covers.
fn written(key: Option<&EncryptionKey>) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, key).log;
    for (key, identity, tag, content) in [object("c", 3), object("a", 1), object("b", 2)] {
        log.put(&key, &identity, tag, &content);
    }
    log.dictionary(9, b"dictionary");
    log.commit(&position("10")).expect("commits");
    for (key, identity, tag, content) in [object("d", 4), object("b", 50)] {
        log.put(&key, &identity, tag, &content);
    }
    log.delete("c");
    log.commit(&position("20")).expect("commits");
    log.delete("a");
    disk
}

fn newest() -> Option<State> {
    Some(("20".into(), vec![object("a", 1), object("b", 50), object("d", 4)]))
}

#[test]
fn the_last_committed_state_is_restored() {
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        let disk = written(key.as_ref());
        let opened = open(&disk, key.as_ref());
        assert_eq!(opened.discarded, None);
        assert_eq!(state(&opened), newest());
        let restored = opened.restored.expect("restored");
        assert_eq!(restored.dictionaries, [(9, b"dictionary".to_vec())]);
        assert_eq!(restored.position, position("20"));
    }
}

#[test]
fn a_log_continues_behind_the_restored_position() {
    let disk = written(None);
    let mut log = open(&disk, None).log;
    log.delete("d");
    log.commit(&position("30")).expect("commits");
    drop(log);
    assert_eq!(state(&open(&disk, None)), Some(("30".into(), vec![object("a", 1), object("b", 50)])));
}

#[test]
fn a_rewrite_takes_the_place_of_the_log_at_once() {
    let disk = written(None);
    let mut opened = open(&disk, None);
    let mut rewrite = opened.log.begin_rewrite().expect("begins");
    assert!(opened.log.begin_rewrite().is_err(), "one at a time");
    let (key, identity, tag, content) = object("z", 26);
    rewrite.put(&key, &identity, tag, &content);
    let before = MemoryDisk::with_files(disk.files());
    let log = rewrite.finish(&position("40")).expect("finishes");
    assert!(opened.log.commit(&position("50")).is_err(), "the old log is replaced");
    assert_eq!(state(&opened), newest(), "old bodies stay readable");
    drop((log, opened));
    assert_eq!(state(&open(&disk, None)), Some(("40".into(), vec![object("z", 26)])));
    assert_eq!(disk.files().len(), 2, "nothing is left over");
    assert_eq!(state(&open(&before, None)), newest(), "killed before the end");
    assert_eq!(before.files().len(), 2, "nothing is left over");
}

#[test]
fn a_log_of_another_owner_is_discarded() {
    let disk = written(None);
    let other = pods().with("cluster", "0000");
    let opened = CacheDir::on(disk.clone()).expect("opens").open_log("pods", &other, None).expect("opens");
    assert_eq!(opened.discarded, Some(Discarded::OtherOwner { pair: "cluster".into() }));
    assert!(opened.restored.is_none());
}

#[test]
fn an_incomplete_end_costs_only_that_end() {
    let whole = written(None).files();
    let log = &whole["pods.log"];
    let mut versions = Vec::new();
    for len in 0..=log.len() {
        let mut files = whole.clone();
        files.get_mut("pods.log").expect("a log").truncate(len);
        let opened = open(&MemoryDisk::with_files(files), None);
        versions.push(state(&opened).map(|(version, _)| version));
    }
    versions.dedup();
    assert_eq!(versions, [None, Some("10".into()), Some("20".into())]);
}
