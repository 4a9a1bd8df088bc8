//! Finds fields that the table does not know.

use super::fields::{Fields, Wire};
use super::messages::{Content, Encoding, Inside, Message, Union, messages};
use super::union::numbers;
use super::{MAX_DEPTH, ProtobufError};

/// Whether a message inside `depth` others has a field whose number is not in the table, at any depth.
pub(super) fn has_unknown_fields(
    bytes: &[u8],
    message: &Message,
    depth: usize,
) -> Result<bool, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let unknown = match message.inside(number) {
            Inside::Nothing => continue,
            Inside::Unknown => true,
            Inside::Message(id) => has_unknown_fields(wire.bytes()?, messages().get(id), depth + 1)?,
            Inside::Other => match message.slot(number) {
                None => true,
                Some(Content::Inline(inner)) => has_unknown_fields(wire.bytes()?, inner, depth + 1)?,
                Some(Content::Field(field)) => in_value(&field.encoding, wire, depth)?,
            },
        };
        if unknown {
            return Ok(true);
        }
    }
    Ok(false)
}

fn in_value(encoding: &Encoding, wire: Wire<'_>, depth: usize) -> Result<bool, ProtobufError> {
    match encoding {
        Encoding::List(inner) => in_value(inner, wire, depth),
        Encoding::Message(id) => has_unknown_fields(wire.bytes()?, messages().get(*id), depth + 1),
        Encoding::Union(union, schema) => in_union(*union, schema, wire.bytes()?, depth),
        Encoding::Map(inner) if matches!(**inner, Encoding::Message(_) | Encoding::Union(..)) => {
            for part in Fields(wire.bytes()?) {
                match part? {
                    (2, value) if in_value(inner, value, depth)? => return Ok(true),
                    _ => {}
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn in_union(union: Union, schema: &Encoding, bytes: &[u8], depth: usize) -> Result<bool, ProtobufError> {
    let (number, alternative) = numbers(union);
    for field in Fields(bytes) {
        let (found, wire) = field?;
        let has_schema = found == number || found == alternative && union == Union::Schemas;
        let unknown = match has_schema {
            true => in_value(schema, wire, depth)?,
            false => found != alternative,
        };
        if unknown {
            return Ok(true);
        }
    }
    Ok(false)
}
