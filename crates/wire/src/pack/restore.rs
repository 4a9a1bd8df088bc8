//! Packed content that survives the process.

use super::{
    Content, Packer, Packing, Trained,
    dictionary::{Dictionary, DictionaryId},
    encoding::{Encoding, MAX_DICTIONARY, Tag},
    patch::Patched,
    training::Training,
};
use crate::{media_type::Encoded, sync::lock};
use bytes::Bytes;
use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// A dictionary to be saved with the content that was packed with it.
#[derive(Clone)]
pub struct SavedDictionary(Arc<Dictionary>);

impl SavedDictionary {
    /// Its number, which no other dictionary of the packer ever has.
    pub fn id(&self) -> u32 {
        self.0.id.0
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for SavedDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SavedDictionary({}, {} bytes)", self.id(), self.bytes().len())
    }
}

/// A saved cache is being restored: no dictionary is forgotten meanwhile.
pub(crate) struct Restoring<'a>(&'a Packer);

impl Drop for Restoring<'_> {
    fn drop(&mut self) {
        self.0.restoring.fetch_sub(1, Relaxed);
        self.0.bodies.wake();
    }
}

impl Packer {
    /// To be held until all objects of a saved cache are restored.
    pub(crate) fn restoring(&self) -> Restoring<'_> {
        // Under the lock: packing everything again either has begun, and keeps the dictionaries, or sees this when it begins.
        let mut rewriter = lock(&self.rewriter);
        self.restoring.fetch_add(1, Relaxed);
        rewriter.keep_dictionaries();
        drop(rewriter);
        Restoring(self)
    }

    pub(super) fn is_restoring(&self) -> bool {
        self.restoring.load(Relaxed) > 0
    }

    /// The dictionary that content with a tag needs, if it needs one. The error is one that was forgotten.
    pub(crate) fn dictionary_of(&self, tag: u64) -> Result<Option<SavedDictionary>, u32> {
        match Tag::from_bits(tag).encoding {
            Encoding::Dictionary(id) => {
                self.bodies.context().get(id).map(|dictionary| Some(SavedDictionary(dictionary))).ok_or(id.0)
            }
            Encoding::Stored | Encoding::Plain => Ok(None),
        }
    }

    /// Adds saved dictionaries, and packs new objects with the newest one. `None` if one of them cannot be used, or has the
    /// number of another one.
    pub(crate) fn add_saved_dictionaries(&self, saved: Vec<(u32, Vec<u8>)>) -> Option<()> {
        let mut state = self.lock();
        let rewriter = lock(&self.rewriter);
        let dictionaries = self.bodies.context();
        let mut new: Vec<Arc<Dictionary>> = Vec::new();
        for (id, bytes) in saved {
            let is_it = |known: &&Arc<Dictionary>| known.id == DictionaryId(id);
            match dictionaries.get(DictionaryId(id)).as_ref().or_else(|| new.iter().find(is_it)) {
                Some(known) if known.bytes() == bytes => {}
                Some(_) => return None,
                None if id >= MAX_DICTIONARY => return None,
                None => new.push(Arc::new(Dictionary::saved(DictionaryId(id), bytes))),
            }
        }
        let newest = new.iter().max_by_key(|dictionary| dictionary.id).cloned();
        let is_newest =
            |dictionary: &Arc<Dictionary>| dictionaries.newest().is_none_or(|known| known.id < dictionary.id);
        let trained = match newest.filter(is_newest) {
            Some(dictionary) => {
                Some(Trained { compressor: Some(dictionary.compressor(super::LEVEL)?), dictionary })
            }
            None => None,
        };
        dictionaries.add_saved(&new);
        drop(rewriter);
        if let Some(trained) = trained {
            state.stats.dictionary_bytes = trained.dictionary.len() as u64;
            state.trained = Some(trained);
            state.training = Training::measuring();
        }
        Some(())
    }

    /// The content of a saved object as it is cached. `None` if the tag contradicts the bytes, names an unknown dictionary,
    /// or names a content of more than `max` bytes.
    pub(crate) fn restored_content(&self, tag: u64, bytes: &[u8], secret: bool, max: u32) -> Option<Content> {
        let Tag { raw_len, media_type, encoding, dense, patched } = Tag::from_bits(tag);
        // A patched content is as long as its base, roughly.
        let (base, base_len) = match patched {
            true => Patched::read(bytes).map(|patched| (patched.base, patched.base_len))?,
            false => (bytes, raw_len),
        };
        let is_valid = raw_len.max(base_len) <= max
            && match encoding {
                Encoding::Stored => base.len() == base_len as usize,
                Encoding::Plain => base.len() <= base_len as usize,
                Encoding::Dictionary(id) => {
                    base.len() <= base_len as usize && self.bodies.context().get(id).is_some()
                }
            };
        // Bits that no tag has must not come back as another tag.
        if !is_valid || Tag::from_bits(tag).bits() != tag {
            return None;
        }
        let mut state = self.lock();
        // The next objects come in the same encoding, most likely, and go on with the dictionary.
        state.has_changed_to(media_type);
        let raw = || Encoded { media_type, bytes: Bytes::copy_from_slice(bytes) };
        let is_raw = self.packing != Packing::Packed && encoding == Encoding::Stored && !patched;
        // Content that is to stay as it is is not packed again.
        let dense = dense || is_raw;
        let content = match self.packing {
            Packing::Decoded if is_raw && !secret => Content::with_value(raw()),
            _ if is_raw && !self.on_disk => Content::raw(raw()),
            // Content that is packed stays packed until the object changes, also if the packing was another one before.
            _ => Content::Packed(self.bodies.insert(Tag { dense, ..Tag::from_bits(tag) }.bits(), bytes)),
        };
        state.stats.objects += 1;
        state.stats.raw_bytes += u64::from(raw_len);
        state.stats.packed_bytes += content.packed_len().max(content.own_len()) as u64;
        drop(state);
        if !dense {
            self.loose.fetch_add(content.packed_len(), Relaxed);
        }
        Some(content)
    }
}
