//! The fields of messages by number: parses `numbers.txt`, whose notation is explained at its top, and joins it with the table of
//! types.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Shape, Zero, types};

/// The fields of a type by number.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// In the order of their numbers.
    slots: Vec<Slot>,
    /// The position in `slots` of each number up to the largest, plus one; 0 for numbers without a field.
    positions: Vec<u8>,
    /// The content of the field of each number up to the largest: every field of every message that arrives is looked up.
    inside: Vec<Inside>,
    /// The positions of fields that JSON has even if the wire has not, and of nested messages that have such fields.
    written: Vec<u8>,
    /// The numbers on the way to each field, by the name of the field in JSON; also of fields in nested messages whose
    /// fields are inlined in JSON.
    by_name: HashMap<&'static str, Box<[u32]>>,
}

/// Which messages are inside a field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inside {
    /// No field has this number.
    Unknown,
    Nothing,
    /// One, or one in each element of a list.
    Message(MessageId),
    /// Some, in another form: its [`Content`] says how.
    Other,
}

/// The content of one field number.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u32,
    /// The bit of this slot among those of [`Message::written`]; 0 if it is not one of them.
    pub(super) written: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Field(Field),
    /// A nested message whose fields are inlined in JSON.
    Inline(Box<Message>),
}

#[derive(Debug)]
pub(super) struct Field {
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) encoding: Encoding,
    /// The meaning of a zero value. Go encodes every field that is not a pointer, even if it is zero.
    pub(super) zero: Zero,
}

/// The type of a value, with everything looked up that decoding needs.
#[derive(Debug)]
pub(super) enum Encoding {
    Text,
    Bytes,
    Int32,
    Int64,
    Bool,
    Double,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON in a message.
    Json,
    Message(MessageId),
    /// A schema of a CRD, which is an `Encoding::Message`, or something else.
    Union(Union, Box<Encoding>),
    List(Box<Encoding>),
    /// A list of these in a message of its own, so that an empty list differs from an absent one.
    Wrapped(Box<Encoding>),
    Map(Box<Encoding>),
}

/// The alternative to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Union {
    /// A list of schemas.
    Schemas,
    /// True or false.
    Bool,
    /// A list of texts.
    Texts,
}

/// The place of a message in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageId(usize);

/// All messages.
#[derive(Debug)]
pub(super) struct Messages {
    all: Vec<Message>,
    by_name: HashMap<&'static str, MessageId>,
}

/// A message that is not in the table of types: the metadata of any object.
const PARTIAL_METADATA: &str = "meta.v1.PartialObjectMetadata";

impl Messages {
    pub(super) fn named(&self, name: &str) -> Option<&Message> {
        self.by_name.get(name).map(|id| self.get(*id))
    }

    #[inline]
    pub(super) fn get(&self, id: MessageId) -> &Message {
        &self.all[id.0]
    }

    /// Returns the message of a kind. `DeleteOptions` exist in every group.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (group, kind) {
            (_, "DeleteOptions") => self.named("meta.v1.DeleteOptions"),
            ("meta.k8s.io", "PartialObjectMetadata") => self.named(PARTIAL_METADATA),
            _ => types().kind(group, version, kind).and_then(|t| self.named(t.name)),
        }
    }
}

impl Message {
    #[inline]
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn slot(&self, number: u32) -> Option<&Content> {
        Some(&self.slots[self.position(number)?].content)
    }

    /// The position of a number in [`slots`](Self::slots).
    #[inline]
    pub(super) fn position(&self, number: u32) -> Option<usize> {
        let position = *self.positions.get(usize::try_from(number).ok()?)?;
        usize::from(position).checked_sub(1)
    }

    /// Which messages are inside the field of a number.
    pub(super) fn inside(&self, number: u32) -> Inside {
        self.inside.get(number as usize).copied().unwrap_or(Inside::Unknown)
    }

