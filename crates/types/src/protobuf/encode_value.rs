//! Encodes JSON values as fields of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ProtobufError;
use super::messages::{Content, Encoding, Field, Message, Union, messages};
use super::union::numbers;
use super::write::{bytes, double, integer, nested, text};

/// Encodes the fields of an object in the order of their numbers.
pub(super) fn message(
    out: &mut Vec<u8>,
    message: &Message,
    object: &Map<String, Value>,
) -> Result<(), ProtobufError> {
    for slot in message.slots() {
        match &slot.content {
            Content::Inline(inner) => {
                let mut fields = Vec::new();
                self::message(&mut fields, inner, object)?;
                if !fields.is_empty() {
                    bytes(out, slot.number, &fields);
                }
            }
            Content::Field(field) => {
                if let Some(found) = object.get(field.name) {
                    value(out, slot.number, field, &field.encoding, found)?;
                }
            }
        }
    }
    Ok(())
}

/// Encodes one value of a field; nothing for null.
pub(super) fn value(
    out: &mut Vec<u8>,
    number: u32,
    field: &Field,
    encoding: &Encoding,
    value: &Value,
) -> Result<(), ProtobufError> {
    let mismatch = || ProtobufError::Mismatch { field: field.name.to_owned() };
    if value.is_null() {
        return Ok(());
    }
    match encoding {
        Encoding::Text => text(out, number, value.as_str().ok_or_else(mismatch)?),
        Encoding::Bytes => {
            let encoded = value.as_str().ok_or_else(mismatch)?;
            bytes(out, number, &STANDARD.decode(encoded).map_err(|_| mismatch())?);
        }
        Encoding::Int32 | Encoding::Int64 => integer(out, number, value.as_i64().ok_or_else(mismatch)?),
        Encoding::Bool => integer(out, number, value.as_bool().ok_or_else(mismatch)?.into()),
        Encoding::Double => double(out, number, value.as_f64().ok_or_else(mismatch)?),
        Encoding::Time | Encoding::MicroTime => {
            time(out, number, value.as_str().ok_or_else(mismatch)?).ok_or_else(mismatch)?
        }
        Encoding::Quantity => {
            let quantity = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            nested(out, number, |out| text(out, 1, &quantity));
        }
        Encoding::IntOrString => int_or_string(out, number, value).ok_or_else(mismatch)?,
        Encoding::Json => nested(out, number, |out| text(out, 1, &value.to_string())),
        Encoding::Message(id) => {
            let object = value.as_object().ok_or_else(mismatch)?;
            nested(out, number, |out| message(out, messages().get(*id), object))?;
        }
        Encoding::Union(union, schema) => {
            nested(out, number, |out| alternative(out, field, *union, schema, value))?;
        }
        Encoding::Wrapped(inner) => {
            let items = value.as_array().ok_or_else(mismatch)?;
            nested(out, number, |out| {
                items.iter().try_for_each(|item| self::value(out, 1, field, inner, item))
            })?;
        }
        Encoding::Map(inner) => {
            for (key, found) in value.as_object().ok_or_else(mismatch)? {
                nested(out, number, |out| entry(out, field, inner, key, found))?;
            }
        }
        Encoding::List(inner) => {
            for item in value.as_array().ok_or_else(mismatch)? {
                self::value(out, number, field, inner, item)?;
            }
        }
    }
    Ok(())
}

/// Writes a value that has one of two shapes, as a message with a field for each.
fn alternative(
    out: &mut Vec<u8>,
    field: &Field,
    union: Union,
    schema: &Encoding,
    value: &Value,
) -> Result<(), ProtobufError> {
    let (number, alternative) = numbers(union);
    match (union, value) {
        (Union::Schemas, Value::Array(items)) => {
            items.iter().try_for_each(|item| self::value(out, alternative, field, schema, item))
        }
        (Union::Texts, Value::Array(items)) => {
            items.iter().try_for_each(|item| self::value(out, alternative, field, &Encoding::Text, item))
        }
        (Union::Bool, Value::Bool(allows)) => {
            integer(out, alternative, (*allows).into());
            Ok(())
        }
        (Union::Bool, _) => {
            // As in Go: a schema allows what it describes.
            integer(out, alternative, 1);
            self::value(out, number, field, schema, value)
        }
        _ => self::value(out, number, field, schema, value),
    }
}

/// Writes an entry of a map, as a message with its key and value.
fn entry(
    out: &mut Vec<u8>,
    field: &Field,
    encoding: &Encoding,
    key: &str,
    value: &Value,
) -> Result<(), ProtobufError> {
    text(out, 1, key);
    match encoding {
        // A list cannot be the value of a map, so it is wrapped in a message.
        Encoding::List(_) => nested(out, 2, |out| self::value(out, 1, field, encoding, value)),
        encoding => self::value(out, 2, field, encoding, value),
    }
}

fn time(out: &mut Vec<u8>, number: u32, text: &str) -> Option<()> {
    let time: jiff::Timestamp = text.parse().ok()?;
    nested(out, number, |out| {
        integer(out, 1, time.as_second());
        integer(out, 2, time.subsec_nanosecond().into());
    });
    Some(())
}

fn int_or_string(out: &mut Vec<u8>, number: u32, value: &Value) -> Option<()> {
    match (value.as_i64(), value.as_str()) {
        (Some(value), _) => nested(out, number, |out| {
            integer(out, 1, 0);
            integer(out, 2, value);
        }),
        (None, Some(string)) => nested(out, number, |out| {
            integer(out, 1, 1);
            text(out, 3, string);
        }),
        (None, None) => return None,
    }
    Some(())
}
