//! A dictionary: what objects of one kind have in common.

use std::sync::{Mutex, PoisonError};
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, DictAttachPref},
};

/// Bytes of a dictionary. Larger ones gain nothing on objects of some kilobytes, and take longer to make and to use.
const SIZE: usize = 32 << 10;
/// Decompressors kept for the next reader; more readers at once make their own.
const SPARE: usize = 4;

/// What objects of one kind have in common, shared by all that were packed with it.
pub(super) struct Dictionary {
    bytes: Box<[u8]>,
    /// Ready for use; held only to take one out or put one back.
    spare: Mutex<Vec<Decompressor<'static>>>,
}

impl Dictionary {
    /// A dictionary for objects like the samples, and a compressor that uses it; `None` if they have too little
    /// in common.
    pub(super) fn train(samples: &[Vec<u8>], level: i32) -> Option<(Self, Compressor<'static>)> {
        let bytes = zstd::dict::from_samples(samples, SIZE).ok()?;
        let mut compressor = Compressor::with_dictionary(level, &bytes).ok()?;
        // The default for objects over 8 KB is to copy the tables of the dictionary for each of them.
        compressor.set_parameter(CParameter::ForceAttachDict(DictAttachPref::ForceAttach)).ok()?;
        // Length and dictionary are kept beside the bytes.
        compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
        compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
        Some((Self { bytes: bytes.into(), spare: Mutex::default() }, compressor))
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn unpack(&self, packed: &[u8], len: usize) -> Option<Vec<u8>> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decompressor = match spare {
            Some(decompressor) => decompressor,
            None => Decompressor::with_dictionary(&self.bytes).ok()?,
        };
        let raw = decompressor.decompress(packed, len).ok();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE {
            spare.push(decompressor);
        }
        raw
    }
}
