//! Puts the fields of a message in the order of their numbers.

use super::fields::Fields;
use super::messages::{Content, Encoding, Message};
use super::{MAX_DEPTH, ProtobufError, write};

/// Rewrites a message so that its fields come in the order of their numbers, each field that is not a list or a map once.
///
/// Of a value that comes several times the last one counts; of a message all of them together, field by field.
pub(super) fn ordered(bytes: &[u8], message: &Message, depth: usize) -> Result<Vec<u8>, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep);
    }
    // Where each field is; stable, so that values of one number keep their order.
    let mut fields: Vec<(u32, &[u8])> = Vec::new();
    let mut rest = Fields(bytes);
    loop {
        let before = rest.0;
        let Some(field) = rest.next() else { break };
        let (number, _) = field?;
        fields.push((number, &before[..before.len() - rest.0.len()]));
    }
    fields.sort_by_key(|(number, _)| *number);
    let mut out = Vec::with_capacity(bytes.len());
    for group in fields.chunk_by(|a, b| a.0 == b.0) {
        let number = group[0].0;
        match message.slot(number) {
            Some(Content::Inline(inner)) => merged(&mut out, number, group, inner, depth)?,
            Some(Content::Field(field)) => match (&field.encoding, field.encoding.message()) {
                (Encoding::Message(_), Some(inner)) => merged(&mut out, number, group, inner, depth)?,
                (_, Some(inner)) => {
                    for one in group {
                        merged(&mut out, number, std::slice::from_ref(one), inner, depth)?;
                    }
                }
                (Encoding::Map(value), None) if value.message().is_some() => {
                    for (_, entry) in group {
                        ordered_entry(&mut out, number, entry, value, depth)?;
                    }
                }
                (Encoding::List(_) | Encoding::Map(_), None) => {
                    group.iter().for_each(|(_, field)| out.extend_from_slice(field));
                }
                _ => out.extend_from_slice(group[group.len() - 1].1),
            },
            None => group.iter().for_each(|(_, field)| out.extend_from_slice(field)),
        }
    }
    Ok(out)
}

/// Writes one message that has all fields of some.
fn merged(
    out: &mut Vec<u8>,
    number: u32,
    group: &[(u32, &[u8])],
    message: &Message,
    depth: usize,
) -> Result<(), ProtobufError> {
    let mut all = Vec::new();
    for (_, field) in group {
        let (_, wire) = Fields(field).next().ok_or(ProtobufError::Malformed)??;
        all.extend_from_slice(wire.bytes()?);
    }
    write::bytes(out, number, &ordered(&all, message, depth + 1)?);
    Ok(())
}

/// Writes an entry of a map whose value is a message.
fn ordered_entry(
    out: &mut Vec<u8>,
    number: u32,
    entry: &[u8],
    value: &Encoding,
    depth: usize,
) -> Result<(), ProtobufError> {
    let (_, wire) = Fields(entry).next().ok_or(ProtobufError::Malformed)??;
    let (mut key, mut message) = ("", None);
    for part in Fields(wire.bytes()?) {
        match part? {
            (1, wire) => key = wire.text()?,
            (2, wire) => message = Some(wire.bytes()?),
            _ => {}
        }
    }
    write::nested(out, number, |out| {
        write::text(out, 1, key);
        if let (Some(bytes), Some(inner)) = (message, value.message()) {
            write::bytes(out, 2, &ordered(bytes, inner, depth + 1)?);
        }
        Ok(())
    })
}
