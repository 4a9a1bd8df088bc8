//! Reads a message as serde data: the same data as from the JSON that a server would have sent.

use std::cell::Cell;

use serde::de::{
    self, DeserializeSeed, MapAccess, Visitor, value::BorrowedStrDeserializer, value::UnitDeserializer,
};

use super::fault::Fault;
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
    fn nested<T>(&self, read: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            return Err(ProtobufError::TooDeep.into());
        }
        self.depth.set(depth + 1);
        let result = read();
        self.depth.set(depth);
        result
    }

    #[cold]
    fn unordered(&self) -> Fault {
        self.is_unordered.set(true);
        ProtobufError::Malformed.into()
    }
}

impl<'de> de::Deserializer<'de> for MessageReader<'de, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let mut map = MessageMap {
            type_meta: self.type_meta.map_or([None; 2], |(kind, api_version)| {
                [Some(("kind", kind)), Some(("apiVersion", api_version))]
            }),
            level: Level::new(self.message, self.bytes),
            outer: [const { None }; 2],
            pending: Pending::Nothing,
            notes: self.notes,
        };
        // By reference: visitors pass it on, and it is large.
        self.notes.nested(|| visitor.visit_map(&mut map))
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
    fields: Fields<'de>,
    /// The bits of [`Slot::written`] that have been read.
    seen: u64,
    /// The number that was read last.
    last: u32,
}

impl<'de> Level<'de> {
    #[inline]
    fn new(message: &'static Message, bytes: &'de [u8]) -> Self {
        Self { message, fields: Fields(bytes), seen: 0, last: 0 }
    }

    /// The next slot to read and its first value: those on the wire, then those that JSON has anyway.
    #[inline]
    fn next_slot(&mut self, notes: &Notes) -> Result<Option<(&'static Slot, Option<Wire<'de>>)>, Fault> {
        let slots = self.message.slots();
        while let Some((number, wire)) = self.fields.take_next()? {
            let Some(slot) = self.message.position(number).and_then(|position| slots.get(position)) else {
                notes.has_unknown_fields.set(true);
                continue;
            };
            if number <= self.last {
                return Err(notes.unordered());
            }
            self.last = number;
            self.seen |= slot.written;
            return Ok(Some((slot, Some(wire))));
        }
        // Bits that no field has stay clear, so the first clear bit is a field, or the end.
        let bit = self.seen.trailing_ones();
        let Some(&position) = self.message.written().get(bit as usize) else { return Ok(None) };
        self.seen |= 1 << bit;
        Ok(Some((&slots[usize::from(position)], None)))
    }
}

struct MessageMap<'de, 'm> {
    /// `kind` and `apiVersion`, as far as they are still to be read.
    type_meta: [Option<(&'static str, &'de str)>; 2],
    level: Level<'de>,
    /// The messages around the one that is being read, whose fields follow. A test checks that there are at most two.
    outer: [Option<Level<'de>>; 2],
    pending: Pending<'de>,
    notes: &'m Notes,
}

/// The value of the key that was given last.
enum Pending<'de> {
    /// None, or it has been read.
    Nothing,
    TypeMeta(&'de str),
    /// A field that is not on the wire and that JSON has anyway.
    Absent(&'static Field),
    Null,
    Single(&'static Field, Wire<'de>),
    /// All values of a list or a map, of which this is the first.
    Group(&'static Field, Wire<'de>),
}

impl<'de> MessageMap<'de, '_> {
    /// Goes to the next field that JSON has: its name, and its value in `pending`.
    fn advance(&mut self) -> Result<Option<&'static str>, Fault> {
        loop {
            let Some((slot, first)) = self.level.next_slot(self.notes)? else {
                let [outer, outermost] = &mut self.outer;
                let Some(outer) = std::mem::replace(outer, outermost.take()) else { return Ok(None) };
                self.level = outer;
                continue;
            };
            match &slot.content {
                Content::Inline(message) => self.enter(slot.number, message, first)?,
                Content::Field(field) => {
                    if self.field(slot.number, field, first)? {
                        return Ok(Some(field.name));
                    }
                }
            }
        }
    }

    #[cold]
    fn next_type_meta(&mut self) -> Option<&'static str> {
        let (name, value) = self.type_meta.iter_mut().find_map(Option::take)?;
        self.pending = Pending::TypeMeta(value);
        Some(name)
    }

    fn enter(
        &mut self,
        number: u32,
        message: &'static Message,
        wire: Option<Wire<'de>>,
    ) -> Result<(), Fault> {
        if self.level.fields.is_next(number) {
            return Err(self.notes.unordered());
        }
        let bytes = wire.map_or(Ok(&[][..]), Wire::bytes)?;
        let outer = std::mem::replace(&mut self.level, Level::new(message, bytes));
        self.outer = [Some(outer), self.outer[0].take()];
        Ok(())
    }

    /// Puts the value of a field into `pending`, unless JSON does not have it.
    #[inline]
    fn field(&mut self, number: u32, field: &'static Field, first: Option<Wire<'de>>) -> Result<bool, Fault> {
        let Some(first) = first else {
            self.pending = match field.zero {
                Zero::Written => Pending::Absent(field),
                Zero::Null => Pending::Null,
                Zero::Omitted | Zero::Distinct => return Ok(false),
            };
            return Ok(true);
        };
        if matches!(field.encoding, Encoding::List(_) | Encoding::Map(_)) {
            self.pending = Pending::Group(field, first);
            return Ok(true);
        }
        if self.level.fields.is_next(number) {
            return Err(self.notes.unordered());
        }
        let is_omitted = match field.zero {
            Zero::Written | Zero::Null => false,
            Zero::Distinct => value::is_null(&field.encoding, first)?,
            Zero::Omitted => {
                value::is_null(&field.encoding, first)? || value::is_zero(&field.encoding, first)?
            }
        };
        if !is_omitted {
            self.pending = Pending::Single(field, first);
        }
        Ok(!is_omitted)
    }
}

impl<'de> MapAccess<'de> for &mut MessageMap<'de, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let name = match self.type_meta {
            [_, None] => self.advance()?,
            [_, Some(_)] => self.next_type_meta(),
        };
        match name {
            None => Ok(None),
            Some(name) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        let notes = self.notes;
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Single(Field { name, encoding, .. }, wire) => {
                seed.deserialize(Single { name, encoding, wire, notes })
            }
            Pending::Group(field, first) => {
                let Level { fields, last, .. } = &mut self.level;
                let mut group = Group { number: *last, first: Some(first), fields };
                let read = seed.deserialize(GroupReader { field, group: &mut group, notes })?;
                group.skip_rest()?;
                Ok(read)
            }
            Pending::Absent(field) => seed.deserialize(ZeroReader { encoding: &field.encoding, notes }),
            Pending::Null => seed.deserialize(UnitDeserializer::new()),
            Pending::TypeMeta(text) => seed.deserialize(BorrowedStrDeserializer::new(text)),
            Pending::Nothing => Err(de::Error::custom("a value without a key")),
        }
    }
}
