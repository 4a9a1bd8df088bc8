//! The protobuf encoding of built-in resources.
//!
//! 1. A message is read through serde as if it were the JSON that a server would have sent: the same names, the same zero values,
//!    times and quantities as text. Fields that are not wanted are skipped by their length.
//! 2. A kind without field numbers (a custom resource) has no protobuf encoding, but its metadata has.
//! 3. Malformed bytes are an error. The memory allocated for them is bounded by their length.
//! 4. A field that the table does not know, because the server is newer, is never dropped silently:
//!    [`MessageType::has_unknown_fields`] finds it, and [`MessageType::to_json`] rejects the message.

mod cut;
mod deserializer;
mod encode_value;
mod encoder;
mod envelope;
mod fault;
mod fields;
mod group;
mod messages;
mod order;
mod time;
mod transcode;
mod union;
mod unknown;
mod value;
pub mod write;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize as _;
use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Map, Value};

pub use cut::{Cut, FieldSet};
use deserializer::{MessageReader, Notes};
pub use envelope::Envelope;
pub use fields::{Fields, Wire};
use messages::{Message, messages};
use transcode::Transcode;

/// The media type of one body.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch.
pub const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Messages inside each other, at most. JSON of an object is limited to the same depth.
const MAX_DEPTH: usize = 128;

/// The error of decoding or encoding protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The body is not protobuf of Kubernetes.
    #[error("the body does not start with the magic bytes of Kubernetes protobuf")]
    NoMagic,
    /// The bytes are not a message of the expected type.
    #[error("the protobuf message is truncated or malformed")]
    Malformed,
    /// The kind is not in the table.
    #[error("kind {kind:?} of version {api_version:?} has no protobuf encoding here; send JSON")]
    UnknownKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The value of a field cannot be encoded.
    #[error("field {field:?} does not have the type of its schema")]
    Mismatch {
        /// The name of the field.
        field: String,
    },
    /// The message has a field that is not in the table.
    #[error("the message has a field that this release does not know; request JSON")]
    UnknownFields,
    /// Messages contain each other to a depth that no server writes.
    #[error("messages are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The type that is read into refused a value.
    #[error("{0}")]
    Refused(String),
}

impl serde::de::Error for ProtobufError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Refused(message.to_string())
    }
}

/// The type of the messages of one kind.
#[derive(Clone, Copy)]
pub struct MessageType {
    message: &'static Message,
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageType({} fields)", self.message.slots().len())
    }
}

impl MessageType {
    /// The type of a kind, if the table has it.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        messages().of_kind(api_version, kind).map(|message| Self { message })
    }

    /// Reads a message, with these values of `kind` and `apiVersion`.
    pub fn decode<T: DeserializeOwned>(
        self,
        bytes: &[u8],
        type_meta: (&str, &str),
    ) -> Result<T, ProtobufError> {
        self.read(bytes, &Notes::default(), |bytes, notes| {
            T::deserialize(self.reader(bytes, type_meta, notes)).map_err(ProtobufError::from)
        })
    }

    /// Reads a message into what a seed makes of it. A message whose fields are not in order is read twice, each time
    /// with a seed of its own.
    pub fn decode_seed<T, S>(
        self,
        bytes: &[u8],
        type_meta: (&str, &str),
        seed: impl Fn() -> S,
    ) -> Result<T, ProtobufError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        self.read(bytes, &Notes::default(), |bytes, notes| {
            seed().deserialize(self.reader(bytes, type_meta, notes)).map_err(ProtobufError::from)
        })
    }

    /// The message without some fields.
    pub fn cut(self, bytes: &[u8], fields: &impl FieldSet) -> Result<Cut, ProtobufError> {
        cut::cut(bytes, self.message, fields)
    }

    /// The message as JSON, with these values of `kind` and `apiVersion`.
    pub fn to_json(self, bytes: &[u8], type_meta: (&str, &str)) -> Result<Vec<u8>, ProtobufError> {
        let notes = Notes::default();
        let json = self.read(bytes, &notes, |bytes, notes| {
            let mut json = Vec::with_capacity(bytes.len().saturating_mul(2));
            let transcode = Transcode(Cell::new(Some(self.reader(bytes, type_meta, notes))));
            match transcode.serialize(&mut serde_json::Serializer::new(&mut json)) {
                Ok(()) => Ok(json),
                Err(error) => Err(serde::de::Error::custom(error)),
            }
        })?;
        if notes.has_unknown_fields.get() { Err(ProtobufError::UnknownFields) } else { Ok(json) }
    }

    /// Whether the message has a field that is not in the table, at any depth.
    pub fn has_unknown_fields(self, bytes: &[u8]) -> Result<bool, ProtobufError> {
        unknown::has_unknown_fields(bytes, self.message, 0)
    }

    fn reader<'de, 'm>(
        self,
        bytes: &'de [u8],
        type_meta: (&'de str, &'de str),
        notes: &'m Notes,
    ) -> MessageReader<'de, 'm> {
        MessageReader { message: self.message, bytes, type_meta: Some(type_meta), notes }
    }

    /// Reads a message; one whose fields are not in order is put in order and read again.
    fn read<T>(
        self,
        bytes: &[u8],
        notes: &Notes,
        read: impl Fn(&[u8], &Notes) -> Result<T, ProtobufError>,
    ) -> Result<T, ProtobufError> {
        let first = read(bytes, notes);
        if first.is_ok() || !notes.is_unordered.get() {
            return first;
        }
        read(&order::ordered(bytes, self.message, 0)?, notes)
    }
}

