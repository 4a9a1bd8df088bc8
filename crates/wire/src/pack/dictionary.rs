//! Compression dictionaries.

use super::decompress::decompress;
use arc_swap::ArcSwap;
use std::sync::{Arc, OnceLock};
use zstd::{
    bulk::Compressor,
    zstd_safe::{CParameter, DDict, DictAttachPref},
};

/// Bytes of the first dictionary of a collection. A larger one needs more samples than there are in a part of a list.
pub(super) const FIRST_SIZE: usize = 32 << 10;

/// The number of a dictionary among those of one packer. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DictionaryId(pub(super) u32);

/// A dictionary, shared by all objects that were packed with it.
pub(super) struct Dictionary {
    pub(super) id: DictionaryId,
    bytes: Box<[u8]>,
    /// Its tables for reading, from the first reader on; `None` if the bytes are no dictionary.
    tables: OnceLock<Option<DDict<'static>>>,
}

impl Dictionary {
    /// A dictionary of at most `size` bytes for objects like the samples; `None` if they have too little in common.
    pub(super) fn train(id: DictionaryId, samples: &[Vec<u8>], size: usize) -> Option<Self> {
        let bytes = zstd::dict::from_samples(samples, size).ok()?;
        Some(Self::saved(id, bytes))
    }

    /// A dictionary that was trained before.
    pub(super) fn saved(id: DictionaryId, bytes: Vec<u8>) -> Self {
        Self { id, bytes: bytes.into(), tables: OnceLock::new() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A compressor that uses this dictionary.
    pub(super) fn compressor(&self, level: i32) -> Option<Compressor<'static>> {
        let mut compressor = Compressor::with_dictionary(level, &self.bytes).ok()?;
        // The default for objects over 8 KB is to copy the tables of the dictionary for each of them.
        compressor.set_parameter(CParameter::ForceAttachDict(DictAttachPref::ForceAttach)).ok()?;
        // Length and dictionary are stored beside the bytes.
        compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
        compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
        Some(compressor)
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the content of `raw` by that of a body with `len` bytes; `None` if it is something else.
    pub(super) fn unpack(&self, packed: &[u8], len: usize, raw: &mut Vec<u8>) -> Option<()> {
        let tables = self.tables.get_or_init(|| DDict::try_create(&self.bytes));
        decompress(packed, len, Some(tables.as_ref()?), raw)
    }
}

/// The dictionaries that bodies of one packer are packed with. Readers take no lock.
#[derive(Default)]
pub(crate) struct Dictionaries {
    /// In ascending order of ids. More than one only while bodies are packed again with the newest one.
    known: ArcSwap<Vec<Arc<Dictionary>>>,
}

impl Dictionaries {
    pub(super) fn get(&self, id: DictionaryId) -> Option<Arc<Dictionary>> {
        self.known.load().iter().find(|known| known.id == id).cloned()
    }

    /// The dictionary for new bodies.
    pub(super) fn newest(&self) -> Option<Arc<Dictionary>> {
        self.known.load().last().cloned()
    }

    /// The id of the next dictionary.
    pub(super) fn next_id(&self) -> DictionaryId {
        DictionaryId(self.newest().map_or(0, |newest| newest.id.0.saturating_add(1)))
    }

    pub(super) fn add(&self, dictionary: &Arc<Dictionary>) {
        self.known.rcu(|known| known.iter().chain([dictionary]).cloned().collect::<Vec<_>>());
    }

    /// Adds dictionaries with ids of their own, in ascending order of ids.
    pub(super) fn add_saved(&self, saved: &[Arc<Dictionary>]) {
        self.known.rcu(|known| {
            let mut all: Vec<_> = known.iter().chain(saved).cloned().collect();
            all.sort_by_key(|dictionary| dictionary.id);
            all
        });
    }

    /// Whether there are dictionaries before the newest one.
    pub(super) fn are_outdated(&self) -> bool {
        self.known.load().len() > 1
    }

    /// Forgets all dictionaries before this one: no body is packed with them any more.
    pub(super) fn forget_before(&self, id: DictionaryId) {
        self.known.rcu(|known| known.iter().filter(|known| known.id >= id).cloned().collect::<Vec<_>>());
    }

    /// Bytes of all dictionaries, without the tables of compressors and decompressors, which zstd allocates.
    pub(super) fn heap_size(&self) -> usize {
        self.known.load().iter().map(|known| size_of::<Dictionary>() + known.len()).sum()
    }
}
