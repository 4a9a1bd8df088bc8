//! The content of an object.

use super::{
    dictionary::Dictionaries,
    encoding::{self, Tag},
};
use crate::decode_cache::KeptValue;
use bytes::Bytes;
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

/// The JSON, and its first decoded value where that is kept.
pub(crate) struct Unpacked {
    json: Bytes,
    value: Option<OnceLock<KeptValue>>,
}

impl Content {
    /// The JSON as it is.
    pub(crate) fn raw(json: Bytes) -> Self {
        Self::Unpacked(Box::new(Unpacked { json, value: None }))
    }

    /// The JSON as it is, and its first decoded value once there is one.
    pub(super) fn with_value(json: Bytes) -> Self {
        Self::Unpacked(Box::new(Unpacked { json, value: Some(OnceLock::new()) }))
    }

    /// Takes the JSON out of content that is not packed, and leaves it empty.
    pub(crate) fn take_raw(&mut self) -> Option<Bytes> {
        match self {
            Self::Unpacked(unpacked) if unpacked.value.is_none() => Some(std::mem::take(&mut unpacked.json)),
            _ => None,
        }
    }

    /// The JSON. `None` only if memory is corrupted.
    pub(crate) fn read(&self) -> Option<Bytes> {
        match self {
            Self::Unpacked(unpacked) => Some(unpacked.json.clone()),
            Self::Packed(body) => read(body).map(Bytes::from),
        }
    }

    /// Whether both are the same JSON, byte for byte.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.raw_len() == other.raw_len() && self.read().is_some_and(|own| Some(own) == other.read())
    }

    /// Bytes of the JSON.
    pub(crate) fn raw_len(&self) -> usize {
        match self {
            Self::Unpacked(unpacked) => unpacked.json.len(),
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
            Self::Unpacked(unpacked) => size_of::<Unpacked>() + unpacked.json.len(),
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
fn read(body: &Body<Dictionaries>) -> Option<Vec<u8>> {
    thread_local! {
        static PACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    PACKED.with_borrow_mut(|packed| {
        let mut missing = None;
        let raw = loop {
            let tag = Tag::from_bits(body.read(packed));
            match encoding::unpack(tag, packed, body.context()) {
                Ok(raw) => break raw,
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
