//! Reads a message as serde data: the same data as from the JSON that a server would have sent.

use std::cell::Cell;

use serde::de::{
    self, DeserializeSeed, MapAccess, Visitor, value::BorrowedStrDeserializer, value::UnitDeserializer,
};

use super::fields::{Fields, Wire};
use super::group::{Group, GroupReader};
use super::messages::{Content, Encoding, Field, Message, Slot};
use super::value::{self, Single, ZeroReader};
use super::{MAX_DEPTH, ProtobufError};
use crate::Zero;

/// Reads a message with `kind` and `apiVersion` in front, or a message inside another one without them.
pub(super) struct MessageReader<'de, 'm> {
    pub(super) message: &'static Message,
    pub(super) bytes: &'de [u8],
    /// `kind` and `apiVersion`.
    pub(super) type_meta: Option<(&'de str, &'de str)>,
    pub(super) notes: &'m Notes,
}

/// Notes on the message that is read.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// A field whose number is not in the table has been skipped.
    pub(super) has_unknown_fields: Cell<bool>,
    /// A field came after one with a higher number, or a second time. That is legal, but no server writes so: the
    /// message is put in order and read again.
    pub(super) is_unordered: Cell<bool>,
    /// How many messages are around the one that is read.
    depth: Cell<usize>,
}

impl Notes {
    /// Reads a message inside the current one. Only schemas of CRDs contain themselves, to any depth.
    fn nested<T>(&self, read: impl FnOnce() -> Result<T, ProtobufError>) -> Result<T, ProtobufError> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        self.depth.set(depth + 1);
        let result = read();
        self.depth.set(depth);
        result
    }

    fn unordered(&self) -> ProtobufError {
        self.is_unordered.set(true);
        ProtobufError::Malformed
    }
}

impl<'de> de::Deserializer<'de> for MessageReader<'de, '_> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let map = MessageMap {
            type_meta: self
                .type_meta
                .map(|(kind, api_version)| [Some(("kind", kind)), Some(("apiVersion", api_version))]),
            level: Level::new(self.message, self.bytes)?,
            outer: Vec::new(),
            pending: None,
            notes: self.notes,
        };
        self.notes.nested(|| visitor.visit_map(map))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
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
        unit unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// One message, or a message whose fields JSON has in the object around it.
struct Level<'de> {
    message: &'static Message,
    /// The positions of slots that have been read, one bit each.
    seen: u128,
    /// The number of entries of [`Message::written`] that have been looked at after the last field.
    written: usize,
    fields: Fields<'de>,
    /// The first of the fields that follow.
    next: Option<(u32, Wire<'de>)>,
}

impl<'de> Level<'de> {
    fn new(message: &'static Message, bytes: &'de [u8]) -> Result<Self, ProtobufError> {
        let mut level = Self { message, seen: 0, written: 0, fields: Fields(bytes), next: None };
        level.advance()?;
        Ok(level)
    }

    #[inline]
    fn advance(&mut self) -> Result<(), ProtobufError> {
        self.next = self.fields.take_next()?;
        Ok(())
    }

    /// The next slot to read and its first value: those on the wire, then those that JSON has all the same.
    #[inline]
    fn next_slot(
        &mut self,
        notes: &Notes,
    ) -> Result<Option<(&'static Slot, Option<Wire<'de>>)>, ProtobufError> {
        let slots = self.message.slots();
        while let Some((number, wire)) = self.next {
            let position = self.message.position(number);
            self.advance()?;
            let Some(position) = position else {
                notes.has_unknown_fields.set(true);
                continue;
            };
            let bit = 1 << position;
            if self.seen >= bit {
                return Err(notes.unordered());
            }
            self.seen |= bit;
            return Ok(Some((&slots[position], Some(wire))));
        }
        while let Some(&position) = self.message.written().get(self.written) {
            self.written += 1;
            if self.seen >> position & 1 == 0 {
                return Ok(Some((&slots[usize::from(position)], None)));
            }
        }
        Ok(None)
    }

    fn is_next(&self, number: u32) -> bool {
        self.next.is_some_and(|(next, _)| next == number)
    }
}

