//! Reads one value of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Visitor};

use super::ProtobufError;
use super::deserializer::{MessageReader, Notes};
use super::fault::Fault;
use super::fields::{Fields, Wire};
use super::group::{Group, Items};
use super::messages::{Encoding, messages};
use super::time;
use super::union::{self, UnionReader};

/// Reads a value that is on the wire.
#[derive(Clone, Copy)]
pub(super) struct Single<'de, 'm> {
    /// The field it belongs to, for errors.
    pub(super) name: &'static str,
    pub(super) encoding: &'static Encoding,
    pub(super) wire: Wire<'de>,
    pub(super) notes: &'m Notes,
}

impl<'de> de::Deserializer<'de> for Single<'de, '_> {
    type Error = Fault;

    #[inline(never)]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let wire = self.wire;
        match self.encoding {
            Encoding::Text => visitor.visit_borrowed_str(wire.text()?),
            Encoding::Bytes => visitor.visit_string(STANDARD.encode(wire.bytes()?)),
            // Protobuf truncates a varint to the size of its type.
            Encoding::Int32 => visitor.visit_i64(i64::from(wire.integer()? as i32)),
            Encoding::Int64 => visitor.visit_i64(wire.integer()?),
            Encoding::Bool => visitor.visit_bool(wire.integer()? != 0),
            Encoding::Double => match wire {
                Wire::Fixed64(bits) => number(f64::from_bits(bits), visitor),
                _ => Err(ProtobufError::Malformed.into()),
            },
            Encoding::Time => match time::read(wire.bytes()?)? {
                Some(time) => visitor.visit_str(time.seconds_text()?.as_str()),
                None => visitor.visit_unit(),
            },
            Encoding::MicroTime => match time::read(wire.bytes()?)? {
                Some(time) => visitor.visit_str(time.micros_text()?.as_str()),
                None => visitor.visit_unit(),
            },
            Encoding::Quantity => visitor.visit_borrowed_str(text_in(wire.bytes()?)?.unwrap_or("0")),
            Encoding::IntOrString => match int_or_string(wire.bytes()?)? {
                IntOrString::Int(number) => visitor.visit_i64(i64::from(number)),
                IntOrString::String(text) => visitor.visit_borrowed_str(text),
            },
            Encoding::Json => match bytes_in(wire.bytes()?)? {
                [] => visitor.visit_unit(),
                json => read_json(json, visitor)
                    .map_err(|_| ProtobufError::Mismatch { field: self.name.to_owned() }.into()),
            },
            Encoding::Message(id) => {
                let message = messages().get(*id);
                let bytes = wire.bytes()?;
                MessageReader { message, bytes, type_meta: None, notes: self.notes }.deserialize_any(visitor)
            }
            Encoding::Union(union, schema) => {
                let (name, bytes, notes) = (self.name, wire.bytes()?, self.notes);
                UnionReader { name, union: *union, schema, bytes, notes }.read(visitor)
            }
            Encoding::Wrapped(inner) => {
                let mut fields = Fields(wire.bytes()?);
                let mut group = Group { number: 1, first: None, fields: &mut fields };
                visitor.visit_seq(Items::new(self.name, inner, &mut group, self.notes))
            }
            // No type has a list or a map inside a list.
            Encoding::Map(_) | Encoding::List(_) => Err(ProtobufError::Malformed.into()),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let is_null = match self.encoding {
            Encoding::Union(union, _) => union::is_null(*union, self.wire.bytes()?),
            encoding => is_null(encoding, self.wire)?,
        };
        if is_null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Text => visitor.visit_enum(de::value::BorrowedStrDeserializer::new(self.wire.text()?)),
            _ => self.deserialize_any(visitor),
        }
    }

    // The requested type is nearly always that of the field. These are small, so that decoding a struct does not run through
    // `deserialize_any` with all its cases for each of its fields.

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Text => visitor.visit_borrowed_str(self.wire.text()?),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Int32 => visitor.visit_i32(self.wire.integer()? as i32),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Int64 => visitor.visit_i64(self.wire.integer()?),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Bool => visitor.visit_bool(self.wire.integer()? != 0),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Message(id) => {
                let (message, bytes) = (messages().get(*id), self.wire.bytes()?);
                MessageReader { message, bytes, type_meta: None, notes: self.notes }.deserialize_any(visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier
    }
}

