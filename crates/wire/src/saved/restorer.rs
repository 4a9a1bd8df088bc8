//! Objects from saved bytes.

use super::record::{self, SavedRecord};
use crate::{
    FieldPath, Labels, Object, ObjectKey, Origin, Owner, Packer, fields::Found, identity::Identity,
    kept_views::KeptViews, object::Record, pack::Content,
};
use hashbrown::HashMap;
use kube_informer_segments::{BodySource, OutsideBody, ReadError};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// Saved bytes that are not an object, or not one of this packer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The key is not `namespace/name` or `name`.
    #[error("the key of a saved object is invalid")]
    Key,
    /// The record cannot be decoded.
    #[error("the record of a saved object is invalid")]
    Record,
    /// The tag of the content contradicts its length, or names a dictionary that was not saved.
    #[error("the content of a saved object is invalid")]
    Content,
    /// A dictionary cannot be used, or another one has its number.
    #[error("a saved dictionary is invalid")]
    Dictionary,
    /// The paths of fields cannot be decoded.
    #[error("the saved paths of indexed fields are invalid")]
    Fields,
}

/// Largest content of an object that is restored. Reading a content allocates as much as its tag says.
const MAX_CONTENT: u32 = 256 << 20;

/// Makes objects from saved bytes, with a packer that then has their content.
///
/// 1. Any bytes are an object or an error. Content is read when it is needed, or moved into memory by compaction: content that
///    cannot be read or unpacked is a `DecodeError` for the caller that decodes it, and counts as lost.
/// 2. Labels, owners and fields are shared, as the packer shares those of new objects.
pub struct Restorer<'a> {
    packer: &'a Packer,
    origin: Arc<Origin>,
    /// The fields that restored objects are to have, by slot.
    wanted: Vec<Option<FieldPath>>,
    /// By the number under which their paths were saved.
    fields: HashMap<u32, SavedFields>,
    // Parts that many records share, by their saved bytes: each is decoded once.
    labels: Shared<Labels>,
    owners: Shared<Arc<Owner>>,
    origins: Shared<Arc<Origin>>,
}

/// The source of one content that is in memory.
struct OneContent(Vec<u8>);

impl BodySource for OneContent {
    fn read(&self, _: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.clone_from(&self.0);
        Ok(())
    }
}

/// The content of a saved object, which [`Restorer::object`] takes.
pub struct RestoredContent(Content);

impl fmt::Debug for RestoredContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestoredContent")
    }
}

/// Decoded values by their saved bytes.
type Shared<T> = HashMap<Box<[u8]>, T>;

/// Fields that were saved under one number.
#[derive(Default)]
struct SavedFields {
    /// The saved place of each wanted field, up to the first one that was not saved.
    places: Vec<Option<usize>>,
    found: Shared<Option<Arc<Found>>>,
}

impl<'a> Restorer<'a> {
    /// Restores objects of `origin` with a packer that is [restoring](Packer::restoring). The objects hold the values of
    /// `wanted` fields ([`Object::packed_fields`]) as far as they were saved.
    pub fn new(packer: &'a Packer, origin: Arc<Origin>, wanted: Vec<Option<FieldPath>>) -> Self {
        Self {
            packer,
            origin,
            wanted,
            fields: HashMap::new(),
            labels: HashMap::new(),
            owners: HashMap::new(),
            origins: HashMap::new(),
        }
    }

    /// Adds saved dictionaries. An object can be restored once its dictionary is there.
    pub fn add_dictionaries(&mut self, saved: Vec<(u32, Vec<u8>)>) -> Result<(), RestoreError> {
        self.packer.add_saved_dictionaries(saved).ok_or(RestoreError::Dictionary)
    }

    /// Adds the paths of saved fields, which [`save_paths`](super::save_paths) wrote.
    pub fn add_paths(&mut self, number: u32, saved: &[u8]) -> Result<(), RestoreError> {
        let texts: Vec<Option<String>> = serde_json::from_slice(saved).map_err(|_| RestoreError::Fields)?;
        let path = |text: Option<String>| text.map(|text| text.parse::<FieldPath>()).transpose();
        let paths: Vec<_> =
            texts.into_iter().map(path).collect::<Result<_, _>>().map_err(|_| RestoreError::Fields)?;
        let place = |wanted: &Option<FieldPath>| match wanted {
            None => Some(None),
            wanted => paths.iter().position(|path| path == wanted).map(Some),
        };
        let places = self.wanted.iter().map_while(place).collect();
        self.fields.insert(number, SavedFields { places, found: HashMap::new() });
        Ok(())
    }

