//! Decodes protobuf to JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ProtobufError;
use super::messages::{Content, Field, Message, Zero, messages};
use crate::schema::Shape;

/// The value of one field on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32,
    Bytes(&'a [u8]),
}

/// An iterator over the fields of a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field().ok_or(ProtobufError::Malformed);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(self.take(8)?.try_into().ok()?),
            2 => {
                let length = self.varint()?;
                Wire::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            _ => return None,
        };
        Some((u32::try_from(key >> 3).ok().filter(|number| *number > 0)?, wire))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

impl<'a> Wire<'a> {
    pub(super) fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError::Malformed)
    }

    fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Malformed),
        }
    }

    fn integer(self) -> Result<i64, ProtobufError> {
        match self {
            Wire::Varint(value) => Ok(value.cast_signed()),
            _ => Err(ProtobufError::Malformed),
        }
    }
}

/// Decodes the fields of a message into an object.
pub(super) fn message(
    bytes: &[u8],
    message: &Message,
    into: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    for field in Fields(bytes) {
        let (number, wire) = field?;
        match message.slot(number) {
            None => {}
            Some(Content::Inline(inner)) => self::message(wire.bytes()?, inner, into)?,
            Some(Content::Field(field)) => self::field(field, wire, into)?,
        }
    }
    Ok(())
}

fn field(field: &Field, wire: Wire<'_>, into: &mut Map<String, Value>) -> Result<(), ProtobufError> {
    match field.shape {
        Shape::List(inner, ..) => {
            let list = into.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().map_or(Ok(()), |list| items(field, inner, wire, list))
        }
        Shape::Map(inner) => {
            let map = into.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            map.as_object_mut().map_or(Ok(()), |map| entry(field, inner, wire, map))
        }
        shape => {
            let value = value(field, shape, wire)?;
            let omitted = field.zero == Zero::Omitted && is_zero(&value);
            if !value.is_null() && !omitted {
                into.insert(field.name.to_owned(), value);
            }
            Ok(())
        }
    }
}

/// Decodes one element of a list, or packed numbers.
fn items(field: &Field, shape: &Shape, wire: Wire<'_>, list: &mut Vec<Value>) -> Result<(), ProtobufError> {
    if let (Shape::Int32 | Shape::Int64 | Shape::Bool, Wire::Bytes(packed)) = (shape, wire) {
        let mut numbers = Fields(packed);
        while !numbers.0.is_empty() {
            let number = numbers.varint().ok_or(ProtobufError::Malformed)?;
            list.push(value(field, shape, Wire::Varint(number))?);
        }
        return Ok(());
    }
    list.push(value(field, shape, wire)?);
    Ok(())
}

fn entry(
    field: &Field,
    shape: &Shape,
    wire: Wire<'_>,
    map: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    let (mut name, mut found) = ("", None);
    for part in Fields(wire.bytes()?) {
        match (part?, shape) {
            ((1, wire), _) => name = wire.text()?,
            ((2, wire), Shape::List(inner, ..)) => {
                let mut list = Vec::new();
                for item in Fields(wire.bytes()?) {
                    items(field, inner, item?.1, &mut list)?;
                }
                found = Some(Value::Array(list));
            }
            ((2, wire), shape) => found = Some(value(field, shape, wire)?),
            _ => {}
        }
    }
    // A zero value may be absent.
    let missing = || match shape {
        Shape::List(..) => Value::Array(Vec::new()),
        Shape::Struct(..) => Value::Object(Map::new()),
        _ => "".into(),
    };
    map.insert(name.to_owned(), found.unwrap_or_else(missing));
    Ok(())
}

fn value(field: &Field, shape: &Shape, wire: Wire<'_>) -> Result<Value, ProtobufError> {
    Ok(match shape {
        Shape::String | Shape::Enum(_) => wire.text()?.into(),
        Shape::Bytes => STANDARD.encode(wire.bytes()?).into(),
        // Protobuf truncates a varint to the size of its type.
        Shape::Int32 => (wire.integer()? as i32).into(),
        Shape::Int64 => wire.integer()?.into(),
        Shape::Bool => (wire.integer()? != 0).into(),
        Shape::Number => match wire {
            Wire::Fixed64(bytes) => f64::from_le_bytes(bytes).into(),
            _ => return Err(ProtobufError::Malformed),
        },
        Shape::Time => time(wire.bytes()?, false)?,
        Shape::MicroTime => time(wire.bytes()?, true)?,
        Shape::Quantity => quantity(wire.bytes()?)?,
        Shape::IntOrString => int_or_string(wire.bytes()?)?,
        Shape::Any | Shape::ObjectOrAny(_) => raw_json(wire.bytes()?, field)?,
        Shape::Struct(name, _) => {
            let mut object = Map::new();
            let message = messages().named(name).ok_or(ProtobufError::Malformed)?;
            self::message(wire.bytes()?, message, &mut object)?;
            Value::Object(object)
        }
        // No type has a list or a map inside a list.
        Shape::Map(_) | Shape::List(..) => return Err(ProtobufError::Malformed),
    })
}

/// Decodes a time; an empty message is null.
fn time(bytes: &[u8], micro: bool) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, wire) => seconds = wire.integer()?,
            (2, wire) => nanos = wire.integer()? as i32,
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::Malformed)?;
    Ok(if micro { format!("{time:.6}").into() } else { format!("{time:.0}").into() })
}

fn quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut quantity = "0";
    for field in Fields(bytes) {
        if let (1, wire) = field? {
            quantity = wire.text()?;
        }
    }
    Ok(quantity.into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_string, mut number, mut string) = (false, 0, "");
    for field in Fields(bytes) {
        match field? {
            (1, wire) => is_string = wire.integer()? == 1,
            (2, wire) => number = wire.integer()? as i32,
            (3, wire) => string = wire.text()?,
            _ => {}
        }
    }
    Ok(if is_string { string.into() } else { number.into() })
}

/// Decodes JSON inside protobuf; empty bytes are null.
fn raw_json(bytes: &[u8], owner: &Field) -> Result<Value, ProtobufError> {
    let mut raw: &[u8] = &[];
    for field in Fields(bytes) {
        if let (1, wire) = field? {
            raw = wire.bytes()?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|_| ProtobufError::Mismatch { field: owner.name.to_owned() })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Array(list) => list.is_empty(),
    }
}
