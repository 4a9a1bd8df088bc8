//! The content of an object.

use super::{
    dictionary::Dictionaries,
    encoding::{self, Encoding, Tag},
};
use crate::{MediaType, decode_cache::KeptValue, media_type::Encoded};
use kube_informer_segments::Body;
use std::{cell::RefCell, sync::OnceLock};

/// Capacity up to which the buffer of a reader is kept for its next read.
const MAX_BUFFER: usize = 128 << 10;

/// The content of an object: packed in the segments of a [`Packer`](crate::Packer), or in an allocation of its own.
///
/// Two words, because every cached object has one. A body that is on disk, or in a file that outlives the process, would
/// still be a [`Body`] here: where it is, is known to its slot alone.
pub(crate) enum Content {
    Packed(Body<Dictionaries>),
    Unpacked(Box<Unpacked>),
}

/// The content as the server sent it, and its first decoded value where that is kept.
pub(crate) struct Unpacked {
    encoded: Encoded,
    value: Option<OnceLock<KeptValue>>,
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

    /// The content as the server sent it. `None` only if memory is corrupted.
    pub(crate) fn read(&self) -> Option<Encoded> {
        match self {
            Self::Unpacked(unpacked) => Some(unpacked.encoded.clone()),
            Self::Packed(body) => read(body),
        }
    }

    /// Puts the content as it is stored into `out`, and returns its tag.
    pub(crate) fn save(&self, out: &mut Vec<u8>) -> Option<u64> {
        match self {
            Self::Packed(body) => Some(body.read(out)),
            Self::Unpacked(unpacked) => {
                let Encoded { media_type, bytes } = &unpacked.encoded;
                out.extend_from_slice(bytes);
                let raw_len = u32::try_from(bytes.len()).ok()?;
                Some(
                    Tag { raw_len, media_type: *media_type, encoding: Encoding::Stored, dense: false }.bits(),
                )
            }
        }
    }

    /// How the content is encoded.
    pub(crate) fn media_type(&self) -> MediaType {
        match self {
            Self::Unpacked(unpacked) => unpacked.encoded.media_type,
            Self::Packed(body) => Tag::from_bits(body.tag()).media_type,
        }
    }

    /// Whether both are the same, byte for byte.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.raw_len() == other.raw_len() && self.read().is_some_and(|own| Some(own) == other.read())
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

/// Unpacks a body.
fn read(body: &Body<Dictionaries>) -> Option<Encoded> {
    thread_local! {
        static PACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    PACKED.with_borrow_mut(|packed| {
        let mut missing = None;
        let raw = loop {
            let tag = Tag::from_bits(body.read(packed));
            match encoding::unpack(tag, packed, body.context()) {
                Ok(raw) => break raw.map(|raw| Encoded { media_type: tag.media_type, bytes: raw.into() }),
                // A dictionary is forgotten after all its bodies were packed again: this one has another by now.
                Err(dictionary) if missing != Some(dictionary) => missing = Some(dictionary),
                Err(_) => break None,
            }
        };
        if packed.capacity() > MAX_BUFFER {
            *packed = Vec::new();
        }
        raw
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_two_words() {
        assert_eq!(size_of::<Content>(), 2 * size_of::<usize>());
    }
}
