//! Objects and logs of the tests.

use kube_informer_persist::{
    BelongsTo, CacheDir, Disk, EncryptionKey, Log, MemoryDisk, OpenedLog, Position, Restored, Rewrite,
};
use std::time::{Duration, SystemTime};

/// Key, identity, tag and content.
pub(crate) type Object = (String, Vec<u8>, u64, Vec<u8>);

/// A version, and the objects there, in the order of keys.
pub(crate) type State = (String, Vec<Object>);

pub(crate) fn position(version: &str) -> Position {
    let saved_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Position { version: version.into(), saved_at }
}

pub(crate) fn pods() -> BelongsTo {
    BelongsTo::new().with("cluster", "1f6b").with("resource", "pods")
}

pub(crate) fn object(key: &str, number: u64) -> Object {
    let identity = format!("identity {number}").into_bytes();
    (key.to_owned(), identity, number, vec![number as u8; number as usize % 100])
}

pub(crate) fn put<D: Disk>(log: &mut Log<D>, (key, identity, tag, content): &Object) {
    log.put(key, identity, *tag, content);
}

pub(crate) fn put_new<D: Disk>(rewrite: &mut Rewrite<D>, (key, identity, tag, content): &Object) {
    rewrite.put(key, identity, *tag, content);
}

pub(crate) fn open(disk: &MemoryDisk, key: Option<&EncryptionKey>) -> OpenedLog<MemoryDisk> {
    CacheDir::on(disk.clone()).expect("not locked").open_log("pods", &pods(), key).expect("opens")
}

/// The restored state, with all contents.
pub(crate) fn state<D: Disk>(opened: &OpenedLog<D>) -> Option<State> {
    let restored = opened.restored.as_ref()?;
    let objects = restored.objects.iter().map(|object| {
        let mut content = Vec::new();
        restored.bodies.read(&object.content, &mut content).expect("intact");
        read(restored, object, content)
    });
    Some((restored.position.version.clone(), objects.collect()))
}

pub(crate) fn read<D: Disk>(
    restored: &Restored<D>,
    object: &kube_informer_persist::SavedObject,
    content: Vec<u8>,
) -> Object {
    (restored.key(object).to_owned(), restored.identity(object).to_vec(), object.content.tag, content)
}
