//! One version of one object, and the step from one version to the next.

use std::sync::Arc;

use bytes::Bytes;

use super::document::{Document, DocumentError, TypeHead};

/// One version of one object. Immutable and shared by everybody who shows it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The storage key, `/resource/namespace/name` or `/resource/name`.
    pub key: Arc<str>,
    /// The revision of the write that made this version: its `metadata.resourceVersion`.
    pub revision: u64,
    /// The content.
    pub document: Document,
}

/// One committed write: what the object was and what it is. At least one of the two is there.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision of the write.
    pub revision: u64,
    /// The version before, absent for a create.
    pub previous: Option<Arc<Stored>>,
    /// The version after, absent for a delete; its revision is the revision of the change.
    pub current: Option<Arc<Stored>>,
}

impl Stored {
    /// The last part of the key.
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// The part of the key before the name. The caller knows whether that is a namespace.
    pub fn parent(&self) -> &str {
        self.key.rsplit('/').nth(1).unwrap_or_default()
    }

    /// The object as JSON with its type and version.
    pub fn json(&self, head: &TypeHead) -> Bytes {
        let mut out = Vec::with_capacity(head.as_str().len() + self.document.encoded_len());
        self.document.write(Some(head), self.revision, &mut out);
        out.into()
    }

    /// The object as a JSON value with its type and version.
    pub fn to_value(&self, head: &TypeHead) -> Result<serde_json::Value, DocumentError> {
        self.document.to_value(head, self.revision)
    }

    /// The same content at another revision: what a delete answers.
    pub(crate) fn at(&self, revision: u64) -> Self {
        Self { key: Arc::clone(&self.key), revision, document: self.document.clone() }
    }
}

impl Change {
    /// Bytes of the version before: what is kept alive only for those who look back.
    pub(crate) fn replaced_bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, |stored| stored.document.encoded_len())
    }

    /// The key that changed.
    pub fn key(&self) -> &Arc<str> {
        let version = self.current.as_ref().or(self.previous.as_ref());
        &version.expect("a change has a version before or after").key
    }
}
