//! The two encodings of objects.

use bytes::Bytes;

/// How the content of an object is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MediaType {
    /// `application/json`.
    #[default]
    Json,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// The content of an object as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) media_type: MediaType,
    /// A JSON object with `apiVersion` and `kind`, or a protobuf message without its envelope.
    pub(crate) bytes: Bytes,
}

impl Encoded {
    pub(crate) fn json(bytes: Bytes) -> Self {
        Self { media_type: MediaType::Json, bytes }
    }

    /// A copy in an allocation of its own, which does not keep a larger buffer alive.
    pub(crate) fn copied(&self) -> Self {
        Self { media_type: self.media_type, bytes: Bytes::copy_from_slice(&self.bytes) }
    }

    pub(crate) fn protobuf(bytes: Bytes) -> Self {
        Self { media_type: MediaType::Protobuf, bytes }
    }
}
