//! Reads fields of messages that arrive in pieces.

use bytes::Bytes;
use kube_informer_types::protobuf::Fields;
use std::mem;

/// The magic bytes before an envelope.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Bytes that are kept of a value over its limit: they have the identity of the object.
const PREFIX: usize = 16 << 10;

/// Maximum memory that is reserved in advance.
const MAX_RESERVED: usize = 64 << 10;

/// A number of variable length that may span chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Varint {
    value: u64,
    shift: u32,
}

/// The next byte of a number.
pub(super) enum Progress {
    More(Varint),
    Done(u64),
    /// It is longer than any number.
    TooLong,
}

impl Varint {
    /// Whether no byte has been read.
    pub(super) fn is_fresh(self) -> bool {
        self.shift == 0
    }

    pub(super) fn push(self, byte: u8) -> Progress {
        let value = self.value | u64::from(byte & 0x7f) << self.shift;
        let shift = self.shift.saturating_add(7);
        match byte & 0x80 {
            0 => Progress::Done(value),
            _ if shift < 64 => Progress::More(Self { value, shift }),
            _ => Progress::TooLong,
        }
    }
}

/// The type of a field on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireType {
    Varint,
    Bytes,
    /// A value of this many bytes.
    Fixed(u64),
}

/// The number and type of a field; `None` if the key is malformed.
pub(super) fn field(key: u64) -> Option<(u32, WireType)> {
    let wire_type = match key & 7 {
        0 => WireType::Varint,
        1 => WireType::Fixed(8),
        2 => WireType::Bytes,
        5 => WireType::Fixed(4),
        _ => return None,
    };
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    Some((number, wire_type))
}

/// The value of a field that may be cut off.
pub(crate) fn open_field(message: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut fields = Fields::new(message);
    loop {
        let rest = fields.rest();
        match fields.next() {
            Some(Ok((number, wire))) if number == wanted => return wire.bytes().ok(),
            Some(Ok(_)) => {}
            Some(Err(_)) => return cut_off_value(rest, wanted),
            None => return None,
        }
    }
}

/// The value of the first field, of which the end is missing.
fn cut_off_value(field: &[u8], wanted: u32) -> Option<&[u8]> {
    let (key, rest) = varint(field)?;
    let (_, rest) = varint(rest)?;
    (self::field(key) == Some((wanted, WireType::Bytes))).then_some(rest)
}

fn varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = Varint::default();
    loop {
        let (byte, rest) = bytes.split_first()?;
        bytes = rest;
        match number.push(*byte) {
            Progress::More(more) => number = more,
            Progress::Done(value) => return Some((value, bytes)),
            Progress::TooLong => return None,
        }
    }
}

/// Collects one value of known length that may span chunks, up to a limit.
#[derive(Default)]
pub(super) struct Capture {
    /// Bytes still to come.
    remaining: u64,
    /// Bytes of the value that are kept.
    keep: usize,
    /// Whether the value is over its limit.
    is_over: bool,
    /// The part in earlier chunks.
    buffer: Vec<u8>,
}

impl Capture {
    /// Begins a value of `length` bytes. Over `limit`, only a prefix is kept.
    pub(super) fn begin(&mut self, length: u64, limit: usize) {
        self.remaining = length;
        self.is_over = usize::try_from(length).map_or(true, |length| length > limit);
        self.keep = if self.is_over { PREFIX.min(limit) } else { limit };
        self.buffer = Vec::new();
    }

    /// Reads `chunk` from `at` on. Returns the value when it is complete, or the prefix of one over its limit.
    pub(super) fn advance(&mut self, chunk: &Bytes, at: &mut usize) -> Option<Result<Bytes, Bytes>> {
        let available = chunk.len().saturating_sub(*at);
        let length = usize::try_from(self.remaining).map_or(available, |remaining| remaining.min(available));
        let piece = chunk.slice(*at..at.saturating_add(length));
        *at = at.saturating_add(length);
        self.remaining = self.remaining.saturating_sub(length as u64);
        if self.remaining > 0 {
            self.append(&piece);
            return None;
        }
        let value = if self.buffer.is_empty() {
            piece.slice(..piece.len().min(self.keep))
        } else {
            self.append(&piece);
            mem::take(&mut self.buffer).into()
        };
        Some(if self.is_over { Err(value) } else { Ok(value) })
    }

    fn append(&mut self, piece: &[u8]) {
        if self.buffer.capacity() == 0 {
            let whole = usize::try_from(self.remaining).unwrap_or(usize::MAX).saturating_add(piece.len());
            // The length is a claim of the server: memory grows with what has arrived.
            self.buffer.reserve_exact(whole.min(self.keep).min(MAX_RESERVED.max(piece.len())));
        }
        let room = self.keep.saturating_sub(self.buffer.len()).min(piece.len());
        self.buffer.extend_from_slice(&piece[..room]);
    }

    /// Memory in use for the value so far.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_at_most_ten_bytes() {
        let longest = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(varint(&longest), Some((u64::MAX, &[][..])));
        assert_eq!(varint(&[0x80; 11]), None);
        assert_eq!(varint(&[0x80; 9]), None, "cut off");
        let Progress::More(begun) = Varint::default().push(0x80) else { panic!("more is to come") };
        assert!(Varint::default().is_fresh() && !begun.is_fresh());
    }

    #[test]
    fn a_key_has_a_number_and_a_known_type() {
        for (wire_type, expected) in [
            (0, Some(WireType::Varint)),
            (1, Some(WireType::Fixed(8))),
            (2, Some(WireType::Bytes)),
            (3, None),
            (5, Some(WireType::Fixed(4))),
            (7, None),
        ] {
            assert_eq!(field(1 << 3 | wire_type), expected.map(|wire_type| (1, wire_type)));
            assert_eq!(field(wire_type), None, "no field has the number 0");
        }
    }

    #[test]
    fn a_field_is_found_in_a_message_that_is_cut_off() {
        let message = b"\x0a\x01a\x12\x01b\x1a\x09cut";
        for (number, value) in [(1, Some(&b"a"[..])), (2, Some(b"b")), (3, Some(b"cut")), (4, None)] {
            assert_eq!(open_field(message, number), value, "field {number}");
        }
        assert_eq!(open_field(&message[..6], 3), None);
    }

    #[test]
    fn a_value_up_to_the_limit_is_whole_and_its_memory_is_reserved_once() {
        for (length, limit, is_whole) in [(1000, 1000, true), (1001, 1000, false)] {
            let value = Bytes::from(vec![7; length]);
            let mut capture = Capture::default();
            capture.begin(length as u64, limit);
            assert_eq!(capture.advance(&value.slice(..10), &mut 0), None);
            assert_eq!(capture.held(), limit);
            assert_eq!(capture.advance(&value.slice(10..20), &mut 0), None);
            assert_eq!(capture.held(), limit);
            let captured = capture.advance(&value.slice(20..), &mut 0).unwrap();
            assert_eq!(captured, if is_whole { Ok(value) } else { Err(value.slice(..limit)) });
        }
    }
}