    /// The contents of saved objects, in the order of `saved`. Their bytes stay in `source` until compaction moves them.
    pub fn contents(
        &self,
        source: &Arc<dyn BodySource>,
        saved: &[OutsideBody],
    ) -> Result<Vec<RestoredContent>, RestoreError> {
        let secret = self.origin.kind().is_secret();
        let contents = self.packer.restored_contents(source, saved, secret, MAX_CONTENT);
        Ok(contents.ok_or(RestoreError::Content)?.into_iter().map(RestoredContent).collect())
    }

    /// The content of one saved object, whose bytes are in memory.
    pub fn content(&self, tag: u64, bytes: Vec<u8>) -> Result<RestoredContent, RestoreError> {
        let len = u32::try_from(bytes.len()).map_err(|_| RestoreError::Content)?;
        let source: Arc<dyn BodySource> = Arc::new(OneContent(bytes));
        let mut contents = self.contents(&source, &[OutsideBody { number: 0, tag, len }])?;
        contents.pop().ok_or(RestoreError::Content)
    }

    /// The object that was saved under `key`.
    pub fn object(
        &mut self,
        key: &str,
        record: &[u8],
        content: RestoredContent,
    ) -> Result<Object<Value>, RestoreError> {
        let key: ObjectKey = key.parse().map_err(|_| RestoreError::Key)?;
        let saved = record::read(record).ok_or(RestoreError::Record)?;
        let (mut identity, origin, mut fields) = self.decode(key, &saved).ok_or(RestoreError::Record)?;
        let RestoredContent(content) = content;
        self.packer.share(&mut identity, &mut fields);
        Ok(Object::from_record(Record { identity, origin, fields, content, views: KeptViews::default() }))
    }

    fn decode(
        &mut self,
        key: ObjectKey,
        saved: &SavedRecord<'_>,
    ) -> Option<(Identity, Arc<Origin>, Option<Arc<Found>>)> {
        let labels = match saved.labels {
            None => Labels::default(),
            Some(bytes) => decoded(&mut self.labels, bytes, Labels::from_bytes)?,
        };
        let controller = match saved.controller {
            None => None,
            Some(bytes) => {
                let owner = |bytes: &[u8]| record::read_owner(bytes).map(Arc::new);
                Some(decoded(&mut self.owners, bytes, owner)?)
            }
        };
        let origin = match saved.omissions {
            None => Arc::clone(&self.origin),
            Some(bytes) => {
                let base = &self.origin;
                let omitting = |bytes: &[u8]| Some(base.omitting(&record::read_omissions(bytes)?.into()));
                decoded(&mut self.origins, bytes, omitting)?
            }
        };
        let fields = match saved.fields {
            None => None,
            Some((number, bytes)) => self.fields.get_mut(&number)?.read(bytes)?,
        };
        let identity = Identity {
            key,
            uid: saved.uid,
            resource_version: saved.version.clone(),
            labels,
            controller,
            generation: saved.generation.into(),
            deleting: saved.deleting,
            malformed: saved.malformed,
        };
        Some((identity, origin, fields))
    }
}

impl SavedFields {
    /// The wanted fields among the saved ones; `None` inside if there is none of them.
    fn read(&mut self, bytes: &[u8]) -> Option<Option<Arc<Found>>> {
        let Self { places, found } = self;
        decoded(found, bytes, |bytes| {
            let mut saved = record::read_found(bytes)?;
            let take = |place: &Option<usize>| match place {
                None => Some(Vec::new()),
                Some(place) => saved.get_mut(*place).map(std::mem::take),
            };
            let wanted: Found = places.iter().map_while(take).collect();
            Some((!wanted.is_empty()).then(|| Arc::new(wanted)))
        })
    }
}

/// The value of saved bytes, decoded the first time.
fn decoded<T: Clone>(
    known: &mut Shared<T>,
    bytes: &[u8],
    decode: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    if let Some(value) = known.get(bytes) {
        return Some(value.clone());
    }
    let value = decode(bytes)?;
    known.insert(bytes.into(), value.clone());
    Some(value)
}

impl fmt::Debug for Restorer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Restorer({})", self.origin.kind())
    }
}
