//! How the bytes of a body are encoded.

use super::dictionary::{Dictionaries, DictionaryId};
use std::cell::RefCell;
use zstd::bulk::Decompressor;

/// Says how to read the bytes of a body: the tag that is stored with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    /// Bytes of the content when unpacked.
    pub(super) raw_len: u32,
    pub(super) encoding: Encoding,
    /// Whether it was packed as well as compaction can: packing it again would gain nothing.
    pub(super) dense: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As it is.
    Stored,
    /// Compressed without a dictionary.
    Plain,
    /// Compressed with a dictionary.
    Dictionary(DictionaryId),
}

const STORED: u32 = 0;
const PLAIN: u32 = 1;
/// Code of the first dictionary.
const FIRST_DICTIONARY: u32 = 2;

impl Tag {
    pub(super) fn bits(self) -> u64 {
        let code = match self.encoding {
            Encoding::Stored => STORED,
            Encoding::Plain => PLAIN,
            Encoding::Dictionary(DictionaryId(number)) => number.saturating_add(FIRST_DICTIONARY),
        };
        u64::from(code) << 33 | u64::from(self.dense) << 32 | u64::from(self.raw_len)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let encoding = match (bits >> 33) as u32 {
            STORED => Encoding::Stored,
            PLAIN => Encoding::Plain,
            code => Encoding::Dictionary(DictionaryId(code.saturating_sub(FIRST_DICTIONARY))),
        };
        Self { raw_len: bits as u32, encoding, dense: bits >> 32 & 1 == 1 }
    }
}

/// The content of a body; `None` if the bytes are not what the tag says. The error is a dictionary that is unknown.
pub(super) fn unpack(
    tag: Tag,
    packed: &[u8],
    dictionaries: &Dictionaries,
) -> Result<Option<Vec<u8>>, DictionaryId> {
    let len = tag.raw_len as usize;
    let raw = match tag.encoding {
        Encoding::Stored => Some(packed.to_vec()),
        Encoding::Plain => unpack_plain(packed, len),
        Encoding::Dictionary(id) => dictionaries.get(id).ok_or(id)?.unpack(packed, len),
    };
    Ok(raw.filter(|raw| raw.len() == len))
}

fn unpack_plain(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    thread_local! {
        static PLAIN: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    PLAIN.with_borrow_mut(|plain| {
        if plain.is_none() {
            *plain = Decompressor::new().ok();
        }
        plain.as_mut()?.decompress(packed, len).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_word() {
        let dictionaries = [0, 7, (1 << 31) - 3].map(|number| Encoding::Dictionary(DictionaryId(number)));
        for encoding in [Encoding::Stored, Encoding::Plain].into_iter().chain(dictionaries) {
            for (raw_len, dense) in [(0, false), (u32::MAX, true), (12_345, false)] {
                let tag = Tag { raw_len, encoding, dense };
                assert_eq!(Tag::from_bits(tag.bits()), tag);
            }
        }
    }
}
