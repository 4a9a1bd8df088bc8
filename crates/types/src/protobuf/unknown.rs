//! Finds fields that the table does not know.

use super::ProtobufError;
use super::fields::{Fields, Wire};
use super::messages::{Content, Encoding, Message, messages};

/// Whether a message has a field whose number is not in the table, at any depth.
pub(super) fn has_unknown_fields(bytes: &[u8], message: &Message) -> Result<bool, ProtobufError> {
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let unknown = match message.slot(number) {
            None => true,
            Some(Content::Inline(inner)) => has_unknown_fields(wire.bytes()?, inner)?,
            Some(Content::Field(field)) => in_value(&field.encoding, wire)?,
        };
        if unknown {
            return Ok(true);
        }
    }
    Ok(false)
}

fn in_value(encoding: &Encoding, wire: Wire<'_>) -> Result<bool, ProtobufError> {
    match encoding {
        Encoding::List(inner) => in_value(inner, wire),
        Encoding::Message(id) => has_unknown_fields(wire.bytes()?, messages().get(*id)),
        Encoding::Map(inner) if matches!(**inner, Encoding::Message(_)) => {
            for part in Fields(wire.bytes()?) {
                match part? {
                    (2, value) if in_value(inner, value)? => return Ok(true),
                    _ => {}
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}
