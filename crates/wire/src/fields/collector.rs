//! Collecting the values of fields while serde reads an object.

use super::{Found, Node, collect};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::{cell::RefCell, fmt};

/// Reads the values of all paths; everything else is skipped. Keys are not repeated in the encodings that it is for.
#[derive(Clone, Copy)]
pub(crate) struct Collector<'a> {
    pub(super) root: &'a Node,
    pub(super) paths: usize,
}

impl<'de> DeserializeSeed<'de> for Collector<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        let found = RefCell::new(vec![Vec::new(); self.paths]);
        Below { nodes: &[self.root], found: &found }.deserialize(deserializer)?;
        Ok(found.into_inner())
    }
}

/// A value that some paths lead into: one, or two for an element that has both an index and `[*]`.
struct Below<'a> {
    nodes: &'a [&'a Node],
    found: &'a RefCell<Found>,
}

impl<'de> DeserializeSeed<'de> for Below<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.nodes.iter().any(|node| node.is_end()) || self.nodes.len() > 1 {
            let value = Value::deserialize(deserializer)?;
            let mut found = self.found.borrow_mut();
            self.nodes.iter().for_each(|node| collect(node, &value, &mut found));
            return Ok(());
        }
        match self.nodes {
            [] => IgnoredAny::deserialize(deserializer).map(drop),
            [node, ..] => deserializer.deserialize_any(Inside { node, found: self.found }),
        }
    }
}

/// The inside of an object or a list.
struct Inside<'a> {
    node: &'a Node,
    found: &'a RefCell<Found>,
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(child) = members.next_key_seed(Child(self.node))? {
            members.next_value_seed(Below { nodes: child.as_slice(), found: self.found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for index in 0.. {
            let nodes: Vec<&Node> = self.node.elements(index).collect();
            if elements.next_element_seed(Below { nodes: &nodes, found: self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Finds the node of a key.
struct Child<'a>(&'a Node);

impl<'de, 'a> DeserializeSeed<'de> for Child<'a> {
    type Value = Option<&'a Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'a> Visitor<'_> for Child<'a> {
    type Value = Option<&'a Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.named(key.as_bytes()).map(|(_, node)| node))
    }
}
