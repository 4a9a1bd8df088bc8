//! Cuts fields out of a message.

use std::borrow::Cow;

use super::fields::{Fields, Wire};
use super::messages::{Content, Encoding, Field, Message, messages};
use super::{MAX_DEPTH, ProtobufError, write};
use crate::Zero;

/// A set of fields inside one value, by their names in JSON.
pub trait FieldSet: Clone {
    /// Whether the value itself is in the set.
    fn is_whole(&self) -> bool;

    /// The fields inside the member of an object.
    fn member(&self, name: &str) -> Option<&Self>;

    /// The fields inside an element of a list.
    fn element(&self, index: usize) -> Option<Cow<'_, Self>>;
}

/// The message without some fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// It has none of them.
    Unchanged,
    /// Without them.
    Changed(Vec<u8>),
    /// JSON can be without them, and protobuf cannot: what is absent would be read as a zero value, or an empty list or
    /// map as an absent one.
    NeedsJson,
}

/// Why cutting ends early.
enum Stop {
    NeedsJson,
    Error(ProtobufError),
}

impl From<ProtobufError> for Stop {
    fn from(error: ProtobufError) -> Self {
        Self::Error(error)
    }
}

/// Cuts fields out of a message.
pub(super) fn cut(bytes: &[u8], message: &Message, fields: &impl FieldSet) -> Result<Cut, ProtobufError> {
    match in_message(bytes, message, fields, 0) {
        Ok(None) => Ok(Cut::Unchanged),
        Ok(Some(rest)) => Ok(Cut::Changed(rest)),
        Err(Stop::NeedsJson) => Ok(Cut::NeedsJson),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// The result of a cut for one field on the wire.
enum Fate {
    Stays,
    Replaced(Vec<u8>),
    Removed,
    /// It is one element of a list, or one entry of a map.
    ElementRemoved,
}

impl From<Option<Vec<u8>>> for Fate {
    fn from(replaced: Option<Vec<u8>>) -> Self {
        replaced.map_or(Self::Stays, Self::Replaced)
    }
}

/// The message without the fields; `None` if it has none of them.
fn in_message(
    bytes: &[u8],
    message: &Message,
    fields: &impl FieldSet,
    depth: usize,
) -> Result<Option<Vec<u8>>, Stop> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::TooDeep.into());
    }
    let mut rest: Option<Vec<u8>> = None;
    let mut unread = Fields(bytes);
    let mut groups = Groups::default();
    // The positions of slots that are on the wire, one bit each.
    let mut present = 0_u128;
    loop {
        let before = unread.0;
        let Some(field) = unread.next() else { break };
        let (number, wire) = field?;
        present |= message.position(number).map_or(0, |position| 1 << position);
        let fate = match message.slot(number) {
            None => Fate::Stays,
            Some(Content::Inline(_)) if groups.count(number) > 0 => return Err(Stop::NeedsJson),
            Some(Content::Inline(inner)) => {
                groups.note(number, &Fate::Stays);
                in_message(wire.bytes()?, inner, fields, depth + 1)?.into()
            }
            Some(Content::Field(field)) => match fields.member(field.name) {
                None => Fate::Stays,
                Some(inner) => {
                    let index = groups.count(number);
                    let fate = in_field(field, index, wire, inner, depth)?;
                    groups.note(number, &fate);
                    fate
                }
            },
        };
        let read = bytes.len() - before.len();
        match (fate, &mut rest) {
            (Fate::Stays, None) => {}
            (Fate::Stays, Some(rest)) => rest.extend_from_slice(&before[..before.len() - unread.0.len()]),
            (Fate::Replaced(replaced), rest) => {
                write::bytes(rest.get_or_insert_with(|| bytes[..read].to_vec()), number, &replaced);
            }
            (Fate::Removed | Fate::ElementRemoved, rest) => {
                rest.get_or_insert_with(|| bytes[..read].to_vec());
            }
        }
    }
    check_absent(message, present, fields, depth)?;
    if groups.is_one_emptied() { Err(Stop::NeedsJson) } else { Ok(rest) }
}