/// Identifies the tables of types and of field numbers. Messages that were checked for unknown fields with one table may have
/// fields that another table does not know.
pub fn tables_fingerprint() -> u64 {
    // 64-bit FNV-1a: the same in every version of Rust.
    let tables = [include_str!("types.txt"), include_str!("protobuf/numbers.txt")];
    let bytes = tables.iter().flat_map(|table| table.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether objects of a kind have a protobuf encoding.
pub fn knows(api_version: &str, kind: &str) -> bool {
    messages().of_kind(api_version, kind).is_some()
}

fn message_of(api_version: &str, kind: &str) -> Result<&'static Message, ProtobufError> {
    messages().of_kind(api_version, kind).ok_or_else(|| ProtobufError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })
}

/// Encodes an object or a Status as a protobuf body.
pub fn encode(json: &[u8]) -> Result<Bytes, ProtobufError> {
    let TypeMeta { api_version, kind } = TypeMeta::read(json)?;
    let message = message_of(&api_version, &kind)?;
    let mut raw = Vec::with_capacity(json.len() / 2);
    encoder::encode(&mut raw, message, json)?;
    Ok(Envelope { api_version: &api_version, kind: &kind, raw: &raw }.encode().into())
}

/// The kind of an object in JSON.
struct TypeMeta<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
}

impl<'a> TypeMeta<'a> {
    fn read(json: &'a [u8]) -> Result<Self, ProtobufError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(borrow)]
            api_version: Option<Cow<'a, str>>,
            #[serde(borrow)]
            kind: Option<Cow<'a, str>>,
        }
        let Fields { api_version, kind } = match serde_json::from_slice(json) {
            Ok(fields) => fields,
            // A repeated key, or one of the two is not text: of repeated ones the last one counts.
            Err(_) => {
                let object: Map<String, Value> =
                    serde_json::from_slice(json).map_err(|_| ProtobufError::Malformed)?;
                let text = |field: &str| {
                    object.get(field).and_then(Value::as_str).map(|text| text.to_owned().into())
                };
                Fields { api_version: text("apiVersion"), kind: text("kind") }
            }
        };
        Ok(Self { api_version: api_version.unwrap_or_default(), kind: kind.unwrap_or_default() })
    }
}

/// Encodes a list as a protobuf body. Only one item at a time is decoded.
#[derive(Debug)]
pub struct ListWriter {
    api_version: String,
    kind: String,
    item: &'static Message,
    raw: Vec<u8>,
}

impl ListWriter {
    /// A list without items.
    pub fn new(api_version: &str, kind: &str, metadata: &Value) -> Result<Self, ProtobufError> {
        let item = message_of(api_version, kind.strip_suffix("List").unwrap_or(kind))?;
        let mut raw = Vec::new();
        if let (Some(metadata), Some(message)) = (metadata.as_object(), messages().named("meta.v1.ListMeta"))
        {
            write::nested(&mut raw, 1, |out| encode_value::message(out, message, metadata))?;
        }
        Ok(Self { api_version: api_version.to_owned(), kind: kind.to_owned(), item, raw })
    }

    /// Appends an item, given as JSON.
    pub fn push(&mut self, json: &[u8]) -> Result<(), ProtobufError> {
        let start = self.raw.len();
        let written = write::nested(&mut self.raw, 2, |out| encoder::encode(out, self.item, json));
        if written.is_err() {
            self.raw.truncate(start);
        }
        written
    }

    /// The whole list. Call it once, after the last item.
    pub fn finish(&mut self) -> Bytes {
        let raw = std::mem::take(&mut self.raw);
        Envelope { api_version: &self.api_version, kind: &self.kind, raw: &raw }.encode().into()
    }
}

/// Decodes a protobuf body.
pub fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let Envelope { api_version, kind, raw } = Envelope::decode(body)?;
    MessageType { message: message_of(api_version, kind)? }.decode(raw, (kind, api_version))
}

/// Encodes one frame of a watch: its length, the type of the event, the object in its envelope.
pub fn encode_event(event_type: &str, object: &[u8]) -> Result<Bytes, ProtobufError> {
    let object = encode(object)?;
    let mut event = Vec::with_capacity(object.len() + 32);
    write::text(&mut event, 1, event_type);
    write::nested(&mut event, 2, |extension| write::bytes(extension, 1, &object));
    let length = u32::try_from(event.len()).map_err(|_| ProtobufError::Malformed)?;
    let mut frame = BytesMut::with_capacity(event.len() + 4);
    frame.put_u32(length);
    frame.put_slice(&event);
    Ok(frame.freeze())
}

#[cfg(test)]
mod tests;
