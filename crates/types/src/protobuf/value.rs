//! Reads one value of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, Visitor};

use super::ProtobufError;
use super::deserializer::{MessageReader, Notes};
use super::fields::{Fields, Wire};
use super::messages::messages;
use crate::Shape;

/// Reads a value that is on the wire.
#[derive(Clone, Copy)]
pub(super) struct Single<'de, 'm> {
    /// The field it belongs to, for errors.
    pub(super) name: &'static str,
    pub(super) shape: &'static Shape,
    pub(super) wire: Wire<'de>,
    pub(super) notes: &'m Notes,
}

impl<'de> de::Deserializer<'de> for Single<'de, '_> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let wire = self.wire;
        match self.shape {
            Shape::String | Shape::Enum(_) => visitor.visit_borrowed_str(wire.text()?),
            Shape::Bytes => visitor.visit_string(STANDARD.encode(wire.bytes()?)),
            // Protobuf truncates a varint to the size of its type.
            Shape::Int32 => visitor.visit_i64(i64::from(wire.integer()? as i32)),
            Shape::Int64 => visitor.visit_i64(wire.integer()?),
            Shape::Bool => visitor.visit_bool(wire.integer()? != 0),
            Shape::Number => match wire {
                Wire::Fixed64(bytes) => visitor.visit_f64(f64::from_le_bytes(bytes)),
                _ => Err(ProtobufError::Malformed),
            },
            Shape::Time | Shape::MicroTime => {
                match time(wire.bytes()?, matches!(self.shape, Shape::MicroTime))? {
                    Some(time) => visitor.visit_string(time),
                    None => visitor.visit_unit(),
                }
            }
            Shape::Quantity => visitor.visit_borrowed_str(text_in(wire.bytes()?)?.unwrap_or("0")),
            Shape::IntOrString => match int_or_string(wire.bytes()?)? {
                IntOrString::Int(number) => visitor.visit_i64(i64::from(number)),
                IntOrString::String(text) => visitor.visit_borrowed_str(text),
            },
            Shape::Any | Shape::ObjectOrAny(_) => match bytes_in(wire.bytes()?)? {
                [] => visitor.visit_unit(),
                json => de::Deserializer::deserialize_any(
                    &mut serde_json::Deserializer::from_slice(json),
                    visitor,
                )
                .map_err(|_| ProtobufError::Mismatch { field: self.name.to_owned() }),
            },
            Shape::Struct(name, _) => {
                let message = messages().named(name).ok_or(ProtobufError::Malformed)?;
                let bytes = wire.bytes()?;
                MessageReader { message, bytes, type_meta: None, notes: self.notes }.deserialize_any(visitor)
            }
            // No type has a list or a map inside a list.
            Shape::Map(_) | Shape::List(..) => Err(ProtobufError::Malformed),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if is_null(self.shape, self.wire)? { visitor.visit_none() } else { visitor.visit_some(self) }
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
        match self.shape {
            Shape::String | Shape::Enum(_) => {
                visitor.visit_enum(de::value::BorrowedStrDeserializer::new(self.wire.text()?))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// Reads the zero value of a field that is not on the wire and that JSON has all the same.
#[derive(Clone, Copy)]
pub(super) struct ZeroReader<'m> {
    pub(super) shape: &'static Shape,
    pub(super) notes: &'m Notes,
}

impl<'de> de::Deserializer<'de> for ZeroReader<'_> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.shape {
            Shape::String | Shape::Enum(_) => visitor.visit_borrowed_str(""),
            Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => visitor.visit_i64(0),
            Shape::Bool => visitor.visit_bool(false),
            Shape::Quantity => visitor.visit_borrowed_str("0"),
            Shape::Struct(..) => {
                Single { name: "", shape: self.shape, wire: Wire::Bytes(&[]), notes: self.notes }
                    .deserialize_any(visitor)
            }
            // Go encodes the zero values of times, lists, maps and bytes as null.
            _ => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.shape {
            Shape::Time
            | Shape::MicroTime
            | Shape::List(..)
            | Shape::Map(_)
            | Shape::Bytes
            | Shape::Any
            | Shape::ObjectOrAny(_) => visitor.visit_none(),
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
pub(super) fn is_null(shape: &Shape, wire: Wire<'_>) -> Result<bool, ProtobufError> {
    Ok(match shape {
        Shape::Time | Shape::MicroTime => wire.bytes()?.is_empty(),
        Shape::Any | Shape::ObjectOrAny(_) => bytes_in(wire.bytes()?)?.is_empty(),
        _ => false,
    })
}

/// Whether a value is the zero value of its type in Go.
pub(super) fn is_zero(shape: &Shape, wire: Wire<'_>) -> Result<bool, ProtobufError> {
    Ok(match (shape, wire) {
        (Shape::Int32, wire) => wire.integer()? as i32 == 0,
        (Shape::Int64 | Shape::Bool, wire) => wire.integer()? == 0,
        (Shape::Number, Wire::Fixed64(bytes)) => f64::from_le_bytes(bytes) == 0.0,
        (_, Wire::Bytes(bytes)) => bytes.is_empty(),
        _ => false,
    })
}

/// The time as Kubernetes writes it in JSON; `None` for the zero time.
fn time(bytes: &[u8], micro: bool) -> Result<Option<String>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, wire) => seconds = wire.integer()?,
            // A `Time` has whole seconds.
            (2, wire) if micro => nanos = wire.integer()? as i32,
            _ => {}
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos / 1000 * 1000).map_err(|_| ProtobufError::Malformed)?;
    Ok(Some(if micro { format!("{time:.6}") } else { format!("{time:.0}") }))
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
