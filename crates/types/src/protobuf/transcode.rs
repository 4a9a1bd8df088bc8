//! Writes serde data that is being read, without a value in between.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

/// Serializes what a deserializer yields. It can be serialized once.
pub(super) struct Transcode<D>(pub(super) Cell<Option<D>>);

impl<'de, D: Deserializer<'de>> Serialize for Transcode<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let deserializer = self.0.take().ok_or_else(|| S::Error::custom("it has been read already"))?;
        deserializer.deserialize_any(ToSerializer(serializer)).map_err(S::Error::custom)
    }
}

struct ToSerializer<S>(S);

fn error<E: de::Error>(error: impl fmt::Display) -> E {
    E::custom(error)
}

impl<'de, S: Serializer> Visitor<'de> for ToSerializer<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(value).map_err(error)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(value).map_err(error)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(value).map_err(error)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(value).map_err(error)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(value).map_err(error)
    }

    fn visit_unit<E: de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(error)
    }

    fn visit_none<E: de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_none().map_err(error)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<S::Ok, A::Error> {
        let mut list = self.0.serialize_seq(items.size_hint()).map_err(error)?;
        while items.next_element_seed(Element(&mut list))?.is_some() {}
        list.end().map_err(error)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<S::Ok, A::Error> {
        let mut map = self.0.serialize_map(entries.size_hint()).map_err(error)?;
        while entries.next_key_seed(Key(&mut map))?.is_some() {
            entries.next_value_seed(Value(&mut map))?;
        }
        map.end().map_err(error)
    }
}

struct Element<'a, S>(&'a mut S);
struct Key<'a, S>(&'a mut S);
struct Value<'a, S>(&'a mut S);

impl<'de, S: SerializeSeq> DeserializeSeed<'de> for Element<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.serialize_element(&Transcode(Cell::new(Some(deserializer)))).map_err(error)
    }
}

impl<'de, S: SerializeMap> DeserializeSeed<'de> for Key<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.serialize_key(&Transcode(Cell::new(Some(deserializer)))).map_err(error)
    }
}

impl<'de, S: SerializeMap> DeserializeSeed<'de> for Value<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.serialize_value(&Transcode(Cell::new(Some(deserializer)))).map_err(error)
    }
}
