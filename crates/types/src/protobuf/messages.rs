//! Field numbers: parses `numbers.txt`, whose notation is explained at its top, and joins it with the types of the schema.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Merge, Shape, Zero, types};

/// The fields of a type by number.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// In the order of their numbers.
    slots: Vec<Slot>,
}

/// The content of one field number.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Field(Field),
    /// A nested message whose fields are inlined in JSON.
    Inline(Message),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: &'static Shape,
    /// The meaning of a zero value. Go encodes every field that is not a pointer, even if it is zero.
    pub(super) zero: Zero,
}

/// All messages.
#[derive(Debug)]
pub(super) struct Messages {
    by_name: HashMap<&'static str, Message>,
    partial_metadata: Message,
}

impl Messages {
    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.by_name.get(name)
    }

    /// Returns the message of a kind. `DeleteOptions` exist in every group.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (group, kind) {
            (_, "DeleteOptions") => self.named("meta.v1.DeleteOptions"),
            ("meta.k8s.io", "PartialObjectMetadata") => Some(&self.partial_metadata),
            _ => types().kind(group, version, kind).and_then(|t| self.named(t.name)),
        }
    }
}

impl Message {
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn slot(&self, number: u32) -> Option<&Content> {
        let at = self.slots.binary_search_by_key(&number, |slot| slot.number).ok()?;
        Some(&self.slots[at].content)
    }

    fn insert(&mut self, numbers: &[u32], field: Field) {
        let [number, inner @ ..] = numbers else { return };
        let at = self.slots.partition_point(|slot| slot.number < *number);
        if inner.is_empty() {
            self.slots.insert(at, Slot { number: *number, content: Content::Field(field) });
            return;
        }
        if self.slots.get(at).is_none_or(|slot| slot.number != *number) {
            let content = Content::Inline(Message::default());
            self.slots.insert(at, Slot { number: *number, content });
        }
        if let Content::Inline(message) = &mut self.slots[at].content {
            message.insert(inner, field);
        }
    }
}

/// Returns the messages, which are parsed on first use.
pub(super) fn messages() -> &'static Messages {
    static MESSAGES: LazyLock<Messages> = LazyLock::new(|| parse(include_str!("numbers.txt")));
    &MESSAGES
}

fn parse(text: &'static str) -> Messages {
    static OBJECT_META: LazyLock<Shape> =
        LazyLock::new(|| Shape::Struct("meta.v1.ObjectMeta", Merge::default()));
    let mut by_name: HashMap<&'static str, Message> = HashMap::new();
    let mut owner = "";
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let Some(field) = line.strip_prefix(' ') else {
            owner = line;
            by_name.insert(owner, Message::default());
            continue;
        };
        let Some((numbers, field)) = parse_field(owner, field) else { continue };
        by_name.entry(owner).or_default().insert(&numbers, field);
    }
    let mut partial_metadata = Message::default();
    let metadata = Field { name: "metadata", shape: &OBJECT_META, zero: Zero::Omitted };
    partial_metadata.insert(&[1], metadata);
    Messages { by_name, partial_metadata }
}

/// Returns `None` for a field that is not in the schema; a test checks that there is none.
fn parse_field(owner: &str, line: &'static str) -> Option<(Vec<u32>, Field)> {
    let (name, numbers) = line.split_once(' ')?;
    let numbers = numbers.trim_end_matches(['?', '-']);
    let numbers: Option<Vec<u32>> = numbers.split('.').map(|number| number.parse().ok()).collect();
    let known = types().named(owner)?.field(name)?;
    Some((numbers?, Field { name, shape: &known.shape, zero: known.zero }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &Message) -> usize {
        let of = |slot: &Slot| match &slot.content {
            Content::Field(_) => 1,
            Content::Inline(message) => fields(message),
        };
        message.slots.iter().map(of).sum()
    }

    #[test]
    fn every_line_of_the_table_is_parsed() {
        let lines = include_str!("numbers.txt").lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(messages().by_name.values().map(fields).sum::<usize>(), lines);
    }

    /// Decoding therefore needs no limit on the depth of messages.
    #[test]
    fn no_message_contains_itself() {
        fn visit<'a>(name: &'a str, path: &mut Vec<&'a str>) {
            assert!(!path.contains(&name), "{path:?} contains {name}");
            path.push(name);
            walk(messages().named(name).unwrap(), path);
            path.pop();
        }
        fn walk(message: &'static Message, path: &mut Vec<&str>) {
            for slot in &message.slots {
                match &slot.content {
                    Content::Inline(message) => walk(message, path),
                    Content::Field(field) => {
                        let mut shape = field.shape;
                        while let Shape::List(inner, ..) | Shape::Map(inner) = shape {
                            shape = inner;
                        }
                        if let Shape::Struct(name, _) = shape {
                            visit(name, path);
                        }
                    }
                }
            }
        }
        for name in messages().by_name.keys() {
            visit(name, &mut Vec::new());
        }
    }
}
