//! What is restored after a log was closed, killed or damaged.

use crate::fixtures::{State, object, open, pods, position, put, put_new, state};
use kube_informer_persist::{CacheDir, Discarded, Disk, DiskFile, EncryptionKey, Log, MemoryDisk, ReadError};

/// Two commits: a, b, c; then b replaced, c deleted, d added, and a change that no position covers.
fn written(key: Option<&EncryptionKey>) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, key).log;
    for object in [object("c", 3), object("a", 1), object("b", 2)] {
        put(&mut log, &object);
    }
    log.dictionary(9, b"dictionary");
    log.commit(&position("10")).expect("commits");
    for object in [object("d", 4), object("b", 50)] {
        put(&mut log, &object);
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
    put_new(&mut rewrite, &object("z", 26));
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
fn the_owner_of_a_log_is_read_without_opening_it() {
    let key = EncryptionKey::new([7; 32]);
    for key in [None, Some(&key)] {
        let disk = written(key);
        let cache = CacheDir::on(disk.clone()).expect("not locked");
        assert_eq!(cache.belongs_to("pods"), Some(pods()), "also without the key");
        assert_eq!(cache.belongs_to("nodes"), None);
        // The length of the header is damaged, then the header.
        for at in [19, 50] {
            disk.open("pods.log").expect("exists").write_at(&[255], at).expect("writes");
            assert_eq!(cache.belongs_to("pods"), None);
        }
    }
}

#[test]
fn an_incomplete_end_costs_only_that_end() {
    let whole = written(None).files();
    let log = &whole["pods.log"];
    let mut versions = Vec::new();
    for len in 0..=log.len() {
        let mut files = whole.clone();
        files.get_mut("pods.log").expect("a log").truncate(len);
        let disk = MemoryDisk::with_files(files);
        let opened = open(&disk, None);
        versions.push(state(&opened).map(|(version, _)| version));
        drop(opened);
        let again = open(&disk, None).restored;
        assert!(again.is_none_or(|restored| restored.dropped_bytes == 0), "the end was cut off at {len}");
    }
    versions.dedup();
    assert_eq!(versions, [None, Some("10".into()), Some("20".into())]);
}

#[test]
fn a_key_is_needed_and_must_be_the_same() {
    let key = EncryptionKey::new([7; 32]);
    for (written_with, opened_with, expected) in [
        (Some(&key), None, Discarded::KeyMissing),
        (Some(&key), Some(EncryptionKey::new([8; 32])), Discarded::WrongKey),
        (None, Some(key.clone()), Discarded::NotEncrypted),
    ] {
        let opened = open(&written(written_with), opened_with.as_ref());
        assert_eq!(opened.discarded, Some(expected));
        assert!(opened.restored.is_none());
    }
}

#[test]
fn nothing_of_an_object_is_readable_without_the_key() {
    let plain = |key: Option<&EncryptionKey>, text: &str| {
        let files = written(key).files();
        files.values().any(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    let content = String::from_utf8(object("b", 50).3).expect("ASCII");
    for text in ["identity 1", "dictionary", &content] {
        assert!(plain(None, text), "{text}");
        assert!(!plain(Some(&EncryptionKey::new([7; 32])), text), "{text}");
    }
}

#[test]
fn damage_in_what_was_synced_discards_the_log() {
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        let disk = written(key.as_ref());
        let mut log = open(&disk, key.as_ref()).log;
        let synced = disk.files()["pods.log"].len();
        log.sync().expect("syncs");
        log.commit(&position("30")).expect("commits");
        drop(log);
        let whole = disk.files();
        let mut reasons = Vec::new();
        for at in 0..whole["pods.log"].len() {
            let mut files = whole.clone();
            files.get_mut("pods.log").expect("a log")[at] ^= 0x10;
            let opened = open(&MemoryDisk::with_files(files), key.as_ref());
            let reason = opened.discarded.clone();
            assert_eq!(reason.is_some(), at < synced, "{at}");
            assert_eq!(state(&opened), if at < synced { None } else { newest() }, "{at}");
            reasons.extend(reason);
        }
        assert!(reasons.iter().all(|reason| matches!(reason, Discarded::Damaged { .. })), "{reasons:?}");
    }
}

#[test]
fn a_damaged_body_is_an_error_for_this_body_alone() {
    for key in [None, Some(EncryptionKey::new([7; 32]))] {
        let mut files = written(key.as_ref()).files();
        let (_, bodies) = files.iter_mut().find(|(name, _)| name.ends_with(".bodies")).expect("bodies");
        *bodies.last_mut().expect("not empty") ^= 1;
        let restored = open(&MemoryDisk::with_files(files), key.as_ref()).restored.expect("restored");
        let mut content = b"before".to_vec();
        for object in &restored.objects {
            let read = restored.bodies.read(&object.content, &mut content);
            match restored.key(object) {
                "b" => assert!(matches!(read, Err(ReadError::Damaged)) && content.is_empty()),
                _ => assert!(read.is_ok()),
            }
        }
    }
}

#[test]
fn a_position_whose_bodies_are_missing_is_not_used() {
    let whole = written(None).files();
    let (name, bodies) = whole.iter().find(|(name, _)| name.ends_with(".bodies")).expect("bodies");
    for (len, expected) in [(bodies.len(), Some("20")), (bodies.len() - 1, Some("10")), (5, None)] {
        let mut files = whole.clone();
        files.get_mut(name).expect("bodies").truncate(len);
        let opened = open(&MemoryDisk::with_files(files), None);
        assert_eq!(state(&opened).map(|(version, _)| version).as_deref(), expected);
        assert_eq!(opened.discarded, expected.is_none().then_some(Discarded::BodiesMissing));
    }
    let files = whole.into_iter().filter(|(name, _)| name.ends_with(".log"));
    assert_eq!(open(&MemoryDisk::with_files(files), None).discarded, Some(Discarded::BodiesMissing));
}

#[test]
fn bodies_behind_the_restored_position_are_cut_off() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    put(&mut log, &object("a", 60));
    log.commit(&position("10")).expect("commits");
    put(&mut log, &object("b", 70));
    log.commit(&position("20")).expect("commits");
    drop(log);
    let mut files = disk.files();
    assert_eq!(files["pods.1.bodies"].len(), 130);
    files.get_mut("pods.log").expect("a log").pop();
    let disk = MemoryDisk::with_files(files);
    assert_eq!(state(&open(&disk, None)).expect("restored").0, "10");
    assert_eq!(disk.files()["pods.1.bodies"].len(), 60);
}

#[test]
fn a_full_disk_is_an_error_and_no_position_covers_less_than_before() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    put(&mut log, &object("a", 1));
    log.commit(&position("10")).expect("commits");
    put(&mut log, &object("b", 99));
    let len = disk.files()["pods.log"].len();
    for free in 0..250 {
        disk.set_free_bytes(free);
        let Err(error) = log.commit(&position("20")) else { break };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert!(!log.is_broken());
        assert_eq!(disk.files()["pods.log"].len(), len, "nothing incomplete stays");
        let killed = open(&MemoryDisk::with_files(disk.files()), None);
        assert_eq!(state(&killed), Some(("10".into(), vec![object("a", 1)])), "{free}");
    }
    disk.set_free_bytes(u64::MAX);
    put(&mut log, &object("c", 3));
    log.commit(&position("30")).expect("there is space again");
    drop(log);
    let all = vec![object("a", 1), object("b", 99), object("c", 3)];
    assert_eq!(state(&open(&disk, None)), Some(("30".into(), all)));
}

