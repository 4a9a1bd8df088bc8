//! Encodings of large objects that are being sent, shared by all watches.

use kube_informer_wire::sync::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;

use super::event::{EventType, Format};
use crate::storage::Stored;

/// Smaller objects are encoded for each watch: their copies are small, and a shared map would take longer.
const MIN_SHARED: usize = 16 * 1024;

/// Encodings of large objects, shared as long as one watch has not sent its copy.
///
/// A client that does not read keeps the encoding of its next event in memory. Without sharing, a thousand watches of one object would
/// keep a thousand encodings.
#[derive(Debug, Default)]
pub(crate) struct Encodings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By version of an object. The weak reference keeps its address from being used again.
    entries: HashMap<Key, (Weak<Stored>, Weak<Vec<u8>>)>,
    /// Entries after the last sweep.
    swept: usize,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The address of the version.
    stored: usize,
    event_type: EventType,
    revision: u64,
    format: Format,
}

/// The owner of shared bytes.
struct Buffer(Arc<Vec<u8>>);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Encodings {
    /// Returns the encoding of a version, which `encode` makes if no watch is sending it.
    ///
    /// The lock is held while encoding, so that a thousand watches that open at once encode once.
    pub(super) fn get(
        &self,
        stored: &Arc<Stored>,
        event_type: EventType,
        revision: u64,
        format: &Format,
        encode: impl FnOnce() -> Bytes,
    ) -> Bytes {
        if stored.document.encoded_len() < MIN_SHARED {
            return encode();
        }
        let key = Key { stored: Arc::as_ptr(stored) as usize, event_type, revision, format: format.clone() };
        let mut state = lock(&self.0);
        if let Some(bytes) = state.entries.get(&key).and_then(|(_, bytes)| bytes.upgrade()) {
            return Bytes::from_owner(Buffer(bytes));
        }
        let bytes = Arc::new(Vec::from(encode()));
        state.entries.insert(key, (Arc::downgrade(stored), Arc::downgrade(&bytes)));
        state.sweep();
        Bytes::from_owner(Buffer(bytes))
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.0).entries.len()
    }
}

impl State {
    /// Removes unused entries when their number has doubled.
    fn sweep(&mut self) {
        if self.entries.len() > 2 * self.swept + 8 {
            self.entries.retain(|_, (_, bytes)| bytes.strong_count() > 0);
            self.swept = self.entries.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Document;
    use serde_json::json;

    fn stored(size: usize) -> Arc<Stored> {
        let object = json!({"metadata": {"name": "a"}, "data": "x".repeat(size)});
        Arc::new(Stored { key: "/x/a".into(), revision: 1, document: Document::encode(&object, []).unwrap() })
    }

    #[test]
    fn an_encoding_is_shared_while_it_is_in_use() {
        let (encodings, object) = (Encodings::default(), stored(100_000));
        let mut made = 0;
        let mut get = |format: &str| {
            encodings.get(&object, EventType::Added, 1, &Format::new(format), || {
                made += 1;
                Bytes::from(vec![7; 100])
            })
        };
        let (first, second, other) = (get("a"), get("a"), get("b"));
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert_ne!(first.as_ptr(), other.as_ptr());
        drop((first, second));
        get("a");
        assert_eq!(made, 3);
    }

    #[test]
    fn small_objects_are_not_shared_and_unused_entries_are_removed() {
        let encodings = Encodings::default();
        let get = |object: &Arc<Stored>| {
            encodings.get(object, EventType::Added, 1, &Format::new("a"), || Bytes::from_static(b"x"))
        };
        get(&stored(10));
        assert_eq!(encodings.len(), 0);
        for _ in 0..1000 {
            get(&stored(20_000));
        }
        assert!(encodings.len() <= 20, "{}", encodings.len());
    }
}
