//! How the bytes of a body are encoded.

use super::dictionary::{Dictionaries, DictionaryId};
use crate::MediaType;
use std::cell::RefCell;
use zstd::bulk::Decompressor;

/// Says how to read the bytes of a body: the tag that is stored with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    /// Bytes of the content when unpacked.
    pub(super) raw_len: u32,
    pub(super) media_type: MediaType,
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
        let protobuf = u64::from(self.media_type == MediaType::Protobuf);
        u64::from(code) << 34 | protobuf << 33 | u64::from(self.dense) << 32 | u64::from(self.raw_len)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let encoding = match (bits >> 34) as u32 {
            STORED => Encoding::Stored,
            PLAIN => Encoding::Plain,
            code => Encoding::Dictionary(DictionaryId(code.saturating_sub(FIRST_DICTIONARY))),
        };
        let media_type = if bits >> 33 & 1 == 1 { MediaType::Protobuf } else { MediaType::Json };
        Self { raw_len: bits as u32, media_type, encoding, dense: bits >> 32 & 1 == 1 }
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
        let dictionaries = [0, 7, (1 << 30) - 3].map(|number| Encoding::Dictionary(DictionaryId(number)));
        for encoding in [Encoding::Stored, Encoding::Plain].into_iter().chain(dictionaries) {
            for (raw_len, dense, media_type) in [
                (0, false, MediaType::Json),
                (u32::MAX, true, MediaType::Protobuf),
                (12_345, false, MediaType::Protobuf),
                (7, true, MediaType::Json),
            ] {
                let tag = Tag { raw_len, media_type, encoding, dense };
                assert_eq!(Tag::from_bits(tag.bits()), tag);
            }
        }
    }
}
