//! Objects of a resource from and to the documents in the store.

use super::{Object, Resource};
use crate::budget::TooLarge;
use crate::protobuf;
use crate::storage::{Document, DocumentError, Stored};

/// A document that is no object, or an object that cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("a stored object has no metadata")]
    NoMetadata,
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl Resource {
    /// A stored version as an object of this resource, with its type and version.
    pub(crate) fn decode(&self, stored: &Stored) -> Result<Object, CodecError> {
        let mut object = Object::new(stored.to_value(&self.head)?).ok_or(CodecError::NoMetadata)?;
        if let Some(conversion) = &self.conversion {
            conversion.show(object.root_mut());
        }
        Ok(object)
    }

    /// An object as it is stored, with the values that selectors compare.
    pub(crate) fn encode(&self, object: &Object) -> Result<Document, CodecError> {
        match &self.conversion {
            Some(conversion) => {
                let mut stored = object.clone();
                conversion.store(stored.root_mut());
                self.encode_stored(&stored)
            }
            None => self.encode_stored(object),
        }
    }

    /// The same for an object that has to fit into `limit` bytes. One that is too large loses its managed fields first, as in
    /// kube-apiserver.
    pub(crate) fn encode_within(&self, object: &Object, limit: usize) -> Result<Document, CodecError> {
        let document = self.encode(object)?;
        if self.fits(&document, limit) {
            return Ok(document);
        }
        let mut object = object.clone();
        if object.metadata_mut().remove("managedFields").is_none() {
            return Err(TooLarge.into());
        }
        let document = self.encode(&object)?;
        if self.fits(&document, limit) { Ok(document) } else { Err(TooLarge.into()) }
    }

    /// Whether a document can be stored. For a kind with a protobuf form that form counts, and is made only if JSON is too long.
    fn fits(&self, document: &Document, limit: usize) -> bool {
        if document.encoded_len() <= limit {
            return true;
        }
        let mut json = Vec::with_capacity(document.encoded_len() + 64);
        document.write(Some(&self.head), 0, &mut json);
        protobuf::encode(&json).is_ok_and(|encoded| encoded.len() <= limit)
    }

    fn encode_stored(&self, object: &Object) -> Result<Document, CodecError> {
        let fields = self.field_values(object);
        let fields = fields.iter().map(|(label, value)| (*label, value.as_str()));
        Ok(Document::encode(object.value(), fields)?)
    }
}
