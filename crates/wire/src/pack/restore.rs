//! Packed content that survives the process.

use super::{
    Content, Packer, Packing, Trained,
    dictionary::{Dictionary, DictionaryId},
    encoding::{Encoding, MAX_DICTIONARY, Tag},
    training::Training,
};
use crate::{media_type::Encoded, sync::lock};
use bytes::Bytes;
use kube_informer_segments::{BodySource, OutsideBody};
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

/// A saved cache is being restored: no dictionary is forgotten meanwhile, and content stays where it is.
///
/// When the last one is dropped, compaction moves restored content into memory. What it cannot read is looked for among the
/// cached objects, which must show what was restored by then.
#[must_use = "it ends when this is dropped"]
pub struct Restoring(Arc<Packer>);

impl Drop for Restoring {
    fn drop(&mut self) {
        if self.0.restoring.fetch_sub(1, Relaxed) == 1 {
            self.0.bodies.move_adopted();
        }
    }
}

impl fmt::Debug for Restoring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Restoring")
    }
}

impl Packer {
    /// Begins to restore a saved cache. The caller holds the guard until all objects are restored and shown.
    pub fn restoring(self: &Arc<Self>) -> Restoring {
        // Under the lock: packing everything again either has begun, and keeps the dictionaries, or sees this when it begins.
        let mut rewriter = lock(&self.rewriter);
        self.restoring.fetch_add(1, Relaxed);
        rewriter.keep_dictionaries();
        drop(rewriter);
        Restoring(Arc::clone(self))
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
            state.repacked = true;
            state.training = Training::measuring();
        }
        Some(())
    }

    /// The contents of saved objects as they are cached, in the order of `saved`. Their bytes stay in `source` until compaction
    /// moves them, except those of contents in allocations of their own, which are read now. `None` if such a content cannot be
    /// read, or if a tag contradicts the length, names an unknown dictionary, or names a content of more than `max` bytes.
    pub(crate) fn restored_contents(
        &self,
        source: &Arc<dyn BodySource>,
        saved: &[OutsideBody],
        secret: bool,
        max: u32,
    ) -> Option<Vec<Content>> {
        let tags = saved.iter().map(|saved| self.restored_tag(saved, max)).collect::<Option<Vec<_>>>()?;
        let (mut contents, mut outside) = (Vec::with_capacity(saved.len()), Vec::new());
        for (saved, &tag) in saved.iter().zip(&tags) {
            if self.has_own_allocation(tag, secret) {
                contents.push(Some(self.own_content(source, saved, tag, secret)?));
            } else {
                contents.push(None);
                outside.push(OutsideBody { tag: tag.bits(), ..*saved });
            }
        }
        let mut loose = 0;
        let mut state = self.lock();
        for (saved, tag) in saved.iter().zip(&tags) {
            // The next objects come in the same encoding, most likely, and go on with the dictionary.
            state.has_changed_to(tag.media_type);
            state.stats.objects += 1;
            state.stats.raw_bytes += u64::from(tag.raw_len);
            state.stats.packed_bytes += u64::from(saved.len);
            loose += if tag.dense { 0 } else { saved.len as usize };
        }
        drop(state);
        self.loose.fetch_add(loose, Relaxed);
        let mut adopted = self.bodies.adopt(source, &outside).into_iter();
        contents.into_iter().map(|own| own.or_else(|| adopted.next().map(Content::Packed))).collect()
    }

    /// The tag that saved content has from now on; `None` if the saved one is invalid.
    fn restored_tag(&self, saved: &OutsideBody, max: u32) -> Option<Tag> {
        let tag = Tag::from_bits(saved.tag);
        let Tag { raw_len, encoding, patched, .. } = tag;
        let is_known = match encoding {
            Encoding::Stored | Encoding::Plain => true,
            Encoding::Dictionary(id) => self.bodies.context().get(id).is_some(),
        };
        // A patched content is as long as its base, roughly, whose length is in its bytes.
        let is_possible =
            patched || saved.len == raw_len || saved.len < raw_len && encoding != Encoding::Stored;
        // Reading allocates both lengths. A tag with unused bits would be saved as another one.
        let is_valid = raw_len.max(saved.len) <= max && is_known && is_possible && tag.bits() == saved.tag;
        // Content that is to stay as it is is not packed again.
        is_valid.then_some(Tag { dense: tag.dense || self.is_raw(tag), ..tag })
    }

    /// Whether content with a tag is stored as the server sent it, by choice. Content that is packed stays packed until the
    /// object changes, also if the packing was another one before.
    fn is_raw(&self, tag: Tag) -> bool {
        self.packing != Packing::Packed && tag.encoding == Encoding::Stored && !tag.patched
    }

    fn has_own_allocation(&self, tag: Tag, secret: bool) -> bool {
        self.is_raw(tag) && (!self.on_disk || self.packing == Packing::Decoded && !secret)
    }

    /// Reads content that is stored in an allocation of its own.
    fn own_content(
        &self,
        source: &Arc<dyn BodySource>,
        saved: &OutsideBody,
        tag: Tag,
        secret: bool,
    ) -> Option<Content> {
        let mut bytes = Vec::new();
        source.read(saved.number, &mut bytes).ok()?;
        let encoded = Encoded { media_type: tag.media_type, bytes: Bytes::from(bytes) };
        let is_whole = encoded.bytes.len() == tag.raw_len as usize;
        let keeps_value = self.packing == Packing::Decoded && !secret;
        is_whole.then(|| if keeps_value { Content::with_value(encoded) } else { Content::raw(encoded) })
    }
}
