//! Encodes JSON as protobuf while serde reads it, without a tree of values in between.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::messages::{Encoding, Field, Message, messages};
use super::{ProtobufError, encode_value, write};

/// Encodes an object. An object with repeated keys, which no server writes, is encoded through a tree: of these the
/// last one counts.
pub(super) fn encode(out: &mut Vec<u8>, message: &'static Message, json: &[u8]) -> Result<(), ProtobufError> {
    let start = out.len();
    let failure = Failure::default();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = MessageSeed { message, out: &mut *out, failure: &failure }
        .deserialize(&mut reader)
        .and_then(|()| reader.end());
    match (read, failure.into_inner()) {
        (Ok(()), None) => Ok(()),
        (_, Some(Reason::Error(error))) => Err(error),
        (_, Some(Reason::RepeatedKey)) => {
            out.truncate(start);
            let object = serde_json::from_slice(json).map_err(|_| ProtobufError::Malformed)?;
            encode_value::message(out, message, &object)
        }
        (Err(_), None) => Err(ProtobufError::Malformed),
    }
}

/// Why encoding ended, because serde carries only texts.
#[derive(Default)]
struct Failure(RefCell<Option<Reason>>);

enum Reason {
    Error(ProtobufError),
    RepeatedKey,
}

impl Failure {
    fn into_inner(self) -> Option<Reason> {
        self.0.into_inner()
    }

    fn set<E: de::Error>(&self, reason: Reason) -> E {
        self.0.borrow_mut().get_or_insert(reason);
        E::custom("not a message")
    }

    fn mismatch<E: de::Error>(&self, field: &str) -> E {
        self.set(Reason::Error(ProtobufError::Mismatch { field: field.to_owned() }))
    }
}

/// The fields of an object, appended to `out`.
struct MessageSeed<'a> {
    message: &'static Message,
    out: &'a mut Vec<u8>,
    failure: &'a Failure,
}

impl<'de> DeserializeSeed<'de> for MessageSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MessageSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { message, out, failure } = self;
        let mut fields = Parts::new(out.len());
        while let Some(found) = members.next_key_seed(FieldSeed(message))? {
            let Some((numbers, field)) = found else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            let start = out.len();
            let number = numbers.last().copied().unwrap_or_default();
            members.next_value_seed(ValueSeed { field, encoding: &field.encoding, number, out, failure })?;
            if !fields.push(numbers, start..out.len()) {
                return Err(failure.set(Reason::RepeatedKey));
            }
        }
        fields.arrange(out);
        Ok(())
    }
}

/// Finds the field of a key.
struct FieldSeed(&'static Message);

type NamedField = (&'static [u32], &'static Field);

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = Option<NamedField>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed {
    type Value = Option<NamedField>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.named_field(name))
    }
}

/// The encoded fields of a message in the order of the JSON.
struct Parts {
    start: usize,
    /// The numbers on the way to each field: several for one in a nested message whose fields JSON inlines.
    parts: Vec<(&'static [u32], Range<usize>)>,
    is_ordered: bool,
}

impl Parts {
    fn new(start: usize) -> Self {
        Self { start, parts: Vec::new(), is_ordered: true }
    }

    /// Adds a field. Returns whether it is not there yet.
    fn push(&mut self, numbers: &'static [u32], range: Range<usize>) -> bool {
        let is_next = self.parts.last().is_none_or(|(last, _)| *last < numbers);
        let is_new = is_next || self.parts.iter().all(|(known, _)| *known != numbers);
        self.is_ordered &= is_next && numbers.len() == 1;
        self.parts.push((numbers, range));
        is_new
    }