/// Reads the zero value of a field that is not on the wire and that JSON has anyway.
#[derive(Clone, Copy)]
pub(super) struct ZeroReader<'m> {
    pub(super) encoding: &'static Encoding,
    pub(super) notes: &'m Notes,
}

impl<'de> de::Deserializer<'de> for ZeroReader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Text => visitor.visit_borrowed_str(""),
            Encoding::Int32 | Encoding::Int64 | Encoding::Double | Encoding::IntOrString => {
                visitor.visit_i64(0)
            }
            Encoding::Bool => visitor.visit_bool(false),
            Encoding::Quantity => visitor.visit_borrowed_str("0"),
            Encoding::Message(_) => {
                Single { name: "", encoding: self.encoding, wire: Wire::Bytes(&[]), notes: self.notes }
                    .deserialize_any(visitor)
            }
            // Go encodes the zero values of times, lists, maps and bytes as null.
            _ => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.encoding {
            Encoding::Time
            | Encoding::MicroTime
            | Encoding::List(_)
            | Encoding::Map(_)
            | Encoding::Bytes
            | Encoding::Json => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Whether JSON has null for a value.
#[inline]
pub(super) fn is_null(encoding: &Encoding, wire: Wire<'_>) -> Result<bool, ProtobufError> {
    Ok(match encoding {
        Encoding::Time | Encoding::MicroTime => wire.bytes()?.is_empty(),
        Encoding::Json => bytes_in(wire.bytes()?)?.is_empty(),
        _ => false,
    })
}

/// Whether a value is the zero value of its type in Go.
#[inline]
pub(super) fn is_zero(encoding: &Encoding, wire: Wire<'_>) -> Result<bool, ProtobufError> {
    Ok(match (encoding, wire) {
        (Encoding::Int32, wire) => wire.integer()? as i32 == 0,
        (Encoding::Int64 | Encoding::Bool, wire) => wire.integer()? == 0,
        (Encoding::Double, Wire::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
        (_, Wire::Bytes(bytes)) => bytes.is_empty(),
        _ => false,
    })
}

fn read_json<'de, V: Visitor<'de>>(json: &'de [u8], visitor: V) -> serde_json::Result<V::Value> {
    // One UTF-8 check of the whole value is faster than one for each string.
    match std::str::from_utf8(json) {
        Ok(text) => de::Deserializer::deserialize_any(&mut serde_json::Deserializer::from_str(text), visitor),
        Err(_) => de::Deserializer::deserialize_any(&mut serde_json::Deserializer::from_slice(json), visitor),
    }
}

/// A whole number is one in JSON too: Go writes 53 for 53.0.
fn number<'de, V: Visitor<'de>>(number: f64, visitor: V) -> Result<V::Value, Fault> {
    /// All whole numbers up to this one are exact.
    const EXACT: f64 = (1_u64 << 53) as f64;
    let is_whole =
        number.fract() == 0.0 && number.abs() <= EXACT && !(number == 0.0 && number.is_sign_negative());
    if is_whole { visitor.visit_i64(number as i64) } else { visitor.visit_f64(number) }
}

enum IntOrString<'a> {
    Int(i32),
    String(&'a str),
}

fn int_or_string(bytes: &[u8]) -> Result<IntOrString<'_>, ProtobufError> {
    let (mut is_string, mut number, mut string) = (false, 0, "");
    for field in Fields(bytes) {
        match field? {
            (1, wire) => is_string = wire.integer()? == 1,
            (2, wire) => number = wire.integer()? as i32,
            (3, wire) => string = wire.text()?,
            _ => {}
        }
    }
    Ok(if is_string { IntOrString::String(string) } else { IntOrString::Int(number) })
}

/// The text in a message that has nothing else.
fn text_in(bytes: &[u8]) -> Result<Option<&str>, ProtobufError> {
    let mut text = None;
    for field in Fields(bytes) {
        if let (1, wire) = field? {
            text = Some(wire.text()?);
        }
    }
    Ok(text)
}

/// The bytes in a message that has nothing else.
fn bytes_in(bytes: &[u8]) -> Result<&[u8], ProtobufError> {
    let mut found: &[u8] = &[];
    for field in Fields(bytes) {
        if let (1, wire) = field? {
            found = wire.bytes()?;
        }
    }
    Ok(found)
}
