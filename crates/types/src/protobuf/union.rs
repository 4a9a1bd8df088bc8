//! Reads a value of a CRD's schema that is a schema or something else.

use serde::de::{Deserializer as _, Visitor};

use super::ProtobufError;
use super::deserializer::Notes;
use super::fault::Fault;
use super::fields::{Fields, Wire};
use super::group::{Group, Items};
use super::messages::{Encoding, Union};
use super::value::Single;

/// A value and the field that has it, for errors.
pub(super) struct UnionReader<'de, 'm> {
    pub(super) name: &'static str,
    pub(super) union: Union,
    pub(super) schema: &'static Encoding,
    pub(super) bytes: &'de [u8],
    pub(super) notes: &'m Notes,
}

/// The number of the schema, and of its alternative.
pub(super) fn numbers(union: Union) -> (u32, u32) {
    match union {
        Union::Schemas | Union::Texts => (1, 2),
        Union::Bool => (2, 1),
    }
}

impl<'de> UnionReader<'de, '_> {
    pub(super) fn read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let (number, alternative) = numbers(self.union);
        let (mut schema, mut allows, mut has_items) = (None, false, false);
        for field in Fields(self.bytes) {
            match field? {
                (found, _) if found == number && schema.is_some() => {
                    return Err(ProtobufError::Malformed.into());
                }
                (found, wire) if found == number => schema = Some(wire),
                (found, wire) if found == alternative && self.union == Union::Bool => {
                    allows = wire.integer()? != 0;
                }
                (found, _) if found == alternative => has_items = true,
                _ => self.notes.has_unknown_fields.set(true),
            }
        }
        match (self.union, schema) {
            (Union::Schemas | Union::Texts, _) if has_items => self.items(alternative, visitor),
            (_, Some(wire)) => self.schema(wire).deserialize_any(visitor),
            (Union::Bool, None) => visitor.visit_bool(allows),
            (Union::Schemas | Union::Texts, None) => visitor.visit_unit(),
        }
    }

    fn schema(&self, wire: Wire<'de>) -> Single<'de, '_> {
        Single { name: self.name, encoding: self.schema, wire, notes: self.notes }
    }

    fn items<V: Visitor<'de>>(&self, number: u32, visitor: V) -> Result<V::Value, Fault> {
        const TEXT: &Encoding = &Encoding::Text;
        let encoding = if self.union == Union::Texts { TEXT } else { self.schema };
        let mut fields = Fields(self.bytes);
        // The schema is not used if there are items, and has the lower number.
        while !fields.is_next(number) && fields.take_next()?.is_some() {}
        let mut group = Group { number, first: None, fields: &mut fields };
        visitor.visit_seq(Items::new(self.name, encoding, &mut group, self.notes))
    }
}

/// Whether JSON has null for a value.
pub(super) fn is_null(union: Union, bytes: &[u8]) -> bool {
    union != Union::Bool && bytes.is_empty()
}
