//! Keeping the content of many objects of one kind in little room.

mod dictionary;
pub(crate) mod fuzzing;
mod interner;
mod training;

use crate::{FieldPaths, Object, Owner, fields::Found, identity::Identity, recent::AnyValue};
use bytes::Bytes;
use dictionary::Dictionary;
use interner::Interner;
use std::{
    cell::RefCell,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use training::{Training, Verdict};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::compress_bound,
};

/// How the content of cached objects is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Packing {
    /// Compressed with a dictionary trained on the objects themselves, where that pays.
    #[default]
    Packed,
    /// As the server sent it.
    Raw,
    /// As the server sent it, with the value that was decoded of it first: for small kinds that are read all the
    /// time. Secrets are kept without.
    Decoded,
}

/// Speed over the last few percent: level 3 takes twice the time to save 8 % of a pod.
const LEVEL: i32 = 1;
/// Shorter content is not worth the frame around it.
const SHORTEST: usize = 128;
/// What is kept to pack the next object in; larger ones are rare.
const LARGEST_SCRATCH: usize = 128 << 10;

/// The content of an object, packed or not.
#[derive(Clone)]
pub(crate) enum Content {
    Raw(Bytes),
    Packed(Packed),
    Decoded(Box<Decoded>),
}

/// The JSON, and what it was first decoded into.
#[derive(Clone)]
pub(crate) struct Decoded {
    json: Bytes,
    value: OnceLock<AnyValue>,
}

#[derive(Clone)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// Bytes when unpacked.
    raw_len: u32,
    /// What it was packed with; none for plain compression.
    dictionary: Option<Arc<Dictionary>>,
}

impl Content {
    /// The JSON. `None` only if memory was damaged.
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

    /// Where the decoded value is kept, if it is.
    pub(crate) fn kept(&self) -> Option<&OnceLock<AnyValue>> {
        match self {
            Self::Decoded(decoded) => Some(&decoded.value),
            Self::Raw(_) | Self::Packed(_) => None,
        }
    }

    /// Bytes on the heap, decoded values not counted.
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

/// Packs the content of objects of one kind, and learns from them how to do it well.
///
/// 1. The first objects are packed one by one. When there are enough of them for that to pay, a dictionary is trained
///    on those that come next; those after it are packed with that. When the ratio gets worse for long, a new one is
///    trained. Objects keep the dictionary they were packed with; one that nobody needs any more is gone.
/// 2. What does not get smaller by a tenth is kept as it is.
/// 3. Secrets never become part of a dictionary.
/// 4. Labels, owners and the fields that indexes want are kept once for all objects that have them in common.
pub struct Packer {
    packing: Packing,
    /// How many objects there are, as far as anybody has said.
    kept: AtomicUsize,
    /// Held while one object is packed. There is one packer for each informer, and one reflector in most.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plain: Option<Compressor<'static>>,
    trained: Option<(Arc<Dictionary>, Compressor<'static>)>,
    training: Training,
    /// Where packed bytes come out before they get an allocation of just their size: shrinking one that was made for the
    /// worst case would leave a hole behind each object.
    scratch: Vec<u8>,
    stats: PackStats,
    labels: Interner<[u8]>,
    owners: Interner<Owner>,
    fields: Interner<Found>,
}

/// What a [`Packer`] has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PackStats {
    /// Objects that passed.
    pub objects: u64,
    /// Bytes that came in.
    pub raw_bytes: u64,
    /// Bytes that went out.
    pub packed_bytes: u64,
    /// Dictionaries trained.
    pub dictionaries: u64,
    /// Bytes of the dictionary in use.
    pub dictionary_bytes: u64,
}

impl Packer {
    /// A packer that has learned nothing yet.
    pub fn new(packing: Packing) -> Self {
        Self { packing, kept: AtomicUsize::new(usize::MAX), state: Mutex::default() }
    }

    /// Says how many objects are kept, about: for a few, no dictionary is made. Until it is said there are many.
    pub fn keeps(&self, objects: usize) {
        self.kept.store(objects, Relaxed);
    }

    /// What has been done so far.
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

    pub(crate) fn pack_content(&self, content: Content, secret: bool) -> Content {
        let Content::Raw(raw) = content else { return content };
        let mut state = self.lock();
        let packed = match self.packing {
            Packing::Packed if raw.len() >= SHORTEST => {
                let kept = u64::try_from(self.kept.load(Relaxed)).unwrap_or(u64::MAX);
                state.pack(&raw, secret, kept)
            }
            _ => None,
        };
        state.stats.objects += 1;
        state.stats.raw_bytes += raw.len() as u64;
        let kept = match packed {
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
        state.stats.packed_bytes += kept.heap_len() as u64;
        kept
    }

    /// Lets an object share what it has in common with others.
    pub(crate) fn share(&self, identity: &mut Identity, fields: &mut Option<Arc<Found>>) {
        let mut state = self.lock();
        identity.labels.share(|labels| state.labels.intern(labels));
        identity.controller = identity.controller.take().map(|owner| state.owners.intern(owner));
        *fields = fields.take().map(|fields| state.fields.intern(fields));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// `None` if packing does not pay. `kept` is how many objects there are.
    fn pack(&mut self, raw: &[u8], secret: bool, kept: u64) -> Option<Packed> {
        let raw_len = u32::try_from(raw.len()).ok()?;
        let dictionary = if secret { None } else { self.dictionary_for(raw, kept) };
        self.compress(raw, dictionary.is_some())?;
        let packed = self.scratch.len();
        if !secret {
            self.training.packed(raw.len(), packed);
        }
        let pays = packed < raw.len() - raw.len() / 10;
        let bytes = pays.then(|| Box::from(self.scratch.as_slice()));
        if self.scratch.capacity() > LARGEST_SCRATCH {
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

    /// The dictionary to use for an object, which may be what completes the training of a new one.
    fn dictionary_for(&mut self, raw: &[u8], kept: u64) -> Option<Arc<Dictionary>> {
        let average = (self.stats.raw_bytes + raw.len() as u64) / (self.stats.objects + 1);
        if let Verdict::Train(samples) = self.training.offer(raw, kept.saturating_mul(average))
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
