//! Compact storage for the content of many objects of one kind.

mod compress;
mod content;
mod decompress;
mod dictionary;
mod encoding;
mod free_memory;
pub(crate) mod fuzzing;
mod interner;
mod patch;
mod restore;
mod retraining;
mod rewriter;
mod shared_values;
mod storage;
mod training;
mod usage;

pub(crate) use content::{Content, Unread};
pub use restore::Restoring;
pub use restore::SavedDictionary;
pub use storage::Storage;
pub use usage::PackUsage;

use crate::sync::lock;
use crate::{FieldPaths, MediaType, Object, fields::Found, identity::Identity, media_type::Encoded};
use dictionary::{Dictionaries, Dictionary, FIRST_SIZE};
use encoding::{Encoding, Tag};
use kube_informer_segments::{SegmentStore, StoreOptions};
use patch::Patched;
use rewriter::{Repack, Rewriter, is_worth};
use shared_values::SharedValues;
use std::{
    fmt,
    mem::replace,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use training::{Offer, Training};
use zstd::bulk::Compressor;

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
    /// without the value. Always in memory, except Secrets.
    Decoded,
}

/// The level at which content is packed when it arrives: speed over the last few percent.
const LEVEL: i32 = 1;
/// The level for protobuf until everything is packed again for the first time: reading a list takes less time, and its
/// objects are packed again soon after. For JSON it saves little time, and content would take half as much again.
const LIST_LEVEL: i32 = -3;
/// Shorter content does not become smaller with the frame around it.
const MIN_LENGTH: u32 = 128;
/// Packed bytes that arrive before anything is packed again: for less it does not pay.
const MIN_REPACK: usize = 64 << 10;
/// The part of a packed base that a patch may be long.
const PATCH_SHARE: usize = 4;
/// Changes in a row that were no patches before fewer are tried.
const PATCH_FAILURES: u32 = 8;
/// A collection has changed its encoding when this many more objects arrived in the new one than in the old one.
const CHANGED_ENCODING: u32 = 256;
/// Maximum size of the buffer that is kept for the next object.
const MAX_SCRATCH: usize = 128 << 10;

/// Packs the content of objects of one kind with a dictionary that it trains on them, and stores it in segments.
///
/// 1. The first objects are packed without a dictionary. Once there are enough objects, the next ones are samples for a
///    dictionary, with which all later objects are packed. If the ratio becomes worse for long, a new dictionary is
///    trained. [`repack`](Self::repack) packs the objects of before again, then forgets the old dictionary. Before that,
///    [`retrain`](Self::retrain) may find a better one.
/// 2. Content that does not become smaller by a tenth is stored as it is.
/// 3. Secrets never become part of a dictionary.
/// 4. Labels, owners and indexed fields are stored once for all objects that have the same.
/// 5. A new version of an object that differs little from the one before is stored as the packed bytes of that one and the
///    difference; [`repack`](Self::repack) packs it as a whole.
/// 6. Content is stored until the last clone of its object is dropped, and is garbage then, which compaction removes.
/// 7. With [`Storage::Disk`], content is in memory until [`spill`](Self::spill) has written it.
pub struct Packer {
    packing: Packing,
    on_disk: bool,
    /// Number of cached objects, see [`keeps`](Self::keeps).
    cached: AtomicUsize,
    bodies: SegmentStore<Dictionaries>,
    /// Packed bytes that arrived since everything was packed again.
    loose: AtomicUsize,
    /// Bytes of all packed content when a dictionary was last trained on a sample of it; 0 if there is none.
    retrained_at: AtomicUsize,
    /// How many saved caches are being restored: content with any of their dictionaries may come.
    restoring: AtomicUsize,
    /// Held while one object is packed. Most informers have one reflector, so that there is no contention.
    state: Mutex<State>,
    /// Held for one step of compaction, and while a new dictionary is added: no step sees two newest ones. Taken after
    /// `state`.
    rewriter: Mutex<Rewriter>,
}

#[derive(Default)]
struct State {
    /// The encoding of most objects. A server changes it at most once, but a few objects may always have the other one: those
    /// with a dropped field that protobuf cannot omit, and those of a namespace that is read in it.
    media_type: MediaType,
    /// How many more objects have arrived in the other encoding than in this one, lately.
    other_encoding: u32,
    trained: Option<Trained>,
    training: Training,
    /// Buffer for packed bytes before they are appended to a segment.
    scratch: Vec<u8>,
    /// Buffer for the packed bytes of the version before.
    before: Vec<u8>,
    /// Buffer for that version when it is unpacked.
    base: Vec<u8>,
    /// Changes in a row that were no patches.
    patch_failures: u32,
    /// Whether everything is or was packed again: most objects are changes from then on, and may stay as they are for long.
    repacked: bool,
    stats: PackStats,
    shared: SharedValues,
}

