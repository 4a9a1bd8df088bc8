//! Conversion between objects and stored documents.

use super::{Conversion, Object, Resource};
use crate::budget::TooLarge;
use crate::managed::Managers;
use crate::storage::{Document, DocumentError, Stored};
use crate::work::count_visit;
use kube_informer_types::protobuf;

/// The error of decoding a document or encoding an object.
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
    /// Decodes a stored version, with its type and resource version.
    pub(crate) fn decode(&self, stored: &Stored) -> Result<Object, CodecError> {
        count_visit();
        let mut object = Object::new(stored.to_value(&self.head)?).ok_or(CodecError::NoMetadata)?;
        if let Some(conversion) = &self.conversion {
            conversion.show(object.root_mut(), stored.document.version());
        }
        Ok(object)
    }

    /// Encodes an object, with the values for selectors.
    pub(crate) fn encode(&self, object: &Object) -> Result<Document, CodecError> {
        match self.storing_conversion() {
            Some(conversion) => {
                let mut stored = object.clone();
                conversion.store(stored.root_mut());
                self.encode_stored(&stored)
            }
            None => self.encode_stored(object),
        }
    }

    /// Encodes a new object with its managers, which it does not have itself, in at most `limit` bytes. The managers of a larger one are
    /// dropped first, as in kube-apiserver.
    pub(crate) fn encode_new(
        &self,
        object: &Object,
        managers: &Managers,
        limit: usize,
    ) -> Result<Document, CodecError> {
        if self.storing_conversion().is_some() || managers.is_empty() {
            let mut object = object.clone();
            managers.clone().write(&mut object);
            return self.encode_within(&object, limit);
        }
        let fields = self.field_values(object);
        let fields = fields.iter().map(|(label, value)| (*label, value.as_str()));
        let document =
            Document::encode_with_managers(object.value(), managers, self.recorded_version(), fields)?;
        if self.fits(&document, limit) { Ok(document) } else { self.encode_within(object, limit) }
    }

    /// Encodes an object in at most `limit` bytes. The managed fields of a larger one are dropped first, as in kube-apiserver.
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

    /// Whether a document can be stored. For a kind with a protobuf form the size of that form counts; it is encoded only if JSON is too
    /// long.
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
        Ok(Document::encode_version(object.value(), self.recorded_version(), fields)?)
    }

    /// Returns an object as a read shows it once it is stored, for dry runs.
    pub(crate) fn as_read(&self, mut object: Object) -> Object {
        if let Some(conversion @ Conversion::Versions(_)) = &self.conversion {
            conversion.store(object.root_mut());
            conversion.show(object.root_mut(), self.recorded_version());
        }
        object
    }

    /// The conversion, if objects are not stored as they are.
    fn storing_conversion(&self) -> Option<&Conversion> {
        self.conversion.as_ref().filter(|conversion| conversion.changes_stored())
    }

    /// The version that documents record. That of a built-in resource never changes.
    fn recorded_version(&self) -> &str {
        self.custom.as_ref().map_or("", |custom| &custom.storage_version)
    }
}
