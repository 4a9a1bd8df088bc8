//! Writes the fields of a message on the wire; [`Fields`](super::Fields) reads them.
//!
//! ```
//! use kube_informer_types::protobuf::{Fields, Wire, write};
//!
//! let mut message = Vec::new();
//! write::text(&mut message, 1, "web");
//! write::nested(&mut message, 2, |inner| write::integer(inner, 1, 3));
//! let fields: Vec<_> = Fields::new(&message).collect::<Result<_, _>>()?;
//! assert_eq!(fields, [(1, Wire::Bytes(b"web")), (2, Wire::Bytes(&[0x08, 3]))]);
//! # Ok::<(), kube_informer_types::protobuf::ProtobufError>(())
//! ```

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

/// Writes a field with text.
pub fn text(out: &mut Vec<u8>, number: u32, text: &str) {
    bytes(out, number, text.as_bytes());
}

/// Writes a field with bytes, or with a message that is already encoded.
pub fn bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    key(out, number, LENGTH_DELIMITED);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field with an integer or a Boolean; a negative number takes ten bytes because its sign is extended.
pub fn integer(out: &mut Vec<u8>, number: u32, value: i64) {
    key(out, number, VARINT);
    varint(out, value.cast_unsigned());
}

/// Writes a field with a floating-point number.
pub fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    key(out, number, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field with the message whose fields `fields` writes. Returns the result of `fields`.
pub fn nested<T>(out: &mut Vec<u8>, number: u32, fields: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = open(out, number);
    let result = fields(out);
    close(out, start);
    result
}

/// Begins a nested message. Returns where it starts.
pub(super) fn open(out: &mut Vec<u8>, number: u32) -> usize {
    key(out, number, LENGTH_DELIMITED);
    out.len()
}

/// Ends the nested message that starts there: its length is known only now. Most messages are short, so moving them is
/// cheap.
pub(super) fn close(out: &mut Vec<u8>, start: usize) {
    let end = out.len();
    varint(out, (end - start) as u64);
    let length = out.len() - end;
    out[start..].rotate_right(length);
}

fn key(out: &mut Vec<u8>, number: u32, wire_type: u64) {
    varint(out, u64::from(number) << 3 | wire_type);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