/// Checks that no field is cut that is not on the wire and that JSON has anyway: nothing can be cut out of a zero
/// value.
fn check_absent(message: &Message, present: u128, fields: &impl FieldSet, depth: usize) -> Result<(), Stop> {
    for &position in message.written().iter().filter(|position| present >> **position & 1 == 0) {
        match &message.slots()[usize::from(position)].content {
            Content::Inline(inner) => in_message(&[], inner, fields, depth + 1).map(drop)?,
            Content::Field(field) => match (fields.member(field.name), &field.encoding) {
                (None, _) => {}
                (Some(inner), _) if inner.is_whole() => return Err(Stop::NeedsJson),
                (Some(inner), Encoding::Message(id)) => {
                    in_message(&[], messages().get(*id), inner, depth + 1).map(drop)?;
                }
                (Some(_), _) => {}
            },
        }
    }
    Ok(())
}

/// Lists and maps that lose elements. JSON has an empty one, while protobuf has nothing that could be read as empty.
#[derive(Default)]
struct Groups(Vec<Group>);

struct Group {
    number: u32,
    /// Elements so far.
    elements: usize,
    removed: usize,
}

impl Groups {
    /// The elements of a number so far.
    fn count(&self, number: u32) -> usize {
        self.0.iter().find(|group| group.number == number).map_or(0, |group| group.elements)
    }

    fn note(&mut self, number: u32, fate: &Fate) {
        let at = self.0.iter().position(|group| group.number == number).unwrap_or_else(|| {
            self.0.push(Group { number, elements: 0, removed: 0 });
            self.0.len() - 1
        });
        self.0[at].elements += 1;
        self.0[at].removed += usize::from(matches!(fate, Fate::ElementRemoved));
    }

    fn is_one_emptied(&self) -> bool {
        self.0.iter().any(|group| group.removed == group.elements)
    }
}

fn in_field(
    field: &Field,
    index: usize,
    wire: Wire<'_>,
    fields: &impl FieldSet,
    depth: usize,
) -> Result<Fate, Stop> {
    if fields.is_whole() {
        let is_read_anyway = matches!(field.zero, Zero::Written | Zero::Null);
        return if is_read_anyway { Err(Stop::NeedsJson) } else { Ok(Fate::Removed) };
    }
    match &field.encoding {
        Encoding::Map(value) => in_entry(wire.bytes()?, value, fields, depth),
        Encoding::List(item) => match fields.element(index) {
            None => Ok(Fate::Stays),
            Some(inner) if inner.is_whole() => Ok(Fate::ElementRemoved),
            Some(inner) => Ok(in_value(item, wire, &*inner, depth)?.into()),
        },
        // A message in pieces, which no server writes: elements are counted over all of them.
        _ if index > 0 => Err(Stop::NeedsJson),
        encoding => {
            let cut = in_value(encoding, wire, fields, depth)?;
            // The empty message would be read as an absent one.
            let is_omitted = field.zero == Zero::Omitted && cut.as_ref().is_some_and(Vec::is_empty);
            if is_omitted { Err(Stop::NeedsJson) } else { Ok(cut.into()) }
        }
    }
}

/// Cuts fields out of a value that is neither a list nor a map. Text and numbers have none.
fn in_value(
    encoding: &Encoding,
    wire: Wire<'_>,
    fields: &impl FieldSet,
    depth: usize,
) -> Result<Option<Vec<u8>>, Stop> {
    match encoding {
        Encoding::Message(id) => in_message(wire.bytes()?, messages().get(*id), fields, depth + 1),
        Encoding::Json | Encoding::Union(..) | Encoding::Wrapped(_) | Encoding::List(_) => {
            Err(Stop::NeedsJson)
        }
        _ => Ok(None),
    }
}

/// Cuts fields out of the entry of a map.
fn in_entry(entry: &[u8], encoding: &Encoding, fields: &impl FieldSet, depth: usize) -> Result<Fate, Stop> {
    let (mut key, mut value) = ("", None);
    for part in Fields(entry) {
        match part? {
            (1, wire) => key = wire.text()?,
            (2, wire) => value = Some(wire),
            _ => {}
        }
    }
    let Some(inner) = fields.member(key) else { return Ok(Fate::Stays) };
    if inner.is_whole() {
        return Ok(Fate::ElementRemoved);
    }
    let cut = match value {
        None => None,
        Some(wire) => in_value(encoding, wire, inner, depth)?,
    };
    Ok(cut.map_or(Fate::Stays, |cut| {
        let mut replaced = Vec::with_capacity(entry.len());
        write::text(&mut replaced, 1, key);
        write::bytes(&mut replaced, 2, &cut);
        Fate::Replaced(replaced)
    }))
}
