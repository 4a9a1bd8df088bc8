//! Compact storage for the content of many objects of one kind.

mod dictionary;
pub(crate) mod fuzzing;
mod interner;
mod training;

use crate::sync::lock;
use crate::{FieldPaths, Object, Owner, decode_cache::KeptValue, fields::Found, identity::Identity};
use bytes::Bytes;
use dictionary::Dictionary;
use interner::Interner;
use std::{
    cell::RefCell,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use training::{Offer, Training};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::compress_bound,
};

/// How the content of cached objects is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Compressed with a dictionary trained on the objects, if that makes it smaller.
    #[default]
    Packed,
    /// As the server sent it.
    Raw,
    /// As the server sent it, with its first decoded value: for small kinds that are read all the time. Secrets are stored
    /// without the value.
    Decoded,
}

/// Speed over the last few percent: level 3 takes twice the time to save 8 % of a pod.
const LEVEL: i32 = 1;
/// Shorter content does not become smaller with the frame around it.
const MIN_LENGTH: usize = 128;
/// Maximum size of the buffer that is kept for the next object.
const MAX_SCRATCH: usize = 128 << 10;

/// The content of an object, packed or not.
#[derive(Clone)]
pub(crate) enum Content {
    Raw(Bytes),
    Packed(Packed),
    Decoded(Box<Decoded>),
}

/// The JSON, and its first decoded value.
#[derive(Clone)]
pub(crate) struct Decoded {
    json: Bytes,
    value: OnceLock<KeptValue>,
}

#[derive(Clone)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// Bytes when unpacked.
    raw_len: u32,
    /// The dictionary it was packed with; `None` for plain compression.
    dictionary: Option<Arc<Dictionary>>,
}

impl Content {
    /// The JSON. `None` only if memory is corrupted.
    pub(crate) fn read(&self) -> Option<Bytes> {
        match self {
            Self::Raw(bytes) => Some(bytes.clone()),
            Self::Decoded(decoded) => Some(decoded.json.clone()),
            Self::Packed(packed) => packed.read().map(Bytes::from),
        }
    }

    pub(crate) fn raw_len(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.len(),
            Self::Decoded(decoded) => decoded.json.len(),
            Self::Packed(packed) => packed.raw_len as usize,
        }
    }

    /// The cell for the decoded value, if it is stored.
    pub(crate) fn decoded_cell(&self) -> Option<&OnceLock<KeptValue>> {
        match self {
            Self::Decoded(decoded) => Some(&decoded.value),
            Self::Raw(_) | Self::Packed(_) => None,
        }
    }

    /// Bytes on the heap, without decoded values.
    pub(crate) fn heap_len(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.len(),
            Self::Decoded(decoded) => decoded.json.len() + size_of::<Decoded>(),
            Self::Packed(packed) => packed.bytes.len(),
        }
    }
}

impl Packed {
    fn read(&self) -> Option<Vec<u8>> {
        thread_local! {
            static PLAIN: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
        }
        let len = self.raw_len as usize;
        let raw = match &self.dictionary {
            Some(dictionary) => dictionary.unpack(&self.bytes, len),
            None => PLAIN.with_borrow_mut(|plain| {
                if plain.is_none() {
                    *plain = Decompressor::new().ok();
                }
                plain.as_mut()?.decompress(&self.bytes, len).ok()
            }),
        };
        raw.filter(|raw| raw.len() == len)
    }
}

/// Packs the content of objects of one kind with a dictionary that it trains on them.
///
/// 1. The first objects are packed without a dictionary. Once there are enough objects, the next ones are samples for a
///    dictionary, with which all later objects are packed. If the ratio becomes worse for long, a new dictionary is
///    trained. Objects keep the dictionary they were packed with; a dictionary is dropped with its last object.
/// 2. Content that does not become smaller by a tenth is stored as it is.
/// 3. Secrets never become part of a dictionary.
/// 4. Labels, owners and indexed fields are stored once for all objects that have the same.
pub struct Packer {
    packing: Packing,
    /// Number of cached objects, see [`keeps`](Self::keeps).
    cached: AtomicUsize,
    /// Held while one object is packed. Most informers have one reflector, so that there is no contention.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plain: Option<Compressor<'static>>,
    trained: Option<(Arc<Dictionary>, Compressor<'static>)>,
    training: Training,
    /// Buffer for packed bytes before they are copied into an allocation of their exact size: shrinking an allocation for the
    /// worst case would leave a hole after each object.
    scratch: Vec<u8>,
    stats: PackStats,
    labels: Interner<[u8]>,
    owners: Interner<Owner>,
    fields: Interner<Found>,
}

/// Counters of a [`Packer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PackStats {
    /// Packed objects.
    pub objects: u64,
    /// Bytes before packing.
    pub raw_bytes: u64,
    /// Bytes after packing.
    pub packed_bytes: u64,
    /// Dictionaries trained.
    pub dictionaries: u64,
    /// Bytes of the dictionary in use.
    pub dictionary_bytes: u64,
}

