//! Reading the content of an object, in either encoding.

use super::{DecodeError, Object};
use crate::{
    FieldPaths, Limits, Malformed, MediaType, Omissions, Origin, Prune, View, ViewId, fields::Found,
    media_type::Encoded, pack::Content, prune::Pruned,
};
use bytes::Bytes;
use kube_informer_types::protobuf::{MessageType, ProtobufError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The message type of a kind, and the values of `kind` and `apiVersion`, which messages do not have.
#[derive(Debug)]
pub(crate) struct MessageKind {
    message: MessageType,
    kind: String,
    api_version: String,
}

impl MessageKind {
    /// `None` for a custom resource.
    pub(crate) fn of(kind: &crate::Kind) -> Option<Self> {
        let api_version = kind.api_version();
        let message = MessageType::of(&api_version, &kind.kind)?;
        Some(Self { message, kind: kind.kind.clone(), api_version })
    }

    fn type_meta(&self) -> (&str, &str) {
        (&self.kind, &self.api_version)
    }

    pub(crate) fn has_unknown_fields(&self, message: &[u8]) -> Result<bool, ProtobufError> {
        self.message.has_unknown_fields(message)
    }

    fn to_json(&self, message: &[u8]) -> Result<Vec<u8>, ProtobufError> {
        self.message.to_json(message, self.type_meta())
    }

    fn decode<V: DeserializeOwned>(&self, message: &[u8]) -> Result<V, ProtobufError> {
        self.message.decode(message, self.type_meta())
    }

    fn fields(&self, message: &[u8], fields: &FieldPaths) -> Option<Found> {
        self.message.decode_seed(message, self.type_meta(), || fields.collector()).ok()
    }
}

/// The content as JSON; `None` if it is not a message of its kind.
pub(super) fn to_json(origin: &Origin, encoded: Encoded) -> Option<Bytes> {
    match encoded.media_type {
        MediaType::Json => Some(encoded.bytes),
        MediaType::Protobuf => origin.message()?.to_json(&encoded.bytes).ok().map(Bytes::from),
    }
}

/// The values of fields; `None` if one of them cannot be decoded.
pub(super) fn fields(origin: &Origin, encoded: &Encoded, fields: &FieldPaths) -> Option<Found> {
    match encoded.media_type {
        MediaType::Json => fields.read(&encoded.bytes).ok(),
        MediaType::Protobuf => origin.message()?.fields(&encoded.bytes, fields),
    }
}

impl<T> Object<T> {
    /// How the server sent the content, and how it is stored.
    pub fn media_type(&self) -> MediaType {
        self.record.content.media_type()
    }

    /// The object as JSON, with `apiVersion` and `kind`. Content in protobuf is transcoded to what the server would have sent
    /// as JSON.
    pub fn json(&self) -> Result<Bytes, DecodeError> {
        to_json(&self.record.origin, self.encoded()?).ok_or_else(|| DecodeError::corrupt(self))
    }

    /// Passes the content to `read` as it is stored, unless it is withheld.
    fn read_content<R>(
        &self,
        read: impl FnOnce(MediaType, &[u8]) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        if self.is_content_withheld() {
            return Err(DecodeError::withheld(self));
        }
        self.record.content.read_with(read).map_err(|unread| DecodeError::unread(self, &unread))?
    }

    /// The content as it is stored, unless it is withheld.
    fn encoded(&self) -> Result<Encoded, DecodeError> {
        if self.is_content_withheld() {
            return Err(DecodeError::withheld(self));
        }
        self.record.content.read().map_err(|unread| DecodeError::unread(self, &unread))
    }

    /// Decodes only the fields of `V`: any type that serde can decode, usually a small struct.
    pub fn view<V: DeserializeOwned>(&self) -> Result<V, DecodeError> {
        self.read_content(|media_type, content| match (media_type, self.record.origin.message()) {
            (MediaType::Json, _) => {
                decode_json(content).map_err(|_| DecodeError::locate::<V, T>(self, content))
            }
            (MediaType::Protobuf, Some(message)) => {
                message.decode(content).map_err(|_| match message.to_json(content) {
                    Ok(json) => DecodeError::locate::<V, T>(self, &json),
                    Err(_) => DecodeError::corrupt(self),
                })
            }
            (MediaType::Protobuf, None) => Err(DecodeError::corrupt(self)),
        })
    }

    /// A view that is kept with this object: the first call with an id decodes it.
    pub fn kept_view<V: View>(&self, id: ViewId) -> Result<&V, DecodeError> {
        let views = &self.record.views;
        if let Some(kept) = views.get(id) {
            return Ok(kept);
        }
        let decoded = self.view()?;
        // The id belongs to another type only if the caller mixed up two ids.
        views.keep(id, decoded).ok_or_else(|| DecodeError::corrupt(self))
    }

    /// The values of each path, in the order of the paths; `None` if one of them cannot be decoded.
    pub fn read_fields(&self, paths: &FieldPaths) -> Option<Vec<Vec<Value>>> {
        fields(&self.record.origin, &self.encoded().ok()?, paths)
    }

    /// The object without some fields, which `omissions` names. Key, uid and version stay; labels, generation, deletion and
    /// controller are read from what is left.
    pub fn without_fields(
        &self,
        prune: &Prune,
        omissions: &Arc<Omissions>,
        limits: &Limits,
    ) -> Result<Self, Malformed> {
        let malformed = || Malformed::new("its content cannot be read");
        let encoded = self.encoded().map_err(|_| malformed())?;
        let message = self.record.origin.message().filter(|_| encoded.media_type == MediaType::Protobuf);
        let Some(message) = message else {
            return self.with_content(prune.apply(&encoded.bytes)?, omissions, limits);
        };
        match prune.apply_protobuf(message.message, &encoded.bytes)? {
            Pruned::Message(rest) => self.with_message(rest, omissions, limits),
            Pruned::NeedsJson => {
                let json = message.to_json(&encoded.bytes).map_err(|_| malformed())?;
                self.with_content(prune.apply(&json.into())?, omissions, limits)
            }
        }
    }

    /// Whether both have the same content: byte for byte in protobuf, otherwise as JSON values. Content that cannot be read is the
    /// same as no other.
    pub fn is_same_content<U>(&self, other: &Object<U>) -> bool {
        if self.is_identical(other) {
            return true;
        }
        let media_types = (self.media_type(), other.media_type());
        if media_types.0 == media_types.1 && self.record.content.is_same(&other.record.content) {
            return true;
        }
        // Two objects in JSON may differ in the order of fields: one of them may have been transcoded.
        if media_types == (MediaType::Protobuf, MediaType::Protobuf) {
            return false;
        }
        let value = |origin: &Origin, content: &Content| {
            let json = to_json(origin, content.read().ok()?)?;
            serde_json::from_slice::<Value>(&json).ok()
        };
        let own = value(&self.record.origin, &self.record.content);
        own.is_some() && own == value(&other.record.origin, &other.record.content)
    }
}

fn decode_json<V: DeserializeOwned>(json: &[u8]) -> Result<V, serde_json::Error> {
    // One UTF-8 check of the whole content is faster than one for each string.
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}

#[cfg(test)]
mod tests;
