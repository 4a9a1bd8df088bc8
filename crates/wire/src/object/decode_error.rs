//! Errors of decoding content.

use super::Object;
use crate::{ObjectKey, ResourceVersion, pack::Unread};
use serde::de::DeserializeOwned;

/// The content of an object cannot be decoded as a type. Names the place and the expected type, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {key} at version {version}: cannot decode {path}: expected {expected}")]
#[non_exhaustive]
pub struct DecodeError {
    /// Kind of the object.
    pub kind: String,
    /// Key of the object.
    pub key: ObjectKey,
    /// Version of the object.
    pub version: ResourceVersion,
    /// Path of the field that cannot be decoded; `.` is the whole object.
    pub path: String,
    /// The value that the type expects there.
    pub expected: String,
    /// Which failure it is.
    pub failure: DecodeFailure,
}

/// Which failure a [`DecodeError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFailure {
    /// The content is not what the type expects.
    Mismatch,
    /// The informer's transform failed on the object: it has no content.
    Withheld,
    /// The content is on disk, or in the file of a saved cache, and cannot be read from there. The informer fetches the object
    /// from the server again: read it from the cache later, or when a handler is called with its update.
    Unavailable,
    /// The content is corrupted in memory, or there is a bug.
    Corrupt,
}

impl DecodeError {
    /// Whether the content is in a file and cannot be read from there, see [`DecodeFailure::Unavailable`].
    pub fn is_unavailable(&self) -> bool {
        self.failure == DecodeFailure::Unavailable
    }

    /// The content cannot be read.
    pub(super) fn unread<T>(object: &Object<T>, unread: &Unread) -> Self {
        let Unread::Unavailable(error) = unread else { return Self::corrupt(object) };
        let why = error.as_ref().map_or_else(|| "its dictionary is gone".to_owned(), ToString::to_string);
        let expected = format!("content in a file ({why}); the informer fetches the object again");
        Self { failure: DecodeFailure::Unavailable, ..Self::at(object, ".".to_owned(), expected) }
    }

    /// The content cannot be read at all: corrupted memory, or a bug.
    pub(super) fn corrupt<T>(object: &Object<T>) -> Self {
        let at = Self::at(object, ".".to_owned(), "content that can be read".to_owned());
        Self { failure: DecodeFailure::Corrupt, ..at }
    }

    /// The informer's transform failed on the object.
    pub(super) fn withheld<T>(object: &Object<T>) -> Self {
        let expected =
            "content, but the informer's transform failed on this object and its content is left out";
        let at = Self::at(object, ".".to_owned(), expected.to_owned());
        Self { failure: DecodeFailure::Withheld, ..at }
    }

    fn at<T>(object: &Object<T>, path: String, expected: String) -> Self {
        let (kind, key) = (object.kind().kind.clone(), object.key().clone());
        let (version, failure) = (object.resource_version().clone(), DecodeFailure::Mismatch);
        Self { kind, key, version, path, expected, failure }
    }

    /// Decodes again with tracking of the path, which is slow and therefore done for errors only.
    pub(super) fn locate<V: DeserializeOwned, T>(object: &Object<T>, content: &[u8]) -> Self {
        let reader = &mut serde_json::Deserializer::from_slice(content);
        let (path, expected) = match serde_path_to_error::deserialize::<_, V>(reader) {
            Err(error) => (error.path().to_string(), expectation(&error.inner().to_string())),
            Ok(_) => (".".to_owned(), "nothing after the object".to_owned()),
        };
        Self::at(object, path, expected)
    }
}

/// The expected type, from a message of serde, which may quote the value before it.
fn expectation(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    if message.starts_with("missing field ") {
        return format!("no {message}").replacen("no missing", "the", 1);
    }
    let by_serde =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant ", "unknown field "];
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if by_serde.iter().any(|start| message.starts_with(start)) => expected.to_owned(),
        _ => "a valid value".to_owned(),
    }
}
