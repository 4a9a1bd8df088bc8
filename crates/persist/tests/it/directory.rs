//! A real directory: lock, permissions, formats, copies.

use crate::fixtures::{object, pods, position, put};
use kube_informer_persist::{CacheDir, Directory, Disk, OpenError};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};
use tempfile::TempDir;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("exists").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

/// A directory with one object at version 10.
fn written() -> (TempDir, std::path::PathBuf) {
    let temporary = TempDir::new().expect("a directory");
    let path = temporary.path().join("a").join("cache");
    let mut log = CacheDir::open(&path).expect("opens").open_log("pods", &pods(), None).expect("opens").log;
    put(&mut log, &object("a", 1));
    log.commit(&position("10")).expect("commits");
    (temporary, path)
}

fn version(path: &Path) -> Option<String> {
    let opened = CacheDir::open(path).expect("opens").open_log("pods", &pods(), None).expect("opens");
    opened.restored.map(|restored| restored.position.version)
}

#[test]
fn the_directory_and_its_files_are_private() {
    let (_temporary, path) = written();
    assert_eq!(mode(&path), 0o700);
    let files: Vec<_> =
        fs::read_dir(&path).expect("readable").map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| mode(file) == 0o600));
}

#[test]
fn permissions_of_others_are_taken_away() {
    let (_temporary, path) = written();
    set_mode(&path, 0o2770);
    set_mode(&path.join("pods.log"), 0o660);
    assert_eq!(version(&path), Some("10".into()));
    assert_eq!((mode(&path), mode(&path.join("pods.log"))), (0o700, 0o600));
}

#[test]
fn a_directory_with_other_files_is_refused_and_not_changed() {
    let (_temporary, path) = written();
    fs::write(path.join("notes.txt"), "").expect("writes");
    set_mode(&path, 0o755);
    let refused = CacheDir::open(&path).expect_err("not private");
    assert!(matches!(refused, OpenError::NotPrivate { mode: 0o755, .. }), "{refused:?}");
    assert!(refused.to_string().contains("chmod 700"), "{refused}");
    assert_eq!(mode(&path), 0o755);
    set_mode(&path, 0o700);
    assert_eq!(version(&path), Some("10".into()), "private, so that other files do not matter");
}

#[test]
fn a_second_owner_is_refused_until_all_logs_are_dropped() {
    let (_temporary, path) = written();
    let cache = CacheDir::open(&path).expect("opens");
    let log = cache.open_log("pods", &pods(), None).expect("opens");
    let refused = CacheDir::open(&path).expect_err("locked");
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused:?}");
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    let busy = cache.open_log("pods", &pods(), None).expect_err("open already");
    assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    drop(cache);
    assert!(matches!(CacheDir::open(&path), Err(OpenError::Locked { .. })), "the log still holds the lock");
    drop(log);
    assert_eq!(version(&path), Some("10".into()));
}

#[test]
fn a_copy_of_the_directory_can_be_used_elsewhere() {
    let (temporary, path) = written();
    let copy = temporary.path().join("copy");
    fs::create_dir(&copy).expect("creates");
    for file in fs::read_dir(&path).expect("readable") {
        let file = file.expect("a file");
        fs::copy(file.path(), copy.join(file.file_name())).expect("copies");
    }
    let _original = CacheDir::open(&path).expect("opens");
    assert_eq!(version(&copy), Some("10".into()));
}

#[test]
fn a_newer_format_is_refused_with_what_to_do() {
    let (_temporary, path) = written();
    let log = path.join("pods.log");
    let mut bytes = fs::read(&log).expect("readable");
    bytes[8] += 1;
    let checksum = crc32fast::hash(&bytes[..12]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&log, &bytes).expect("writes");
    let refused = CacheDir::open(&path).expect_err("newer");
    assert!(matches!(refused, OpenError::NewerFormat { format: 2, supported: 1, .. }), "{refused:?}");
    assert!(refused.to_string().contains("use the newer version, or remove the directory"), "{refused}");
    assert_eq!(fs::read(&log).expect("readable"), bytes, "nothing was changed");
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    let (temporary, path) = written();
    let outside = temporary.path().join("outside");
    fs::rename(path.join("pods.log"), &outside).expect("renames");
    std::os::unix::fs::symlink(&outside, path.join("pods.log")).expect("links");
    let before = fs::read(&outside).expect("readable");
    assert!(CacheDir::open(&path).is_err());
    assert_eq!(fs::read(&outside).expect("readable"), before);
}

#[test]
fn a_directory_for_reading_changes_nothing() {
    let (_temporary, path) = written();
    let directory = Directory::read_only(&path);
    assert!(
        directory.lock().is_err() && directory.create("x").is_err() && directory.remove("pods.log").is_err()
    );
    assert!(directory.rename("pods.log", "x").is_err());
    assert!(directory.open("pods.log").is_ok());
}
