//! How the bytes of a body are encoded.

use super::decompress::decompress;
use super::dictionary::{Dictionaries, DictionaryId};
use super::patch::{self, Patched};
use crate::MediaType;

/// Says how to read the bytes of a body: the tag that is stored with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    /// Bytes of the content when unpacked.
    pub(super) raw_len: u32,
    pub(super) media_type: MediaType,
    pub(super) encoding: Encoding,
    /// Whether it was packed as well as compaction can: packing it again would gain nothing.
    pub(super) dense: bool,
    /// Whether the bytes are those of an earlier version, encoded like this, and a patch.
    pub(super) patched: bool,
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
/// Numbers of dictionaries are below this one: a tag has 29 bits for their codes.
pub(super) const MAX_DICTIONARY: u32 = (1 << 29) - FIRST_DICTIONARY;
const CODES: u64 = (1 << 29) - 1;

impl Tag {
    /// The tag of content that compaction may pack again.
    pub(super) fn loose(raw_len: u32, media_type: MediaType, encoding: Encoding) -> Self {
        Self { raw_len, media_type, encoding, dense: false, patched: false }
    }

    pub(super) fn bits(self) -> u64 {
        let code = match self.encoding {
            Encoding::Stored => STORED,
            Encoding::Plain => PLAIN,
            Encoding::Dictionary(DictionaryId(number)) => number.saturating_add(FIRST_DICTIONARY),
        };
        let protobuf = u64::from(self.media_type == MediaType::Protobuf);
        let flags = u64::from(self.patched) << 63 | protobuf << 33 | u64::from(self.dense) << 32;
        flags | (u64::from(code) & CODES) << 34 | u64::from(self.raw_len)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let encoding = match (bits >> 34 & CODES) as u32 {
            STORED => Encoding::Stored,
            PLAIN => Encoding::Plain,
            code => Encoding::Dictionary(DictionaryId(code.saturating_sub(FIRST_DICTIONARY))),
        };
        let media_type = if bits >> 33 & 1 == 1 { MediaType::Protobuf } else { MediaType::Json };
        let [dense, patched] = [32, 63].map(|bit| bits >> bit & 1 == 1);
        Self { raw_len: bits as u32, media_type, encoding, dense, patched }
    }
}

/// Replaces the content of `raw` by that of a body; `None` if the bytes are not what the tag says. The error is a dictionary that
/// is unknown.
pub(super) fn unpack(
    tag: Tag,
    packed: &[u8],
    dictionaries: &Dictionaries,
    raw: &mut Vec<u8>,
) -> Result<Option<()>, DictionaryId> {
    if !tag.patched {
        return decode(tag.encoding, packed, tag.raw_len, dictionaries, raw);
    }
    let Some(Patched { base_len, patch, base }) = Patched::read(packed) else { return Ok(None) };
    let mut unpacked = Vec::new();
    Ok(match decode(tag.encoding, base, base_len, dictionaries, &mut unpacked)? {
        Some(()) => patch::apply(&unpacked, patch, tag.raw_len as usize, raw),
        None => None,
    })
}

fn decode(
    encoding: Encoding,
    packed: &[u8],
    len: u32,
    dictionaries: &Dictionaries,
    raw: &mut Vec<u8>,
) -> Result<Option<()>, DictionaryId> {
    let len = len as usize;
    let decoded = match encoding {
        Encoding::Stored => {
            raw.clear();
            raw.extend_from_slice(packed);
            Some(())
        }
        Encoding::Plain => decompress(packed, len, None, raw),
        Encoding::Dictionary(id) => dictionaries.get(id).ok_or(id)?.unpack(packed, len, raw),
    };
    Ok(decoded.filter(|()| raw.len() == len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_word() {
        let dictionaries =
            [0, 7, MAX_DICTIONARY - 1].map(|number| Encoding::Dictionary(DictionaryId(number)));
        for encoding in [Encoding::Stored, Encoding::Plain].into_iter().chain(dictionaries) {
            for (raw_len, dense, media_type) in [
                (0, false, MediaType::Json),
                (u32::MAX, true, MediaType::Protobuf),
                (12_345, false, MediaType::Protobuf),
                (7, true, MediaType::Json),
            ] {
                let patched = raw_len % 2 == 1;
                let tag = Tag { raw_len, media_type, encoding, dense, patched };
                assert_eq!(Tag::from_bits(tag.bits()), tag);
            }
        }
    }
}
