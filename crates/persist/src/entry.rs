//! Entries of a frame: one change each, or the position at the end of a commit.
//!
//! ```text
//! put         1 | key length u32 | identity length u32 | tag u64 | body: offset u64, length u32, checksum u32 | key | identity
//! delete      2 | key
//! dictionary  3 | id u32 | bytes
//! position    4 | length of the bodies u64 | seconds i64 | nanoseconds u32 | version
//! ```

use crate::{
    codec::{Decoder, put_bytes, put_u32, put_u64},
    position::Position,
    restored::SavedContent,
};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DICTIONARY: u8 = 3;
const POSITION: u8 = 4;

/// The length of a put without key and identity.
pub(crate) const PUT_HEADER: usize = 33;

/// An entry, borrowed from its frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    Put { key: &'a str, identity: &'a [u8], content: SavedContent },
    Delete { key: &'a str },
    Dictionary { id: u32, bytes: &'a [u8] },
    Position { bodies_len: u64, position: Position },
}

pub(crate) fn put(out: &mut Vec<u8>, key: &str, identity: &[u8], content: &SavedContent) {
    out.push(PUT);
    put_u32(out, u32::try_from(key.len()).expect("a key below 4 GiB"));
    put_u32(out, u32::try_from(identity.len()).expect("an identity below 4 GiB"));
    put_u64(out, content.tag);
    put_u64(out, content.at);
    put_u32(out, content.len);
    put_u32(out, content.checksum);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(identity);
}

pub(crate) fn delete(out: &mut Vec<u8>, key: &str) {
    out.push(DELETE);
    put_bytes(out, key.as_bytes());
}

pub(crate) fn dictionary(out: &mut Vec<u8>, id: u32, bytes: &[u8]) {
    out.push(DICTIONARY);
    put_u32(out, id);
    put_bytes(out, bytes);
}

pub(crate) fn position(out: &mut Vec<u8>, bodies_len: u64, position: &Position) {
    out.push(POSITION);
    put_u64(out, bodies_len);
    position.encode(out);
}

impl<'a> Entry<'a> {
    /// Reads one entry. `None` if it is malformed, which no intact frame is.
    pub(crate) fn decode(from: &mut Decoder<'a>) -> Option<Self> {
        match from.u8()? {
            PUT => {
                let (key_len, identity_len) = (from.u32()?, from.u32()?);
                let (tag, at, len, checksum) = (from.u64()?, from.u64()?, from.u32()?, from.u32()?);
                let key = std::str::from_utf8(from.take(key_len as usize)?).ok()?;
                let identity = from.take(identity_len as usize)?;
                Some(Self::Put { key, identity, content: SavedContent { tag, at, len, checksum } })
            }
            DELETE => Some(Self::Delete { key: from.text()? }),
            DICTIONARY => Some(Self::Dictionary { id: from.u32()?, bytes: from.bytes()? }),
            POSITION => Some(Self::Position { bodies_len: from.u64()?, position: Position::decode(from)? }),
            _ => None,
        }
    }
}
