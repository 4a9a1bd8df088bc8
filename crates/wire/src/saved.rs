//! Objects as bytes that survive the process.
//!
//! A saved object is a *record*, everything that is read without unpacking the content, and its packed content with the
//! tag that says how to read it. Content is saved and restored as it is packed: restoring neither packs nor unpacks.
//! Dictionaries, and the paths of indexed fields, are saved once for all objects.

mod reader;
mod record;
mod restorer;

pub use restorer::RestoreError;
pub use restorer::RestoredContent;
pub use restorer::Restorer;

use crate::{
    FieldPath, Object,
    pack::{Packer, SavedDictionary},
};

/// The packed content of an object, except for its bytes.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedContent {
    /// How to read the bytes.
    pub tag: u64,
    /// The dictionary that is needed to read them.
    pub dictionary: Option<SavedDictionary>,
}

/// The paths of the fields that records hold, as they are saved for all of them; [`Restorer::add_paths`] reads them.
pub fn save_paths(paths: &[Option<FieldPath>]) -> Vec<u8> {
    let texts: Vec<Option<String>> =
        paths.iter().map(|path| path.as_ref().map(ToString::to_string)).collect();
    serde_json::Value::from_iter(texts).to_string().into_bytes()
}

impl<T> Object<T> {
    /// Appends everything but the key and the content to `out`. `fields` is the number under which the paths of its packed
    /// fields are saved.
    pub fn save_record(&self, fields: u32, out: &mut Vec<u8>) {
        record::write(self.record(), fields, out);
    }
}

impl Packer {
    /// Puts the packed content of an object that this packer packed into `out`. `None` if it cannot be read.
    pub fn save_content<T>(&self, object: &Object<T>, out: &mut Vec<u8>) -> Option<SavedContent> {
        let mut missing = None;
        loop {
            out.clear();
            let tag = object.record().content.save(out)?;
            match self.dictionary_of(tag) {
                Ok(dictionary) => return Some(SavedContent { tag, dictionary }),
                // A dictionary is forgotten after all content was packed again: this one has another by now.
                Err(forgotten) if missing != Some(forgotten) => missing = Some(forgotten),
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
