//! Reads the values of a list or a map, which are fields of one number.

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor, value::BorrowedStrDeserializer};

use super::ProtobufError;
use super::deserializer::Notes;
use super::fault::Fault;
use super::fields::{Fields, Wire};
use super::messages::{Encoding, Field};
use super::value::{Single, ZeroReader};

/// Consecutive fields of one number.
pub(super) struct Group<'de, 'f> {
    pub(super) number: u32,
    pub(super) first: Option<Wire<'de>>,
    /// The fields after `first`.
    pub(super) fields: &'f mut Fields<'de>,
}

impl<'de> Group<'de, '_> {
    #[inline]
    fn take(&mut self) -> Result<Option<Wire<'de>>, Fault> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if !self.fields.is_next(self.number) {
            return Ok(None);
        }
        Ok(self.fields.take_next()?.map(|(_, wire)| wire))
    }

    /// The number of values that are left.
    fn len(&self) -> usize {
        let mut following = self.fields.clone();
        let mut count = usize::from(self.first.is_some());
        while following.is_next(self.number) && following.next().is_some_and(|field| field.is_ok()) {
            count += 1;
        }
        count
    }

    /// Skips what has not been read.
    #[inline]
    pub(super) fn skip_rest(&mut self) -> Result<(), Fault> {
        while self.take()?.is_some() {}
        Ok(())
    }
}

/// Reads a group as a list or a map.
pub(super) struct GroupReader<'de, 'f, 'g, 'm> {
    pub(super) field: &'static Field,
    pub(super) group: &'g mut Group<'de, 'f>,
    pub(super) notes: &'m Notes,
}

impl<'de> de::Deserializer<'de> for GroupReader<'de, '_, '_, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let Self { field, group, notes } = self;
        match &field.encoding {
            Encoding::List(inner) => visitor.visit_seq(Items::new(field.name, inner, group, notes)),
            Encoding::Map(inner) => {
                visitor.visit_map(Entries { field, encoding: inner, group, value: None, notes })
            }
            _ => Err(ProtobufError::Malformed.into()),
        }
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

pub(super) struct Items<'de, 'f, 'g, 'm> {
    name: &'static str,
    encoding: &'static Encoding,
    group: &'g mut Group<'de, 'f>,
    /// Numbers that share one field.
    packed: Fields<'de>,
    notes: &'m Notes,
}

impl<'de, 'f, 'g, 'm> Items<'de, 'f, 'g, 'm> {
    pub(super) fn new(
        name: &'static str,
        encoding: &'static Encoding,
        group: &'g mut Group<'de, 'f>,
        notes: &'m Notes,
    ) -> Self {
        Self { name, encoding, group, packed: Fields(&[]), notes }
    }

    #[inline]
    fn take(&mut self) -> Result<Option<Wire<'de>>, Fault> {
        loop {
            if !self.packed.0.is_empty() {
                return self
                    .packed
                    .varint()
                    .map(|number| Some(Wire::Varint(number)))
                    .ok_or(ProtobufError::Malformed.into());
            }
            match (self.group.take()?, self.encoding) {
                (Some(Wire::Bytes(packed)), Encoding::Int32 | Encoding::Int64 | Encoding::Bool) => {
                    self.packed = Fields(packed)
                }
                (item, _) => return Ok(item),
            }
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'de, '_, '_, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        let Some(wire) = self.take()? else { return Ok(None) };
        seed.deserialize(Single { name: self.name, encoding: self.encoding, wire, notes: self.notes })
            .map(Some)
    }

    /// Counting the elements takes less time than growing a list of large ones.
    fn size_hint(&self) -> Option<usize> {
        let may_share_a_field = matches!(self.encoding, Encoding::Int32 | Encoding::Int64 | Encoding::Bool);
        (!may_share_a_field).then(|| self.group.len())
    }
}

struct Entries<'de, 'f, 'g, 'm> {
    field: &'static Field,
    encoding: &'static Encoding,
    group: &'g mut Group<'de, 'f>,
    /// The value of the key that was given last; a zero value may be absent.
    value: Option<Wire<'de>>,
    notes: &'m Notes,
}

impl<'de> MapAccess<'de> for Entries<'de, '_, '_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Self::Error> {
        let Some(entry) = self.group.take()? else { return Ok(None) };
        let mut key = "";
        self.value = None;
        for part in Fields(entry.bytes()?) {
            match part? {
                (1, wire) => key = wire.text()?,
                (2, wire) => self.value = Some(wire),
                _ => {}
            }
        }
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Self::Error> {
        let (field, encoding, notes) = (self.field, self.encoding, self.notes);
        match (self.value.take(), encoding) {
            // A list cannot be the value of a map, so it is wrapped in a message, as its field number 1.
            (value, Encoding::List(inner)) => {
                let mut fields = Fields(value.map_or(Ok(&[][..]), Wire::bytes)?);
                let mut group = Group { number: 1, first: None, fields: &mut fields };
                seed.deserialize(ListReader(Items::new(field.name, inner, &mut group, notes)))
            }
            (Some(wire), _) => seed.deserialize(Single { name: field.name, encoding, wire, notes }),
            (None, _) => seed.deserialize(ZeroReader { encoding, notes }),
        }
    }
}

/// Reads a list that is the value of a map.
struct ListReader<'de, 'f, 'g, 'm>(Items<'de, 'f, 'g, 'm>);

impl<'de> de::Deserializer<'de> for ListReader<'de, '_, '_, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_seq(self.0)
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
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
