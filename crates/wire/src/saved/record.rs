//! The bytes of a record.
//!
//! A byte of flags, the uid, the version, then the parts that the flags name, in their order.

use super::reader::{Reader, push_bytes, push_number};
use crate::{FieldPath, Omissions, Owner, ResourceVersion, Uid, fields::Found, object::Record};
use serde_json::Value;
use std::sync::Arc;

const DELETING: u8 = 1;
const MALFORMED: u8 = 1 << 1;
/// The version is text and not a number.
const OPAQUE: u8 = 1 << 2;
const GENERATION: u8 = 1 << 3;
const LABELS: u8 = 1 << 4;
const CONTROLLER: u8 = 1 << 5;
const OMISSIONS: u8 = 1 << 6;
const FIELDS: u8 = 1 << 7;

/// Appends everything but the key and the content.
pub(super) fn write(record: &Record, fields: u32, out: &mut Vec<u8>) {
    let Record { identity, origin, fields: found, .. } = record;
    let (labels, omissions) = (identity.labels.as_bytes(), origin.omissions());
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(identity.deleting, DELETING)
            | flag(identity.malformed, MALFORMED)
            | flag(identity.resource_version.number().is_none(), OPAQUE)
            | flag(identity.generation.get().is_some(), GENERATION)
            | flag(!labels.is_empty(), LABELS)
            | flag(identity.controller.is_some(), CONTROLLER)
            | flag(!omissions.is_empty(), OMISSIONS)
            | flag(found.is_some(), FIELDS),
    );
    out.extend_from_slice(identity.uid.as_bytes());
    match identity.resource_version.number() {
        Some(number) => push_number(out, number),
        None => push_bytes(out, identity.resource_version.to_string().as_bytes()),
    }
    if let Some(generation) = identity.generation.get() {
        out.extend_from_slice(&generation.to_le_bytes());
    }
    if !labels.is_empty() {
        push_bytes(out, labels);
    }
    if let Some(owner) = &identity.controller {
        push_part(out, |out| write_owner(owner, out));
    }
    if !omissions.is_empty() {
        push_part(out, |out| write_omissions(omissions, out));
    }
    if let Some(found) = found {
        push_number(out, fields.into());
        push_part(out, |out| write_found(found, out));
    }
}

/// Appends a part behind its length.
fn push_part(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    // Most parts are shorter than 128 bytes: the length takes one byte, which is filled in afterwards.
    let at = out.len();
    out.push(0);
    write(out);
    let len = out.len() - at - 1;
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => out[at] = short,
        _ => {
            let part = out.split_off(at + 1);
            out.truncate(at);
            push_bytes(out, &part);
        }
    }
}

fn write_owner(owner: &Owner, out: &mut Vec<u8>) {
    out.extend_from_slice(owner.uid.as_bytes());
    for text in [&owner.api_version, &owner.kind, &owner.name] {
        push_bytes(out, text.as_bytes());
    }
}

pub(super) fn read_owner(bytes: &[u8]) -> Option<Owner> {
    let mut reader = Reader::new(bytes);
    let uid = Uid::from_bytes(reader.array()?);
    let mut text = || reader.text().map(Arc::from);
    let owner = Owner { uid, api_version: text()?, kind: text()?, name: text()? };
    reader.is_at_end().then_some(owner)
}

fn write_omissions(omissions: &Omissions, out: &mut Vec<u8>) {
    out.push(omissions.extent_code());
    for path in omissions.paths() {
        push_bytes(out, path.to_string().as_bytes());
    }
}

pub(super) fn read_omissions(bytes: &[u8]) -> Option<Omissions> {
    let mut reader = Reader::new(bytes);
    let extent = reader.byte()?;
    let mut paths: Vec<FieldPath> = Vec::new();
    while !reader.is_at_end() {
        paths.push(reader.text()?.parse().ok()?);
    }
    Omissions::of_code(extent, paths)
}

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const TEXT: u8 = 3;
/// Anything else, as JSON.
const JSON: u8 = 4;

