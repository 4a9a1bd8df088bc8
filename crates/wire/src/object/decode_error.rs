//! Content that is not what its reader expects.

use super::Object;
use crate::{ObjectKey, ResourceVersion};
use serde::de::DeserializeOwned;

/// The content of an object is not what the reader expects. Names where and what, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {key} at version {version}: cannot read {path}: expected {expected}")]
#[non_exhaustive]
pub struct DecodeError {
    /// Kind of the object.
    pub kind: String,
    /// Key of the object.
    pub key: ObjectKey,
    /// Version of the object.
    pub version: ResourceVersion,
    /// Path of the field that cannot be read; `.` is the whole object.
    pub path: String,
    /// What the reading type expects there.
    pub expected: String,
}

impl DecodeError {
    /// Memory was damaged, or there is a mistake in here: what was packed does not unpack.
    pub(super) fn unpackable<T>(object: &Object<T>) -> Self {
        Self::at(object, ".".to_owned(), "content that unpacks".to_owned())
    }

    /// The informer's transform failed on the object.
    pub(super) fn withheld<T>(object: &Object<T>) -> Self {
        let expected =
            "content, but the informer's transform failed on this object and its content is left out";
        Self::at(object, ".".to_owned(), expected.to_owned())
    }

    fn at<T>(object: &Object<T>, path: String, expected: String) -> Self {
        let (kind, key) = (object.kind().kind.clone(), object.key().clone());
        Self { kind, key, version: object.resource_version().clone(), path, expected }
    }

    /// Reads once more, slowly, to learn where it fails: only failures pay for the path.
    pub(super) fn locate<V: DeserializeOwned, T>(object: &Object<T>, content: &[u8]) -> Self {
        let reader = &mut serde_json::Deserializer::from_slice(content);
        let (path, expected) = match serde_path_to_error::deserialize::<_, V>(reader) {
            Err(error) => (error.path().to_string(), expectation(&error.inner().to_string())),
            Ok(_) => (".".to_owned(), "nothing after the object".to_owned()),
        };
        Self::at(object, path, expected)
    }
}

/// What the reader expected, from the message of serde, which may quote the offending value before it.
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
