//! The content of an object.

use super::{
    dictionary::Dictionaries,
    encoding::{self, Encoding, Tag},
};
use crate::{MediaType, decode_cache::KeptValue, media_type::Encoded};
use kube_informer_segments::{Body, ReadError};
use std::{cell::RefCell, sync::OnceLock};

/// Capacity up to which the buffer of a reader is kept for its next read.
const MAX_BUFFER: usize = 128 << 10;

/// The content of an object: packed in the segments of a [`Packer`](crate::Packer), or in an allocation of its own.
///
/// Two words, because every cached object has one. A body that is in a file is a [`Body`] here, too: only its slot knows where
/// it is.
pub(crate) enum Content {
    Packed(Body<Dictionaries>),
    Unpacked(Box<Unpacked>),
}

/// The content as the server sent it, and its first decoded value where that is kept.
pub(crate) struct Unpacked {
    encoded: Encoded,
    value: Option<OnceLock<KeptValue>>,
}

/// Why content cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Memory is corrupted, or there is a bug.
    Corrupt,
    /// It is in a file and cannot be read from there.
    Unavailable(Option<ReadError>),
}

impl Content {
    /// The content as it is.
    pub(crate) fn raw(encoded: Encoded) -> Self {
        Self::Unpacked(Box::new(Unpacked { encoded, value: None }))
    }

    /// The content as it is, and its first decoded value once there is one.
    pub(super) fn with_value(encoded: Encoded) -> Self {
        Self::Unpacked(Box::new(Unpacked { encoded, value: Some(OnceLock::new()) }))
    }

    /// The content, unless it is packed or stored with its value.
    pub(crate) fn as_raw(&self) -> Option<&Encoded> {
        match self {
            Self::Unpacked(unpacked) if unpacked.value.is_none() => Some(&unpacked.encoded),
            _ => None,
        }
    }

    /// The content as the server sent it. Blocks if it is in a file.
    pub(crate) fn read(&self) -> Result<Encoded, Unread> {
        match self {
            Self::Unpacked(unpacked) => Ok(unpacked.encoded.clone()),
            Self::Packed(body) => Buffers::lend(|buffers| {
                let media_type = unpack(body, buffers)?;
                Ok(Encoded { media_type, bytes: std::mem::take(&mut buffers.raw).into() })
            }),
        }
    }

    /// Passes the content to `read`, without an allocation for it. Blocks if it is in a file.
    pub(crate) fn read_with<R>(&self, read: impl FnOnce(MediaType, &[u8]) -> R) -> Result<R, Unread> {
        match self {
            Self::Unpacked(unpacked) => Ok(read(unpacked.encoded.media_type, &unpacked.encoded.bytes)),
            Self::Packed(body) => Buffers::lend(|buffers| {
                let media_type = unpack(body, buffers)?;
                Ok(read(media_type, &buffers.raw))
            }),
        }
    }

    /// Whether reading it neither blocks nor fails.
    pub(crate) fn is_in_memory(&self) -> bool {
        match self {
            Self::Unpacked(_) => true,
            Self::Packed(body) => body.is_in_memory(),
        }
    }

    /// Whether it could not be read from its file.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Unpacked(_) => false,
            Self::Packed(body) => body.is_lost(),
        }
    }

    /// Puts the content as it is stored into `out`, and returns its tag.
    pub(crate) fn save(&self, out: &mut Vec<u8>) -> Option<u64> {
        match self {
            Self::Packed(body) => body.read(out).ok(),
            Self::Unpacked(unpacked) => {
                let Encoded { media_type, bytes } = &unpacked.encoded;
                out.extend_from_slice(bytes);
                let raw_len = u32::try_from(bytes.len()).ok()?;
                Some(Tag::loose(raw_len, *media_type, Encoding::Stored).bits())
            }
        }
    }

    /// Puts the packed bytes into `out` and returns their tag; `None` if they are not in memory.
    pub(super) fn packed(&self, out: &mut Vec<u8>) -> Option<Tag> {
        match self {
            Self::Packed(body) if body.is_in_memory() => body.read(out).ok().map(Tag::from_bits),
            Self::Packed(_) | Self::Unpacked(_) => None,
        }
    }

    /// How the content is encoded.
    pub(crate) fn media_type(&self) -> MediaType {
        match self {
            Self::Unpacked(unpacked) => unpacked.encoded.media_type,
            Self::Packed(body) => Tag::from_bits(body.tag()).media_type,
        }
    }

    /// Whether both are the same, byte for byte. Content that cannot be read is the same as no other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.raw_len() == other.raw_len()
            && self.read().is_ok_and(|own| other.read().is_ok_and(|others| own == others))
    }

    /// Bytes of the content as the server sent it.
    pub(crate) fn raw_len(&self) -> usize {
        match self {
            Self::Unpacked(unpacked) => unpacked.encoded.bytes.len(),
            Self::Packed(body) => Tag::from_bits(body.tag()).raw_len as usize,
        }
    }

    /// The cell for the decoded value, if it is stored.
    pub(crate) fn decoded_cell(&self) -> Option<&OnceLock<KeptValue>> {
        match self {
            Self::Unpacked(unpacked) => unpacked.value.as_ref(),
            Self::Packed(_) => None,
        }
    }

    /// Bytes in allocations of this object alone, without decoded values.
    pub(crate) fn own_len(&self) -> usize {
        match self {
            Self::Unpacked(unpacked) => size_of::<Unpacked>() + unpacked.encoded.bytes.len(),
            Self::Packed(_) => 0,
        }
    }

    /// Bytes in segments. Compaction may change that.
    pub(crate) fn packed_len(&self) -> usize {
        match self {
            Self::Unpacked(_) => 0,
            Self::Packed(body) => body.len(),
        }
    }
}

/// Buffers of a reader, which are kept for its next read.
#[derive(Default)]
struct Buffers {
    packed: Vec<u8>,
    raw: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = const { RefCell::new(Buffers { packed: Vec::new(), raw: Vec::new() }) };
}

impl Buffers {
    /// Takes the buffers of this thread, so that `read` may itself read another body.
    fn lend<R>(read: impl FnOnce(&mut Self) -> R) -> R {
        let mut buffers = BUFFERS.take();
        let result = read(&mut buffers);
        if buffers.packed.capacity().max(buffers.raw.capacity()) <= MAX_BUFFER {
            BUFFERS.set(buffers);
        }
        result
    }
}

/// Unpacks a body into the buffers.
fn unpack(body: &Body<Dictionaries>, buffers: &mut Buffers) -> Result<MediaType, Unread> {
    let mut missing = None;
    loop {
        let tag = body.read(&mut buffers.packed).map_err(|error| Unread::Unavailable(Some(error)))?;
        let tag = Tag::from_bits(tag);
        match encoding::unpack(tag, &buffers.packed, body.context(), &mut buffers.raw) {
            Ok(Some(())) => return Ok(tag.media_type),
            // A dictionary is forgotten after all its bodies were packed again: this one has another by now.
            Err(dictionary) if missing != Some(dictionary) => missing = Some(dictionary),
            Ok(None) | Err(_) => break,
        }
    }
    // A body in a file that could not be read when all others were packed again has lost its dictionary.
    body.mark_lost();
    Err(if body.is_lost() { Unread::Unavailable(None) } else { Unread::Corrupt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_two_words() {
        assert_eq!(size_of::<Content>(), 2 * size_of::<usize>());
    }
}