    /// The positions of fields that JSON has even if the wire has not, and of nested messages that have such fields.
    #[inline]
    pub(super) fn written(&self) -> &[u8] {
        &self.written
    }

    /// The field with a name in JSON, and the numbers on the way to it: several if it is in a nested message whose fields
    /// are inlined.
    pub(super) fn named_field(&'static self, name: &str) -> Option<(&'static [u32], &'static Field)> {
        let numbers = self.by_name.get(name)?;
        let mut message = self;
        for number in numbers.iter() {
            match message.slot(*number)? {
                Content::Field(field) => return Some((numbers, field)),
                Content::Inline(inner) => message = inner,
            }
        }
        None
    }

    fn insert(&mut self, numbers: &[u32], field: Field) {
        self.by_name.insert(field.name, numbers.into());
        let [number, inner @ ..] = numbers else { return };
        let at = self.slots.partition_point(|slot| slot.number < *number);
        if inner.is_empty() {
            self.slots.insert(at, Slot { number: *number, written: 0, content: Content::Field(field) });
        } else {
            if self.slots.get(at).is_none_or(|slot| slot.number != *number) {
                let content = Content::Inline(Box::default());
                self.slots.insert(at, Slot { number: *number, written: 0, content });
            }
            if let Content::Inline(message) = &mut self.slots[at].content {
                message.insert(inner, field);
            }
        }
        self.positions.clear();
        for (position, slot) in (1..).zip(&self.slots) {
            self.positions.resize(slot.number as usize, 0);
            self.positions.push(position);
        }
        self.inside.clear();
        for slot in &self.slots {
            self.inside.resize(slot.number as usize, Inside::Unknown);
            self.inside.push(slot.content.inside());
        }
        let is_written = |slot: &Slot| match &slot.content {
            Content::Field(field) => matches!(field.zero, Zero::Written | Zero::Null),
            Content::Inline(message) => !message.written.is_empty(),
        };
        self.written =
            (0..).zip(&self.slots).filter(|(_, slot)| is_written(slot)).map(|(at, _)| at).collect();
        for (bit, position) in self.written.iter().enumerate() {
            self.slots[usize::from(*position)].written = 1 << bit;
        }
    }
}

/// Returns the messages, which are parsed on first use.
pub(super) fn messages() -> &'static Messages {
    static MESSAGES: LazyLock<Messages> = LazyLock::new(|| parse(include_str!("numbers.txt")));
    &MESSAGES
}

fn parse(text: &'static str) -> Messages {
    let lines = || text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let names = lines().filter(|line| !line.starts_with(' ')).chain([PARTIAL_METADATA]);
    let by_name: HashMap<&'static str, MessageId> = names.zip((0..).map(MessageId)).collect();
    let mut all: Vec<Message> = by_name.iter().map(|_| Message::default()).collect();
    let mut owner = "";
    for line in lines() {
        match line.strip_prefix(' ') {
            None => owner = line,
            Some(field) => {
                if let Some((numbers, field)) = parse_field(owner, field, &by_name) {
                    all[by_name[owner].0].insert(&numbers, field);
                }
            }
        }
    }
    if let Some(id) = by_name.get("meta.v1.ObjectMeta") {
        let metadata = Field { name: "metadata", encoding: Encoding::Message(*id), zero: Zero::Written };
        all[by_name[PARTIAL_METADATA].0].insert(&[1], metadata);
    }
    Messages { all, by_name }
}