#[test]
fn a_log_that_cannot_write_for_long_is_broken_and_says_so() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    log.commit(&position("10")).expect("commits");
    disk.set_free_bytes(0);
    let content = vec![0; 1 << 20];
    for number in 0..17 {
        log.put(&format!("{number}"), b"", 0, &content);
    }
    assert!(log.is_broken());
    disk.set_free_bytes(u64::MAX);
    assert!(
        log.commit(&position("20")).is_err(),
        "changes are lost, so that no later position may be written"
    );
    let mut rewrite = log.begin_rewrite().expect("begins");
    put_new(&mut rewrite, &object("a", 1));
    drop((rewrite.finish(&position("30")).expect("finishes"), log));
    assert_eq!(state(&open(&disk, None)), Some(("30".into(), vec![object("a", 1)])));
}

#[test]
fn an_object_larger_than_all_buffers_is_written() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    log.put("large", b"", 0, &vec![0; 17 << 20]);
    assert!(!log.is_broken());
    log.commit(&position("10")).expect("commits");
    assert_eq!(disk.files()["pods.1.bodies"].len(), 17 << 20);
}

#[test]
fn a_rewrite_that_fails_leaves_the_log_as_it_was() {
    let disk = written(None);
    let mut log = open(&disk, None).log;
    let mut rewrite = log.begin_rewrite().expect("begins");
    put_new(&mut rewrite, &object("z", 26));
    disk.set_free_bytes(10);
    assert!(rewrite.finish(&position("40")).is_err());
    disk.set_free_bytes(u64::MAX);
    assert_eq!(disk.files().len(), 2, "its files are removed");
    log.delete("d");
    log.commit(&position("50")).expect("the old log is in use");
    drop(log.begin_rewrite().expect("another rewrite may begin"));
    drop(log);
    assert_eq!(state(&open(&disk, None)), Some(("50".into(), vec![object("a", 1), object("b", 50)])));
}