fn write_found(found: &Found, out: &mut Vec<u8>) {
    for values in found {
        push_number(out, values.len() as u64);
        for value in values {
            match value {
                Value::Null => out.push(NULL),
                Value::Bool(false) => out.push(FALSE),
                Value::Bool(true) => out.push(TRUE),
                Value::String(text) => {
                    out.push(TEXT);
                    push_bytes(out, text.as_bytes());
                }
                other => {
                    out.push(JSON);
                    push_bytes(out, other.to_string().as_bytes());
                }
            }
        }
    }
}

pub(super) fn read_found(bytes: &[u8]) -> Option<Found> {
    let mut reader = Reader::new(bytes);
    let mut found = Found::new();
    while !reader.is_at_end() {
        let mut values = Vec::new();
        for _ in 0..reader.number()? {
            values.push(match reader.byte()? {
                NULL => Value::Null,
                FALSE => Value::Bool(false),
                TRUE => Value::Bool(true),
                TEXT => Value::from(reader.text()?),
                JSON => serde_json::from_slice(reader.bytes()?).ok()?,
                _ => return None,
            });
        }
        found.push(values);
    }
    Some(found)
}

/// A record whose parts are not decoded yet.
pub(super) struct SavedRecord<'a> {
    pub(super) uid: Uid,
    pub(super) version: ResourceVersion,
    pub(super) deleting: bool,
    pub(super) malformed: bool,
    pub(super) generation: Option<i64>,
    pub(super) labels: Option<&'a [u8]>,
    pub(super) controller: Option<&'a [u8]>,
    pub(super) omissions: Option<&'a [u8]>,
    /// The values, and the number of the paths.
    pub(super) fields: Option<(u32, &'a [u8])>,
}

pub(super) fn read(bytes: &[u8]) -> Option<SavedRecord<'_>> {
    let mut reader = Reader::new(bytes);
    let flags = reader.byte()?;
    let has = |flag: u8| flags & flag != 0;
    let uid = Uid::from_bytes(reader.array()?);
    let version = if has(OPAQUE) {
        let version = ResourceVersion::from(reader.text()?);
        // A number is saved as a number: one that reads as another one must not enter.
        version.number().is_none().then_some(version)?
    } else {
        reader.number()?.into()
    };
    let generation = if has(GENERATION) { Some(i64::from_le_bytes(reader.array()?)) } else { None };
    let mut part = |flag: u8| if has(flag) { reader.bytes().map(Some) } else { Some(None) };
    let (labels, controller, omissions) = (part(LABELS)?, part(CONTROLLER)?, part(OMISSIONS)?);
    let fields = match has(FIELDS) {
        true => Some((u32::try_from(reader.number()?).ok()?, reader.bytes()?)),
        false => None,
    };
    reader.is_at_end().then_some(SavedRecord {
        uid,
        version,
        deleting: has(DELETING),
        malformed: has(MALFORMED),
        generation,
        labels,
        controller,
        omissions,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_all_lengths_are_read() {
        for length in [0, 1, 127, 128, 129, 255, 256, 70_000] {
            let (mut out, part) = (vec![1], vec![7; length]);
            push_part(&mut out, |out| out.extend_from_slice(&part));
            let mut reader = Reader::new(&out[1..]);
            assert_eq!((reader.bytes(), reader.is_at_end()), (Some(&part[..]), true), "{length} bytes");
        }
    }

    #[test]
    fn values_of_all_types_are_read() {
        let simple = vec![json!(null), json!(false), json!(true), json!("text")];
        let found: Found = vec![simple, vec![], vec![json!(7), json!({"a": [1.5]})]];
        let mut out = Vec::new();
        write_found(&found, &mut out);
        assert_eq!(read_found(&out), Some(found));
        assert_eq!(read_found(&[1, JSON + 1]), None, "no type has this number");
    }
}
