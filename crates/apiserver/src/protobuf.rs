//! Objects as protobuf, for clients that prefer it: controller-runtime and the Go controllers do for built-in kinds.
//!
//! The server thinks in JSON. Here a body is turned into JSON before anybody looks at it, and an answer into protobuf
//! after everybody is done with it. The tables are those of the schema and, beside it, the numbers of the fields.
//!
//! 1. What the tables do not know is left out in both directions, as a client of another release would do.
//! 2. A kind without numbers (custom resources) has no protobuf form; its metadata has.
//! 3. Hostile bytes are an error; what is allocated for them is bounded by their own length.

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

/// Why bytes are no object, or an object has no protobuf form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("the body does not start with the magic bytes of Kubernetes protobuf")]
    NoMagic,
    #[error("the protobuf message is cut off or malformed")]
    Malformed,
    #[error("kind {kind:?} of version {api_version:?} has no protobuf form here; send JSON")]
    UnknownKind { api_version: String, kind: String },
    #[error("field {field:?} is not what its type says")]
    Mismatch { field: String },
}

/// How the fields of a kind travel.
enum Form {
    Object(&'static Message),
    List(&'static Message),
}

impl Form {
    fn of(api_version: &str, kind: &str) -> Option<Self> {
        let one = |kind| messages().of_kind(api_version, kind);
        one(kind).map(Self::Object).or_else(|| kind.strip_suffix("List").and_then(one).map(Self::List))
    }
}

/// Whether objects of a kind have a protobuf form.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    Form::of(api_version, kind).is_some()
}

/// An object, a list or a Status as a protobuf body.
pub(crate) fn encode(json: &[u8]) -> Result<Bytes, ProtobufError> {
    let value: Value = serde_json::from_slice(json).map_err(|_| ProtobufError::Malformed)?;
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let unknown =
        || ProtobufError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let form = Form::of(api_version, kind).ok_or_else(unknown)?;
    let object = value.as_object().ok_or_else(unknown)?;
    let mut raw = Vec::with_capacity(json.len() / 2);
    match form {
        Form::Object(message) => write::message(&mut raw, message, object)?,
        Form::List(item) => write_list(&mut raw, item, object)?,
    }
    Ok(Envelope { api_version, kind, raw: &raw }.encode().into())
}

fn write_list(out: &mut Vec<u8>, item: &Message, list: &Map<String, Value>) -> Result<(), ProtobufError> {
    if let (Some(Value::Object(metadata)), Some(message)) =
        (list.get("metadata"), messages().named("meta.v1.ListMeta"))
    {
        write::nested(out, 1, |out| write::message(out, message, metadata))?;
    }
    for object in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        if let Some(object) = object.as_object() {
            write::nested(out, 2, |out| write::message(out, item, object))?;
        }
    }
    Ok(())
}

/// A protobuf body as the JSON it stands for.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let Envelope { api_version, kind, raw } = Envelope::decode(body)?;
    let Some(Form::Object(message)) = Form::of(api_version, kind) else {
        return Err(ProtobufError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    };
    let mut object = Map::new();
    object.insert("kind".to_owned(), kind.into());
    object.insert("apiVersion".to_owned(), api_version.into());
    read::message(raw, message, &mut object)?;
    Ok(Value::Object(object))
}

/// One frame of a watch: its length, the type of the event, the object in its envelope.
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
