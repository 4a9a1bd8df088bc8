//! Versions of objects, and changes from one version to the next.

use std::sync::Arc;

use bytes::Bytes;

use super::document::{Document, DocumentError, TypeHead};

/// One version of one object. Immutable and shared by all readers.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The storage key, `/resource/namespace/name` or `/resource/name`.
    pub key: Arc<str>,
    /// The revision of the write that created this version: its `metadata.resourceVersion`.
    pub revision: u64,
    /// The content.
    pub document: Document,
}

/// One committed write. It has a previous version, a current version or both.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision of the write.
    pub revision: u64,
    /// The version before the write, absent for a create.
    pub previous: Option<Arc<Stored>>,
    /// The version after the write, absent for a delete; its revision is the revision of the change.
    pub current: Option<Arc<Stored>>,
}

impl Stored {
    /// Returns the last part of the key.
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the part of the key before the name: the namespace if the resource is namespaced.
    pub fn parent(&self) -> &str {
        self.key.rsplit('/').nth(1).unwrap_or_default()
    }

    /// Encodes the object as JSON with its type and resource version.
    pub fn json(&self, head: &TypeHead) -> Bytes {
        let mut out = Vec::with_capacity(head.as_str().len() + self.document.encoded_len());
        self.document.write(Some(head), self.revision, &mut out);
        out.into()
    }

    /// Decodes the object with its type and resource version.
    pub fn to_value(&self, head: &TypeHead) -> Result<serde_json::Value, DocumentError> {
        self.document.to_value(head, self.revision)
    }

    /// Returns the same content at another revision, as a delete does.
    pub(crate) fn at(&self, revision: u64) -> Self {
        Self { key: Arc::clone(&self.key), revision, document: self.document.clone() }
    }
}

impl Change {
    /// Returns the size of the previous version, which only the history keeps alive.
    pub(crate) fn replaced_bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, |stored| stored.document.encoded_len())
    }

    /// Returns the key of the changed object.
    pub fn key(&self) -> &Arc<str> {
        let version = self.current.as_ref().or(self.previous.as_ref());
        &version.expect("a change has a previous or a current version").key
    }
}