/// The dictionary of new objects.
struct Trained {
    dictionary: Arc<Dictionary>,
    /// Exists from the first object on, and until everything was packed again.
    compressor: Option<Compressor<'static>>,
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
    /// A packer without a dictionary, in memory.
    pub fn new(packing: Packing) -> Self {
        Self::with_storage(packing, Storage::Memory)
    }

    /// A packer without a dictionary.
    pub fn with_storage(packing: Packing, storage: Storage) -> Self {
        let (options, dictionaries) = (StoreOptions::default(), Dictionaries::default());
        Self {
            packing,
            on_disk: storage != Storage::Memory,
            cached: AtomicUsize::new(usize::MAX),
            bodies: match storage {
                Storage::Memory => SegmentStore::with_context(options, dictionaries),
                Storage::Disk(disk) => SegmentStore::on_disk(options, disk, dictionaries),
            },
            loose: AtomicUsize::new(0),
            retrained_at: AtomicUsize::new(0),
            restoring: AtomicUsize::new(0),
            state: Mutex::default(),
            rewriter: Mutex::default(),
        }
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

    /// The object as it is cached: its content is packed if that makes it smaller, and copied, so that it does not keep
    /// a larger buffer alive.
    pub fn pack<T>(&self, object: Object<T>) -> Object<T> {
        self.pack_with(object, &FieldPaths::default())
    }

    /// Packs an object as [`pack`](Self::pack) does. Reads `fields` before that and keeps them with the object
    /// ([`Object::packed_fields`]), so that readers of these fields need not unpack it.
    pub fn pack_with<T>(&self, object: Object<T>, fields: &FieldPaths) -> Object<T> {
        object.packed_by(self, fields, None)
    }

    /// Packs a new version of an object as [`pack_with`](Self::pack_with) does. If little has changed since `before`, only
    /// the difference is packed, in less time.
    pub fn pack_update<T>(&self, object: Object<T>, before: &Object<T>, fields: &FieldPaths) -> Object<T> {
        object.packed_by(self, fields, Some(&before.record().content))
    }

    /// Resolves when [`compact`](Self::compact) has work to do or `other` holds, which is looked at again after a
    /// [`wake`](Self::wake). One task waits at a time.
    pub fn compaction_due_or(&self, other: impl Fn() -> bool) -> impl Future<Output = ()> {
        self.bodies.compaction_due_or(other)
    }

    /// Lets the task that waits look again.
    pub fn wake(&self) {
        self.bodies.wake();
    }

    /// Does a part of the compaction that is due: looks at about `bytes` of packed content and removes what no object has
    /// any more; after the content, at some of the shared labels, owners and fields. Readers neither wait for it nor notice it.
    /// Returns whether more is due.
    pub fn compact(&self, bytes: usize) -> bool {
        let mut rewriter = lock(&self.rewriter);
        let dictionaries = self.bodies.context();
        let rewrite = |tag, packed: &[u8], out: &mut Vec<u8>| {
            rewriter.rewrite(Repack::Outdated, (tag, packed), out, dictionaries)
        };
        let more = self.bodies.compact(bytes, rewrite).more;
        drop(rewriter);
        more || self.lock().shared.sweep_some(self.bodies.dropped())
    }

    /// Whether much of the content is packed worse than it could be: there was no time when it arrived, or there is a new
    /// dictionary.
    pub fn is_repacking_due(&self) -> bool {
        !self.is_restoring()
            && (self.loose.load(Relaxed) > self.most_loose() || self.bodies.context().are_outdated())
    }

    /// Bytes that may have been packed since everything was packed again, before that is due.
    fn most_loose(&self) -> usize {
        MIN_REPACK.max(self.live_bytes() / 4)
    }

    /// Makes [`repack`](Self::repack) cover all content that is packed now.
    pub fn begin_repacking(&self) {
        self.lock().set_repacked();
        let mut rewriter = lock(&self.rewriter);
        rewriter.begin(self.bodies.context());
        if self.is_restoring() {
            rewriter.keep_dictionaries();
        }
        self.bodies.begin_rewrite();
        self.loose.store(0, Relaxed);
    }

    /// Packs about `bytes` of packed content again, a fifth smaller. That takes several times as long as packing it when it
    /// arrived; readers neither wait for it nor notice it. Returns whether more is to be done.
    pub fn repack(&self, bytes: usize) -> bool {
        let mut rewriter = lock(&self.rewriter);
        let dictionaries = self.bodies.context();
        let rewrite = |tag, packed: &[u8], out: &mut Vec<u8>| {
            rewriter.rewrite(Repack::Loose, (tag, packed), out, dictionaries)
        };
        let more = self.bodies.rewrite(bytes, rewrite).more;
        rewriter.return_memory(bytes, more);
        if !more {
            rewriter.end(dictionaries);
            drop(rewriter);
            self.lock().release();
        }
        more
    }

    /// Bytes that were packed since [`begin_repacking`](Self::begin_repacking), in use or not.
    pub fn loose_bytes(&self) -> usize {
        self.loose.load(Relaxed)
    }

    /// The content as it is cached. `before` is that of an earlier version of the object.
    pub(crate) fn pack_content(&self, encoded: &Encoded, secret: bool, before: Option<&Content>) -> Content {
        let Encoded { media_type, bytes: raw } = encoded;
        let mut state = self.lock();
        state.expect(*media_type);
        let dictionaries = state.stats.dictionaries;
        let content = match (self.packing, u32::try_from(raw.len())) {
            (Packing::Packed, Ok(raw_len)) => {
                let patched = before.and_then(|before| state.patch(encoded, before));
                let encoding = patched.unwrap_or_else(|| self.encode(&mut state, raw, secret));
                let bytes = if encoding == Encoding::Stored { &raw[..] } else { &state.scratch };
                let tag = Tag { patched: patched.is_some(), ..Tag::loose(raw_len, *media_type, encoding) };
                Content::Packed(self.bodies.insert(tag.bits(), bytes))
            }
            (Packing::Decoded, _) if !secret => Content::with_value(encoded.copied()),
            (_, Ok(raw_len)) if self.on_disk => {
                let tag = Tag { dense: true, ..Tag::loose(raw_len, *media_type, Encoding::Stored) };
                Content::Packed(self.bodies.insert(tag.bits(), raw))
            }
            _ => Content::raw(encoded.copied()),
        };
        state.release_large_buffers();
        state.stats.objects += 1;
        state.stats.raw_bytes += raw.len() as u64;
        state.stats.packed_bytes += content.packed_len().max(content.own_len()) as u64;
        let retrained = state.stats.dictionaries > dictionaries;
        drop(state);
        let packed = if self.packing == Packing::Packed { content.packed_len() } else { 0 };
        let most = self.most_loose();
        let before = self.loose.fetch_add(packed, Relaxed);
        // Once, and not for every object until it is repacked.
        if retrained || before <= most && before.saturating_add(packed) > most {
            self.bodies.wake();
        }
        content
    }

    /// Compresses into the buffer of `state`, unless that does not make the content smaller by a tenth.
    fn encode(&self, state: &mut State, raw: &[u8], secret: bool) -> Encoding {
        if raw.len() < MIN_LENGTH as usize {
            return Encoding::Stored;
        }
        let dictionary = if secret { None } else { self.dictionary_for(state, raw) };
        if state.compress(raw, dictionary.is_some()).is_none() {
            return Encoding::Stored;
        }
        let packed = state.scratch.len();
        if !secret {
            state.training.record_ratio(raw.len(), packed);
        }
        match dictionary {
            _ if !is_worth(packed, raw.len()) => Encoding::Stored,
            Some(dictionary) => Encoding::Dictionary(dictionary.id),
            None => Encoding::Plain,
        }
    }

    /// The dictionary for an object, which may be the last sample for a new one.
    fn dictionary_for(&self, state: &mut State, raw: &[u8]) -> Option<Arc<Dictionary>> {
        let cached = u64::try_from(self.cached.load(Relaxed)).unwrap_or(u64::MAX);
        let average = (state.stats.raw_bytes + raw.len() as u64) / (state.stats.objects + 1);
        if let Offer::Train(samples) = state.training.offer(raw, cached.saturating_mul(average)) {
            self.train(state, &samples);
            drop(samples);
            free_memory::return_to_system();
        }
        state.trained.as_ref().map(|trained| Arc::clone(&trained.dictionary))
    }

    /// Trains a dictionary. Content with the dictionary of before is packed again later.
    fn train(&self, state: &mut State, samples: &[Vec<u8>]) -> Option<()> {
        let id = self.bodies.context().next_id();
        self.install(state, Dictionary::train(id, samples, FIRST_SIZE)?)
    }

    /// Packs new objects with this dictionary, which is newer than all others.
    fn install(&self, state: &mut State, dictionary: Dictionary) -> Option<()> {
        let dictionary = Arc::new(dictionary);
        let compressor = Some(dictionary.compressor(state.level())?);
        state.stats.dictionaries += 1;
        state.stats.dictionary_bytes = dictionary.len() as u64;
        let rewriter = lock(&self.rewriter);
        self.bodies.context().add(&dictionary);
        drop(rewriter);
        state.trained = Some(Trained { dictionary, compressor });
        Some(())
    }

    /// Replaces labels, owner and fields by the shared copies of equal ones.
    pub(crate) fn share(&self, identity: &mut Identity, fields: &mut Option<Arc<Found>>) {
        self.lock().shared.share(identity, fields);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn buffers(&mut self) -> [&mut Vec<u8>; 3] {
        [&mut self.scratch, &mut self.before, &mut self.base]
    }

    /// The level at which objects are packed with the dictionary.
    fn level(&self) -> i32 {
        if self.repacked || self.media_type == MediaType::Json { LEVEL } else { LIST_LEVEL }
    }

    fn set_repacked(&mut self) {
        if !replace(&mut self.repacked, true) {
            self.drop_compressor();
        }
    }

    /// The next object creates it again.
    fn drop_compressor(&mut self) {
        if let Some(trained) = &mut self.trained {
            trained.compressor = None;
        }
    }

    /// Drops compressors and buffers: few objects arrive, and the next one creates them again in some tenths of a millisecond.
    fn release(&mut self) {
        self.drop_compressor();
        self.buffers().into_iter().for_each(|buffer| *buffer = Vec::new());
    }

    /// Keeps buffers for the next object unless one is large.
    fn release_large_buffers(&mut self) {
        if self.buffers().iter().any(|buffer| buffer.capacity() > MAX_SCRATCH) {
            self.buffers().into_iter().for_each(|buffer| *buffer = Vec::new());
        }
    }

    /// Prepares for content of another encoding than before: it has little in common with the dictionary, so that a new one
    /// is trained. Not for a few objects among others: each would cost a dictionary, and packing everything again with it.
    fn expect(&mut self, media_type: MediaType) {
        if self.has_changed_to(media_type) && !self.training.is_collecting() {
            self.trained = None;
            self.training = Training::default();
        }
    }

    /// Counts an object. Returns whether most objects have another encoding now.
    fn has_changed_to(&mut self, media_type: MediaType) -> bool {
        if self.media_type == media_type {
            self.other_encoding = self.other_encoding.saturating_sub(1);
            return false;
        }
        self.other_encoding += 1;
        // Samples may have either encoding.
        let changed = self.training.is_collecting() || self.other_encoding >= CHANGED_ENCODING;
        if changed {
            (self.media_type, self.other_encoding) = (media_type, 0);
        }
        changed
    }

    /// Writes the content to `scratch` as a patch of an earlier version, and returns the encoding of that. `None` if the
    /// two have little in common.
    ///
    /// The base has the newest dictionary: another one may be forgotten once everything that was packed before is packed
    /// again.
    fn patch(&mut self, encoded: &Encoded, before: &Content) -> Option<Encoding> {
        let dictionary = &self.trained.as_ref()?.dictionary;
        if self.patch_failures > PATCH_FAILURES && !self.stats.objects.is_multiple_of(PATCH_FAILURES.into()) {
            return None;
        }
        let tag = before.packed(&mut self.before)?;
        let encoding = Encoding::Dictionary(dictionary.id);
        if tag.encoding != encoding || tag.media_type != encoded.media_type {
            return None;
        }
        let (packed, len) = match tag.patched {
            true => Patched::read(&self.before).map(|patched| (patched.base, patched.base_len))?,
            false => (&self.before[..], tag.raw_len),
        };
        let limit = packed.len() / PATCH_SHARE;
        let written = if encoded.bytes.len() <= len as usize + limit {
            dictionary.unpack(packed, len as usize, &mut self.base)?;
            patch::write(&self.base, packed, &encoded.bytes, limit, &mut self.scratch)
        } else {
            None
        };
        self.patch_failures = if written.is_some() { 0 } else { self.patch_failures.saturating_add(1) };
        written.map(|()| encoding)
    }

    /// Compresses into `scratch`.
    fn compress(&mut self, raw: &[u8], with_dictionary: bool) -> Option<()> {
        let level = self.level();
        match &mut self.trained {
            Some(Trained { dictionary, compressor }) if with_dictionary => {
                let compressor = match compressor {
                    Some(compressor) => compressor,
                    none => none.insert(dictionary.compressor(level)?),
                };
                compress::compress_with(compressor, raw, &mut self.scratch)
            }
            _ => compress::compress(raw, &mut self.scratch),
        }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packer({:?}, {:?})", self.packing, self.stats())
    }
}

#[cfg(test)]
mod tests;