impl Packer {
    /// A packer without a dictionary.
    pub fn new(packing: Packing) -> Self {
        Self { packing, cached: AtomicUsize::new(usize::MAX), state: Mutex::default() }
    }

    /// Sets the approximate number of cached objects: for a few, no dictionary is trained. Until it is set, the packer
    /// assumes many.
    pub fn keeps(&self, objects: usize) {
        self.cached.store(objects, Relaxed);
    }

    /// The counters.
    pub fn stats(&self) -> PackStats {
        self.lock().stats
    }

    /// The object as it is cached: its content is packed if that makes it smaller, and lies in an allocation of its
    /// own, so that it does not keep a larger buffer alive.
    pub fn pack<T>(&self, object: Object<T>) -> Object<T> {
        self.pack_with(object, &FieldPaths::default())
    }

    /// Packs an object as [`pack`](Self::pack) does. Reads `fields` before that and keeps them with the object
    /// ([`Object::packed_fields`]), so that readers of these fields need not unpack it.
    pub fn pack_with<T>(&self, object: Object<T>, fields: &FieldPaths) -> Object<T> {
        object.packed_by(self, fields)
    }

    /// The content as it is cached.
    pub(crate) fn pack_content(&self, content: Content, secret: bool) -> Content {
        let Content::Raw(raw) = content else { return content };
        let mut state = self.lock();
        let packed = match self.packing {
            Packing::Packed if raw.len() >= MIN_LENGTH => {
                let cached = u64::try_from(self.cached.load(Relaxed)).unwrap_or(u64::MAX);
                state.pack(&raw, secret, cached)
            }
            _ => None,
        };
        state.stats.objects += 1;
        state.stats.raw_bytes += raw.len() as u64;
        let stored = match packed {
            Some(packed) => Content::Packed(packed),
            None => {
                let json = Bytes::copy_from_slice(&raw);
                match self.packing {
                    Packing::Decoded if !secret => {
                        Content::Decoded(Box::new(Decoded { json, value: OnceLock::new() }))
                    }
                    _ => Content::Raw(json),
                }
            }
        };
        state.stats.packed_bytes += stored.heap_len() as u64;
        stored
    }

    /// Replaces labels, owner and fields by the shared copies of equal ones.
    pub(crate) fn share(&self, identity: &mut Identity, fields: &mut Option<Arc<Found>>) {
        let mut state = self.lock();
        identity.labels.share(|labels| state.labels.intern(labels));
        identity.controller = identity.controller.take().map(|owner| state.owners.intern(owner));
        *fields = fields.take().map(|fields| state.fields.intern(fields));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// `None` if packing does not make it smaller by a tenth. `cached` is the number of cached objects.
    fn pack(&mut self, raw: &[u8], secret: bool, cached: u64) -> Option<Packed> {
        let raw_len = u32::try_from(raw.len()).ok()?;
        let dictionary = if secret { None } else { self.dictionary_for(raw, cached) };
        self.compress(raw, dictionary.is_some())?;
        let packed = self.scratch.len();
        if !secret {
            self.training.record_ratio(raw.len(), packed);
        }
        let smaller = packed < raw.len() - raw.len() / 10;
        let bytes = smaller.then(|| Box::from(self.scratch.as_slice()));
        if self.scratch.capacity() > MAX_SCRATCH {
            self.scratch = Vec::new();
        }
        Some(Packed { bytes: bytes?, raw_len, dictionary })
    }

    /// Compresses into `scratch`.
    fn compress(&mut self, raw: &[u8], with_dictionary: bool) -> Option<()> {
        let compressor = match &mut self.trained {
            Some((_, compressor)) if with_dictionary => compressor,
            _ => match &mut self.plain {
                Some(plain) => plain,
                none => none.insert(Compressor::new(LEVEL).ok()?),
            },
        };
        self.scratch.clear();
        self.scratch.reserve(compress_bound(raw.len()));
        compressor.compress_to_buffer(raw, &mut self.scratch).ok().map(drop)
    }

    /// The dictionary for an object, which may be the last sample for a new one.
    fn dictionary_for(&mut self, raw: &[u8], cached: u64) -> Option<Arc<Dictionary>> {
        let average = (self.stats.raw_bytes + raw.len() as u64) / (self.stats.objects + 1);
        if let Offer::Train(samples) = self.training.offer(raw, cached.saturating_mul(average))
            && let Some((dictionary, compressor)) = Dictionary::train(&samples, LEVEL)
        {
            self.stats.dictionaries += 1;
            self.stats.dictionary_bytes = dictionary.len() as u64;
            self.trained = Some((Arc::new(dictionary), compressor));
            self.plain = None;
        }
        self.trained.as_ref().map(|(dictionary, _)| Arc::clone(dictionary))
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packer({:?}, {:?})", self.packing, self.stats())
    }
}

#[cfg(test)]
mod tests;