    /// Puts the fields in the order of their numbers, and those of nested messages into these.
    fn arrange(mut self, out: &mut Vec<u8>) {
        if self.is_ordered {
            return;
        }
        self.parts.sort_by_key(|(numbers, _)| *numbers);
        self.parts.retain(|(_, range)| !range.is_empty());
        let mut arranged = Vec::with_capacity(out.len().saturating_sub(self.start));
        append(&mut arranged, &self.parts, 0, out);
        out.truncate(self.start);
        out.extend_from_slice(&arranged);
    }
}

/// Appends fields that are in order; the first `depth` numbers of all are the same.
fn append(arranged: &mut Vec<u8>, parts: &[(&'static [u32], Range<usize>)], depth: usize, encoded: &[u8]) {
    for group in parts.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
        let (numbers, range) = &group[0];
        if numbers.len() > depth + 1 {
            let start = write::open(arranged, numbers[depth]);
            append(arranged, group, depth + 1, encoded);
            write::close(arranged, start);
        } else {
            arranged.extend_from_slice(&encoded[range.clone()]);
        }
    }
}

/// One value of a field, appended to `out` with its number. Nothing is appended for null.
struct ValueSeed<'a> {
    field: &'static Field,
    encoding: &'static Encoding,
    number: u32,
    out: &'a mut Vec<u8>,
    failure: &'a Failure,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.encoding {
            Encoding::Text | Encoding::Message(_) | Encoding::List(_) | Encoding::Map(_) => {
                deserializer.deserialize_any(self)
            }
            encoding => {
                let value = Value::deserialize(deserializer)?;
                encode_value::value(self.out, self.number, self.field, encoding, &value)
                    .map_err(|error| self.failure.set(Reason::Error(error)))
            }
        }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {}", self.field.name)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        match self.encoding {
            Encoding::Text => write::text(self.out, self.number, text),
            _ => return Err(self.failure.mismatch(self.field.name)),
        }
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Err(self.failure.mismatch(self.field.name))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Err(self.failure.mismatch(self.field.name))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Err(self.failure.mismatch(self.field.name))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Err(self.failure.mismatch(self.field.name))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { field, encoding: Encoding::List(encoding), number, out, failure } = self else {
            return Err(self.failure.mismatch(self.field.name));
        };
        while items
            .next_element_seed(ValueSeed { field, encoding, number, out: &mut *out, failure })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        let Self { field, encoding, number, out, failure } = self;
        match encoding {
            Encoding::Message(id) => {
                let start = write::open(out, number);
                MessageSeed { message: messages().get(*id), out: &mut *out, failure }.visit_map(entries)?;
                write::close(out, start);
                Ok(())
            }
            Encoding::Map(inner) => map(entries, field, inner, number, out, failure),
            _ => Err(failure.mismatch(field.name)),
        }
    }
}

/// Encodes the entries of a map, in the order of their keys.
fn map<'de, A: MapAccess<'de>>(
    mut entries: A,
    field: &'static Field,
    encoding: &'static Encoding,
    number: u32,
    out: &mut Vec<u8>,
    failure: &Failure,
) -> Result<(), A::Error> {
    let start = out.len();
    let mut written: Vec<(String, Range<usize>)> = Vec::new();
    while let Some(key) = entries.next_key::<String>()? {
        let at = out.len();
        let entry = write::open(out, number);
        write::text(out, 1, &key);
        // A list cannot be the value of a map, so it is wrapped in a message.
        let wrapper = matches!(encoding, Encoding::List(_)).then(|| write::open(out, 2));
        let number = if wrapper.is_some() { 1 } else { 2 };
        entries.next_value_seed(ValueSeed { field, encoding, number, out: &mut *out, failure })?;
        if let Some(wrapper) = wrapper {
            write::close(out, wrapper);
        }
        write::close(out, entry);
        written.push((key, at..out.len()));
    }
    if written.is_sorted_by(|a, b| a.0 < b.0) {
        return Ok(());
    }
    written.sort_by(|a, b| a.0.cmp(&b.0));
    if written.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(failure.set(Reason::RepeatedKey));
    }
    let mut arranged = Vec::with_capacity(out.len().saturating_sub(start));
    written.iter().for_each(|(_, range)| arranged.extend_from_slice(&out[range.clone()]));
    out.truncate(start);
    out.extend_from_slice(&arranged);
    Ok(())
}