/// Returns `None` for a field that is not in the table of types; a test checks that there is none.
fn parse_field(
    owner: &str,
    line: &'static str,
    by_name: &HashMap<&'static str, MessageId>,
) -> Option<(Vec<u32>, Field)> {
    let (name, numbers) = line.split_once(' ')?;
    let (numbers, union) = numbers.split_once(' ').map_or((numbers, None), |(n, union)| (n, Some(union)));
    let numbers: Option<Vec<u32>> = numbers.split('.').map(|number| number.parse().ok()).collect();
    let known = types().named(owner)?.field(name)?;
    let encoding = match union {
        None => Encoding::of(&known.shape, by_name)?,
        Some("wrapped") => match Encoding::of(&known.shape, by_name)? {
            Encoding::List(inner) => Encoding::Wrapped(inner),
            _ => return None,
        },
        Some(union) => {
            let union = Encoding::union(union, by_name)?;
            if matches!(known.shape, Shape::Map(_)) { Encoding::Map(Box::new(union)) } else { union }
        }
    };
    Some((numbers?, Field { name, encoding, zero: known.zero }))
}

impl Content {
    fn inside(&self) -> Inside {
        match self {
            Self::Inline(_) => Inside::Other,
            Self::Field(field) => field.encoding.inside(),
        }
    }
}

impl Encoding {
    fn inside(&self) -> Inside {
        match self {
            Self::Message(id) => Inside::Message(*id),
            Self::List(inner) => inner.inside(),
            Self::Map(inner) => match inner.inside() {
                Inside::Nothing => Inside::Nothing,
                _ => Inside::Other,
            },
            Self::Union(..) => Inside::Other,
            _ => Inside::Nothing,
        }
    }

    fn of(shape: &Shape, by_name: &HashMap<&'static str, MessageId>) -> Option<Self> {
        Some(match shape {
            Shape::String | Shape::Enum(_) => Self::Text,
            Shape::Bytes => Self::Bytes,
            Shape::Int32 => Self::Int32,
            Shape::Int64 => Self::Int64,
            Shape::Bool => Self::Bool,
            Shape::Number => Self::Double,
            Shape::Time => Self::Time,
            Shape::MicroTime => Self::MicroTime,
            Shape::Quantity => Self::Quantity,
            Shape::IntOrString => Self::IntOrString,
            Shape::Any | Shape::ObjectOrAny(_) => Self::Json,
            Shape::Struct(name, _) => Self::Message(*by_name.get(name)?),
            Shape::Map(inner) => Self::Map(Box::new(Self::of(inner, by_name)?)),
            Shape::List(inner, ..) => Self::List(Box::new(Self::of(inner, by_name)?)),
        })
    }

    fn union(word: &str, by_name: &HashMap<&'static str, MessageId>) -> Option<Self> {
        let union = match word {
            "list" => Union::Schemas,
            "bool" => Union::Bool,
            "strings" => Union::Texts,
            _ => return None,
        };
        let schema = Self::Message(*by_name.get("apiextensions.v1.JSONSchemaProps")?);
        Some(Self::Union(union, Box::new(schema)))
    }

    /// The message that this is, or that is in each element of the list.
    pub(super) fn message(&self) -> Option<&'static Message> {
        match self {
            Self::Message(id) => Some(messages().get(*id)),
            Self::List(inner) => inner.message(),
            _ => None,
        }
    }
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
        // The metadata of a partial object is not a line of the table.
        assert_eq!(messages().all.iter().map(fields).sum::<usize>(), lines + 1);
    }

    /// `cut` notes the fields that it has seen in a word of 128 bits, and the decoder those that JSON always has in a
    /// word of 64.
    #[test]
    fn fields_of_a_message_have_a_bit_each() {
        assert!(
            messages().all.iter().all(|message| message.slots.len() <= 128 && message.written.len() < 64)
        );
    }

    /// The decoder has room for as many messages around the one that it reads.
    #[test]
    fn inlined_messages_are_at_most_two_deep() {
        fn depth(message: &Message) -> usize {
            let of = |slot: &Slot| match &slot.content {
                Content::Field(_) => 0,
                Content::Inline(message) => 1 + depth(message),
            };
            message.slots.iter().map(of).max().unwrap_or(0)
        }
        assert_eq!(messages().all.iter().map(depth).max(), Some(2));
    }
}
