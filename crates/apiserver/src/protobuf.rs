//! The protobuf encoding of objects, which controller-runtime and the Go controllers prefer for built-in kinds.
//!
//! The server works on JSON. A request body is converted to JSON first, and a response to protobuf last. The conversion uses the
//! schema and a table of field numbers.
//!
//! 1. Fields that are not in the tables are dropped in both directions, as by a client of another release.
//! 2. A kind without field numbers (a custom resource) has no protobuf encoding, but its metadata has.
//! 3. Malformed bytes are an error. The memory allocated for them is bounded by their length.

mod envelope;
mod messages;
mod read;
mod write;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};

use envelope::Envelope;
use messages::{Message, messages};

/// The media type of one body.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch.
pub(crate) const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The error of decoding or encoding protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("the body does not start with the magic bytes of Kubernetes protobuf")]
    NoMagic,
    #[error("the protobuf message is truncated or malformed")]
    Malformed,
    #[error("kind {kind:?} of version {api_version:?} has no protobuf encoding here; send JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("field {field:?} does not have the type of its schema")]
    Mismatch { field: String },
}

/// Returns whether objects of a kind have a protobuf encoding.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    messages().of_kind(api_version, kind).is_some()
}

fn message_of(api_version: &str, kind: &str) -> Result<&'static Message, ProtobufError> {
    messages().of_kind(api_version, kind).ok_or_else(|| ProtobufError::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    })
}

/// Encodes an object or a Status as a protobuf body.
pub(crate) fn encode(json: &[u8]) -> Result<Bytes, ProtobufError> {
    let object = read_object(json)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let message = message_of(api_version, kind)?;
    let mut raw = Vec::with_capacity(json.len() / 2);
    write::message(&mut raw, message, &object)?;
    Ok(Envelope { api_version, kind, raw: &raw }.encode().into())
}

fn read_object(json: &[u8]) -> Result<Map<String, Value>, ProtobufError> {
    serde_json::from_slice(json).map_err(|_| ProtobufError::Malformed)
}

/// Encodes a list as a protobuf body. Only one item at a time is decoded.
pub(crate) struct ListWriter {
    api_version: String,
    kind: String,
    item: &'static Message,
    raw: Vec<u8>,
}

impl ListWriter {
    pub(crate) fn new(api_version: &str, kind: &str, metadata: &Value) -> Result<Self, ProtobufError> {
        let item = message_of(api_version, kind.strip_suffix("List").unwrap_or(kind))?;
        let mut raw = Vec::new();
        if let (Some(metadata), Some(message)) = (metadata.as_object(), messages().named("meta.v1.ListMeta"))
        {
            write::nested(&mut raw, 1, |out| write::message(out, message, metadata))?;
        }
        Ok(Self { api_version: api_version.to_owned(), kind: kind.to_owned(), item, raw })
    }

    /// Appends an item, given as JSON.
    pub(crate) fn push(&mut self, json: &[u8]) -> Result<(), ProtobufError> {
        let object = read_object(json)?;
        write::nested(&mut self.raw, 2, |out| write::message(out, self.item, &object))
    }

    /// The whole list. Call it once, after the last item.
    pub(crate) fn finish(&mut self) -> Bytes {
        let raw = std::mem::take(&mut self.raw);
        Envelope { api_version: &self.api_version, kind: &self.kind, raw: &raw }.encode().into()
    }
}

/// Decodes a protobuf body.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let Envelope { api_version, kind, raw } = Envelope::decode(body)?;
    let message = message_of(api_version, kind)?;
    let mut object = Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    read::message(raw, message, &mut object)?;
    Ok(Value::Object(object))
}

/// Encodes one frame of a watch: its length, the type of the event, the object in its envelope.
pub(crate) fn encode_event(event_type: &str, object: &[u8]) -> Result<Bytes, ProtobufError> {
    let object = encode(object)?;
    let mut event = Vec::with_capacity(object.len() + 32);
    write::text(&mut event, 1, event_type);
    write::nested(&mut event, 2, |extension| {
        write::bytes(extension, 1, &object);
        Ok(())
    })?;
    let length = u32::try_from(event.len()).map_err(|_| ProtobufError::Malformed)?;
    let mut frame = BytesMut::with_capacity(event.len() + 4);
    frame.put_u32(length);
    frame.put_slice(&event);
    Ok(frame.freeze())
}

#[cfg(test)]
mod tests;