struct MessageMap<'de, 'm> {
    type_meta: Option<[Option<(&'static str, &'de str)>; 2]>,
    level: Level<'de>,
    /// The messages around the one that is being read, whose fields follow.
    outer: Vec<Level<'de>>,
    pending: Option<Pending<'de>>,
    notes: &'m Notes,
}

/// The value of the key that was given last.
enum Pending<'de> {
    TypeMeta(&'de str),
    /// A field that is not on the wire and that JSON has all the same.
    Absent(&'static Field),
    Null,
    Single(&'static Field, Wire<'de>),
    /// All values of a list or a map, of which this is the first.
    Group {
        number: u32,
        field: &'static Field,
        first: Wire<'de>,
    },
}

impl<'de> MessageMap<'de, '_> {
    /// Goes to the next field that JSON has: its name, and its value in `pending`.
    fn advance(&mut self) -> Result<Option<&'static str>, ProtobufError> {
        if let Some(left) = &mut self.type_meta {
            match left.iter_mut().find_map(Option::take) {
                Some((name, value)) => {
                    self.pending = Some(Pending::TypeMeta(value));
                    return Ok(Some(name));
                }
                None => self.type_meta = None,
            }
        }
        loop {
            let Some((slot, first)) = self.level.next_slot(self.notes)? else {
                let Some(outer) = self.outer.pop() else { return Ok(None) };
                self.level = outer;
                continue;
            };
            match &slot.content {
                Content::Inline(message) => self.enter(slot.number, message, first)?,
                Content::Field(field) => {
                    self.pending = self.field(slot.number, field, first)?;
                    if self.pending.is_some() {
                        return Ok(Some(field.name));
                    }
                }
            }
        }
    }

    fn enter(
        &mut self,
        number: u32,
        message: &'static Message,
        wire: Option<Wire<'de>>,
    ) -> Result<(), ProtobufError> {
        if self.level.is_next(number) {
            return Err(self.notes.unordered());
        }
        let bytes = wire.map_or(Ok(&[][..]), Wire::bytes)?;
        let inner = Level::new(message, bytes)?;
        self.outer.push(std::mem::replace(&mut self.level, inner));
        Ok(())
    }

    /// The value of a field; `None` if JSON does not have it.
    #[inline]
    fn field(
        &mut self,
        number: u32,
        field: &'static Field,
        first: Option<Wire<'de>>,
    ) -> Result<Option<Pending<'de>>, ProtobufError> {
        let Some(first) = first else {
            return Ok(match field.zero {
                Zero::Written => Some(Pending::Absent(field)),
                Zero::Null => Some(Pending::Null),
                Zero::Omitted | Zero::Distinct => None,
            });
        };
        if matches!(field.encoding, Encoding::List(_) | Encoding::Map(_)) {
            return Ok(Some(Pending::Group { number, field, first }));
        }
        if self.level.is_next(number) {
            return Err(self.notes.unordered());
        }
        let may_be_null = matches!(field.zero, Zero::Written | Zero::Null);
        let omitted = value::is_null(&field.encoding, first)? && !may_be_null
            || field.zero == Zero::Omitted && value::is_zero(&field.encoding, first)?;
        Ok((!omitted).then_some(Pending::Single(field, first)))
    }
}

impl<'de> MapAccess<'de> for MessageMap<'de, '_> {
    type Error = ProtobufError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let Some(name) = self.advance()? else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        match self.pending.take() {
            None => Err(de::Error::custom("a value without a key")),
            Some(Pending::TypeMeta(text)) => seed.deserialize(BorrowedStrDeserializer::new(text)),
            Some(Pending::Null) => seed.deserialize(UnitDeserializer::new()),
            Some(Pending::Absent(field)) => {
                seed.deserialize(ZeroReader { encoding: &field.encoding, notes: self.notes })
            }
            Some(Pending::Single(field, wire)) => seed.deserialize(Single {
                name: field.name,
                encoding: &field.encoding,
                wire,
                notes: self.notes,
            }),
            Some(Pending::Group { number, field, first }) => {
                let mut group = Group {
                    number,
                    first: Some(first),
                    fields: &mut self.level.fields,
                    next: self.level.next,
                };
                let read = seed.deserialize(GroupReader { field, group: &mut group, notes: self.notes })?;
                self.level.next = group.rest()?;
                Ok(read)
            }
        }
    }
}
