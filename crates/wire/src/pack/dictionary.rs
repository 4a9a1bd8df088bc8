//! Compression dictionaries.

use crate::sync::lock;
use std::sync::Mutex;
use zstd::{
    bulk::{Compressor, Decompressor},
    zstd_safe::{CParameter, DictAttachPref},
};

/// Bytes of a dictionary. Larger ones do not improve the ratio for objects of some kilobytes, and take longer to train and
/// to use.
const SIZE: usize = 32 << 10;
/// Decompressors that are kept for the next reader; more concurrent readers create their own.
const MAX_SPARE: usize = 4;

/// A dictionary, shared by all objects that were packed with it.
pub(super) struct Dictionary {
    bytes: Box<[u8]>,
    /// Held only to take one out or put one back.
    spare: Mutex<Vec<Decompressor<'static>>>,
}

impl Dictionary {
    /// A dictionary for objects like the samples, and a compressor with it; `None` if the samples have too little in common.
    pub(super) fn train(samples: &[Vec<u8>], level: i32) -> Option<(Self, Compressor<'static>)> {
        let bytes = zstd::dict::from_samples(samples, SIZE).ok()?;
        let mut compressor = Compressor::with_dictionary(level, &bytes).ok()?;
        // The default for objects over 8 KB is to copy the tables of the dictionary for each of them.
        compressor.set_parameter(CParameter::ForceAttachDict(DictAttachPref::ForceAttach)).ok()?;
        // Length and dictionary are stored beside the bytes.
        compressor.set_parameter(CParameter::ContentSizeFlag(false)).ok()?;
        compressor.set_parameter(CParameter::DictIdFlag(false)).ok()?;
        Some((Self { bytes: bytes.into(), spare: Mutex::default() }, compressor))
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn unpack(&self, packed: &[u8], len: usize) -> Option<Vec<u8>> {
        let spare = lock(&self.spare).pop();
        let mut decompressor = match spare {
            Some(decompressor) => decompressor,
            None => Decompressor::with_dictionary(&self.bytes).ok()?,
        };
        let raw = decompressor.decompress(packed, len).ok();
        let mut spare = lock(&self.spare);
        if spare.len() < MAX_SPARE {
            spare.push(decompressor);
        }
        raw
    }
}
