//! Objects of a resource from and to the documents in the store.

use super::{Object, Resource};
use crate::storage::{Document, DocumentError, Stored};

/// A document that is no object, or an object that cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("a stored object has no metadata")]
    NoMetadata,
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

    fn encode_stored(&self, object: &Object) -> Result<Document, CodecError> {
        let fields = self.field_values(object);
        let fields = fields.iter().map(|(label, value)| (*label, value.as_str()));
        Ok(Document::encode(object.value(), fields)?)
    }
}
