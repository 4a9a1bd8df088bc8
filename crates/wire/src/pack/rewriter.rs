//! Packing bodies again while they are moved.

use super::{
    MIN_LENGTH,
    compress::compress_with,
    dictionary::{Dictionaries, DictionaryId},
    encoding::{self, Encoding, Tag},
    free_memory,
};
use zstd::{bulk::Compressor, zstd_safe::CParameter};

/// Bytes of content that are packed again before freed segments are returned to the system.
const RETURN_AFTER: usize = 256 << 10;
/// The level at which bodies are packed again: a fifth smaller than when they arrived, in seven times the time.
const LEVEL: i32 = 9;
/// Bytes of the shortest match that packing again looks for. The level looks for four, most of which take more than the
/// bytes themselves: identities and numbers are random text.
const MIN_MATCH: u32 = 5;

/// Packs bodies with the newest dictionary, and better than there was time for when they arrived.
#[derive(Default)]
pub(super) struct Rewriter {
    /// Exists while bodies are packed again.
    compressor: Option<(Encoding, Compressor<'static>)>,
    /// The newest dictionary when everything began to be packed again.
    target: Option<DictionaryId>,
    /// Bytes that were looked at since freed segments were returned.
    since_return: usize,
}

/// Which bodies are packed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repack {
    /// Those that become smaller.
    Loose,
    /// Those whose dictionary is not the newest one.
    Outdated,
}

impl Rewriter {
    /// Puts a better encoding of a body into `out` and returns its tag; `None` if it stays as it is.
    pub(super) fn rewrite(
        &mut self,
        which: Repack,
        (bits, packed): (u64, &[u8]),
        out: &mut Vec<u8>,
        dictionaries: &Dictionaries,
    ) -> Option<u64> {
        let tag = Tag::from_bits(bits);
        let best = dictionaries.newest().map_or(Encoding::Plain, |newest| Encoding::Dictionary(newest.id));
        let outdated = matches!(tag.encoding, Encoding::Dictionary(_)) && tag.encoding != best;
        let dense = tag.dense && (tag.encoding == best || tag.encoding == Encoding::Stored);
        if !outdated && (which == Repack::Outdated || dense || tag.raw_len < MIN_LENGTH) {
            return None;
        }
        let mut raw = Vec::new();
        encoding::unpack(tag, packed, dictionaries, &mut raw).ok()??;
        let compressed = self.compress(best, dictionaries, &raw, out).is_some();
        let encoding = if compressed && is_worth(out.len(), raw.len()) { best } else { Encoding::Stored };
        if encoding == Encoding::Stored {
            out.clear();
            out.extend_from_slice(&raw);
        }
        if out.len() >= packed.len() && !outdated {
            out.clear();
            out.extend_from_slice(packed);
            return Some(Tag { dense: true, ..tag }.bits());
        }
        Some(Tag { encoding, dense: true, patched: false, ..tag }.bits())
    }

    /// Returns the segments that packing again has freed, now and then: the task moves between threads, and each call is about
    /// the memory of one.
    pub(super) fn return_memory(&mut self, looked_at: usize, more: bool) {
        self.since_return += looked_at;
        if self.since_return >= RETURN_AFTER || !more {
            self.since_return = 0;
            free_memory::return_to_system();
        }
    }

    /// Everything is packed again from now on.
    pub(super) fn begin(&mut self, dictionaries: &Dictionaries) {
        self.target = dictionaries.newest().map(|newest| newest.id);
    }

    /// Content comes in that may have any dictionary: none is forgotten when everything has been packed again.
    pub(super) fn keep_dictionaries(&mut self) {
        self.target = None;
    }

    /// Everything has been packed again.
    pub(super) fn end(&mut self, dictionaries: &Dictionaries) {
        // Content is packed with this one, or with one that was added since.
        if let Some(target) = self.target.take() {
            dictionaries.forget_before(target);
        }
        self.compressor = None;
    }

    fn compress(
        &mut self,
        encoding: Encoding,
        dictionaries: &Dictionaries,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if self.compressor.as_ref().is_none_or(|(known, _)| *known != encoding) {
            self.compressor = Some((encoding, compressor(encoding, dictionaries)?));
        }
        let (_, compressor) = self.compressor.as_mut()?;
        compress_with(compressor, raw, out)
    }
}

fn compressor(encoding: Encoding, dictionaries: &Dictionaries) -> Option<Compressor<'static>> {
    let mut compressor = match encoding {
        Encoding::Dictionary(id) => dictionaries.get(id)?.compressor(LEVEL)?,
        Encoding::Plain | Encoding::Stored => Compressor::new(LEVEL).ok()?,
    };
    compressor.set_parameter(CParameter::MinMatch(MIN_MATCH)).ok()?;
    Some(compressor)
}

/// Whether packed content is so much smaller that unpacking it on each read pays.
pub(super) fn is_worth(packed: usize, raw: usize) -> bool {
    packed < raw - raw / 10
}