#[test]
fn a_rewrite_is_due_when_more_was_appended_than_is_live() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    let content = vec![0; 1 << 20];
    for number in 0..5 {
        log.put(&format!("{number}"), b"", 0, &content);
    }
    assert!(!log.is_rewrite_due());
    log.commit(&position("10")).expect("commits");
    for number in 0..5 {
        assert!(!log.is_rewrite_due());
        log.put(&format!("{number}"), b"", 1, &content);
    }
    log.put("0", b"", 2, &content);
    assert!(log.is_rewrite_due());
    log.commit(&position("20")).expect("commits");
    drop(log);
    let log = open(&disk, None).log;
    assert!(log.is_rewrite_due(), "also after a restart");
    let rewrite = log.begin_rewrite().expect("begins");
    assert!(!rewrite.finish(&position("30")).expect("finishes").is_rewrite_due());
}

#[test]
fn logs_of_one_directory_do_not_share_anything() {
    let disk = MemoryDisk::new();
    let cache = CacheDir::on(disk.clone()).expect("opens");
    for name in ["pods", "pods.1", "apps/v1/deployments"] {
        let mut log = cache.open_log(name, &pods(), None).expect("opens").log;
        put(&mut log, &object(name, 1));
        log.commit(&position(name)).expect("commits");
    }
    for name in ["pods", "pods.1", "apps/v1/deployments"] {
        let opened = cache.open_log(name, &pods(), None).expect("opens");
        assert_eq!(state(&opened), Some((name.into(), vec![object(name, 1)])));
    }
    assert_eq!(disk.files().len(), 6);
}

#[test]
fn a_frame_that_was_cut_off_and_comes_back_does_not_continue_newer_ones() {
    let disk = MemoryDisk::new();
    let mut log = open(&disk, None).log;
    let commit = |log: &mut Log<MemoryDisk>, version, object| {
        put(log, &object);
        log.commit(&position(version)).expect("commits");
        disk.files()["pods.log"].len()
    };
    let first = commit(&mut log, "10", object("a", 1));
    let lost = commit(&mut log, "20", object("b", 2));
    commit(&mut log, "30", object("c", 3));
    drop(log);
    let mut files = disk.files();
    let before = files["pods.log"].clone();
    // Power was lost, and the second commit was not on the disk, but the third one was.
    files.get_mut("pods.log").expect("a log")[first..lost].fill(0);
    let after = MemoryDisk::with_files(files);
    let mut log = open(&after, None).log;
    put(&mut log, &object("d", 4));
    log.commit(&position("21")).expect("commits");
    drop(log);
    // Power is lost again, and the third commit is back, right behind the new one.
    let mut files = after.files();
    let log = files.get_mut("pods.log").expect("a log");
    assert_eq!(log.len(), lost, "otherwise it would not be right behind");
    log.extend_from_slice(&before[lost..]);
    let bodies = files.get_mut("pods.1.bodies").expect("bodies");
    bodies.resize(bodies.len() + 10, 0);
    let opened = open(&MemoryDisk::with_files(files), None);
    assert_eq!(state(&opened), Some(("21".into(), vec![object("a", 1), object("d", 4)])));
}
