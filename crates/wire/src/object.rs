//! One version of one object.

mod apply;
mod decode_error;
mod edit;

pub use apply::Apply;
pub use decode_error::DecodeError;
pub use edit::EditError;

use crate::{
    Bookmark, FieldPath, FieldPaths, Kind, Labels, Limits, ObjectKey, Omissions, Origin, Owner, Prune,
    ResourceVersion, Uid, Unreadable,
    fields::Found,
    identity::{Identity, Said, Scan},
    pack::{Content, Packer},
    recent::AnyValue,
};
use bytes::Bytes;
use ref_cast::{RefCastCustom, ref_cast_custom};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    marker::PhantomData,
    sync::{Arc, LazyLock, OnceLock},
};

/// One version of one object: its identity in the open, its content as the bytes the server sent.
///
/// 1. Cloning is a reference count. An object never changes: there is nothing to deep-copy before use.
/// 2. Identity (key, uid, version, labels, generation, deletion, controlling owner) is read without decoding.
/// 3. Content is decoded when asked for, into the whole type, or into a *view* that names only the fields it
///    wants. The few values that were decoded last are shared, except those of secrets. A failure concerns the caller who decodes and nobody else.
/// 4. The content always has `apiVersion` and `kind`, whether the object came from a list or a watch.
/// 5. `Debug` prints the identity and never the content, which may be a secret.
/// 6. A cached object knows which parts of the server's object it does not hold: [`edit`](Self::edit) refuses to write
///    to them, so that writing back never erases anything.
///
/// `T` is only how the content is read: [`cast`](Self::cast) to another type costs nothing.
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Object<T> {
    record: Arc<Record>,
    as_type: PhantomData<fn() -> T>,
}

pub(crate) struct Record {
    origin: Arc<Origin>,
    identity: Identity,
    /// Fields that were read before the content was packed; none if none were asked for, or none could be read.
    fields: Option<Arc<Found>>,
    /// A complete JSON object, with `apiVersion` and `kind`.
    content: Content,
}

impl Object<Value> {
    /// Reads the identity of an encoded object.
    pub fn parse(origin: &Arc<Origin>, json: Bytes, limits: &Limits) -> Result<Self, Unreadable> {
        let scan = scan(&json, limits)?;
        let type_meta = (scan.kind, scan.api_version);
        let identity = scan.identity(limits)?;
        let content = Content::Raw(complete(origin, json, type_meta)?);
        Ok(Self::from_record(Record { origin: Arc::clone(origin), identity, fields: None, content }))
    }
}

fn scan<'a>(json: &'a [u8], limits: &Limits) -> Result<Scan<'a>, Unreadable> {
    if json.len() > limits.object_bytes {
        return Err(Unreadable::oversized(json, limits));
    }
    Scan::read(json, limits)
}

/// The object with `kind` and `apiVersion`, of which it may have said one, both or none.
fn complete(origin: &Origin, json: Bytes, said: (Said, Said)) -> Result<Bytes, Unreadable> {
    match said {
        (Said::Yes, Said::Yes) => Ok(json),
        (Said::No, Said::No) => Ok(with_type_meta(origin, &json)),
        // Only one of the two is good: whoever wrote that meant something we do not know. Both are ours to say.
        _ => Ok(with_type_meta(origin, &TYPE_META.apply(&json)?)),
    }
}

/// Takes out what an object says of its type.
static TYPE_META: LazyLock<Prune> =
    LazyLock::new(|| Prune::new(["kind", "apiVersion"].map(FieldPath::field)));

/// Puts `kind` and `apiVersion` in front of an object that has neither.
fn with_type_meta(origin: &Origin, json: &[u8]) -> Bytes {
    let open = json.iter().position(|&byte| byte == b'{').map_or(json.len(), |at| at + 1);
    let rest = &json[open..];
    let empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut full = Vec::with_capacity(json.len() + origin.type_meta().len() + 2);
    full.push(b'{');
    full.extend_from_slice(origin.type_meta().as_bytes());
    if !empty {
        full.push(b',');
    }
    full.extend_from_slice(rest);
    full.into()
}

/// A number that differs for different content, as far as that is possible.
fn fingerprint(json: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    hasher.finish()
}

impl Bookmark {
    /// Reads the object of a BOOKMARK event.
    pub fn parse(json: &[u8]) -> Result<Self, Unreadable> {
        let scan = Scan::read(json, &Limits::default())?;
        let resource_version = scan
            .resource_version()
            .ok_or_else(|| Unreadable::new("a bookmark without a resource version"))?;
        Ok(Self { resource_version, initial_events_end: scan.initial_events_end() })
    }
}

impl<T> Object<T> {
    fn from_record(record: Record) -> Self {
        Self { record: Arc::new(record), as_type: PhantomData }
    }

    #[ref_cast_custom]
    fn of(record: &Arc<Record>) -> &Self;

    /// The same object, read as another type.
    pub fn cast<U>(&self) -> Object<U> {
        Object { record: Arc::clone(&self.record), as_type: PhantomData }
    }

    /// [`cast`](Self::cast), borrowed: not even a reference count changes.
    pub fn cast_ref<U>(&self) -> &Object<U> {
        Object::of(&self.record)
    }

    /// The kind of the object.
    pub fn kind(&self) -> &Kind {
        self.record.origin.kind()
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.record.identity.key
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.key().name()
    }

    /// The namespace, or `None` for a cluster-scoped object.
    pub fn namespace(&self) -> Option<&str> {
        self.key().namespace()
    }

    /// The uid. Every object from an API server has one; one that has none gets [`Uid::NONE`].
    pub fn uid(&self) -> Uid {
        self.record.identity.uid
    }

    /// The version of this state of the object.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.record.identity.resource_version
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.record.identity.labels
    }

    /// The generation of the desired state, for kinds that count it.
    pub fn generation(&self) -> Option<i64> {
        self.record.identity.generation
    }

    /// Whether deletion has been asked for and finalizers or a grace period hold it.
    pub fn is_deleting(&self) -> bool {
        self.record.identity.deleting
    }

    /// The owner that controls this object.
    pub fn controller(&self) -> Option<&Owner> {
        self.record.identity.controller.as_deref()
    }

    /// Whether a part of the identity had a type that the API does not allow, such as labels that are a text;
    /// that part counts as absent.
    pub fn is_odd(&self) -> bool {
        self.record.identity.odd
    }

    /// Whether both are the same object (not merely two objects of one name).
    pub fn is_same<U>(&self, other: &Object<U>) -> bool {
        self.key() == other.key() && self.record.identity.uid == other.record.identity.uid
    }

    /// Whether both are the same state of the same object, judged by uid and version.
    pub fn is_same_version<U>(&self, other: &Object<U>) -> bool {
        self.is_same(other)
            && !self.resource_version().is_unset()
            && self.resource_version() == other.resource_version()
    }

    /// Whether both have the same content, byte for byte.
    pub fn is_same_content<U>(&self, other: &Object<U>) -> bool {
        match (self.record.content.read(), other.record.content.read()) {
            (Some(own), Some(others)) => own == others,
            _ => false,
        }
    }

    /// Whether both are one value in memory.
    pub fn is_identical<U>(&self, other: &Object<U>) -> bool {
        Arc::ptr_eq(&self.record, &other.record)
    }

    /// Whether the content was left out because a transform failed on this object. Its identity is complete; reading
    /// the content is an error.
    pub fn is_content_withheld(&self) -> bool {
        self.omissions().is_content_withheld()
    }

    /// The parts of the server's object that this one does not hold.
    pub fn omissions(&self) -> &Omissions {
        self.record.origin.omissions()
    }

    /// The object as JSON, with `apiVersion` and `kind`.
    pub fn json(&self) -> Result<Bytes, DecodeError> {
        if self.is_content_withheld() {
            return Err(DecodeError::withheld(self));
        }
        self.record.content.read().ok_or_else(|| DecodeError::unpackable(self))
    }

    /// Only the fields that `V` names. `V` is any type that serde can read, usually a small struct of yours.
    pub fn view<V: DeserializeOwned>(&self) -> Result<V, DecodeError> {
        let content = self.json()?;
        // Whether it is text is asked once for the whole, which is quick, and not once for each string in it.
        let decoded = match std::str::from_utf8(&content) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(&content),
        };
        decoded.map_err(|_| DecodeError::locate::<V, T>(self, &content))
    }

    pub(crate) fn packed_by(mut self, packer: &Packer, fields: &FieldPaths) -> Self {
        let Some(record) = Arc::get_mut(&mut self.record) else { return self };
        if !fields.is_empty() && !record.origin.omissions().is_content_withheld() {
            record.fields = record.content.read().and_then(|json| fields.read(&json).ok()).map(Arc::new);
        }
        packer.share(&mut record.identity, &mut record.fields);
        let secret = record.origin.kind().is_secret();
        let raw = std::mem::replace(&mut record.content, Content::Raw(Bytes::new()));
        record.content = packer.pack_content(raw, secret);
        self
    }

    /// The fields that [`Packer::pack_with`] found, in the order of the paths; `None` if it found none.
    pub fn packed_fields(&self) -> Option<&[Vec<Value>]> {
        self.record.fields.as_deref().map(Vec::as_slice)
    }

    /// The object with other content, made from its own by leaving out or changing what `omissions` names. Key, uid
    /// and version stay; labels, generation, deletion and controller are read again. The content need not name the
    /// object.
    pub fn with_content(
        &self,
        json: Bytes,
        omissions: &Arc<Omissions>,
        limits: &Limits,
    ) -> Result<Self, Unreadable> {
        let own = &self.record.identity;
        let origin = self.record.origin.omitting(omissions);
        let scan = scan(&json, limits)?;
        let type_meta = (scan.kind, scan.api_version);
        let identity = scan.identity_of(own.key.clone(), own.uid, own.resource_version.clone(), limits)?;
        let content = Content::Raw(complete(&origin, json, type_meta)?);
        Ok(Self::from_record(Record { origin, identity, fields: None, content }))
    }

    /// The object with its identity and without its content.
    pub fn without_content(&self) -> Self {
        let identity = self.record.identity.clone();
        let origin = self.record.origin.omitting(&Omissions::content());
        // Never read, but compared: after a restore, two states may have one version.
        let content = self.record.content.read().map(|json| fingerprint(&json)).unwrap_or_default();
        let content = Content::Raw(Bytes::copy_from_slice(&content.to_be_bytes()));
        Self::from_record(Record { origin, identity, fields: None, content })
    }

    /// Bytes of the encoded content.
    pub fn content_len(&self) -> usize {
        self.record.content.raw_len()
    }

    /// Bytes this object occupies on the heap, its share of common allocations counted in full.
    pub fn heap_size(&self) -> usize {
        let identity = &self.record.identity;
        size_of::<Record>()
            + 2 * size_of::<usize>()
            + identity.key.as_str().len()
            + identity.labels.heap_size()
            + identity.controller.as_ref().map_or(0, |_| size_of::<Owner>())
            + self.record.content.heap_len()
    }
}

impl<T: DeserializeOwned + Send + Sync + 'static> Object<T> {
    /// The whole object.
    pub fn decode(&self) -> Result<Arc<T>, DecodeError> {
        let Record { origin, content, .. } = &*self.record;
        if origin.kind().is_secret() {
            return self.view().map(Arc::new);
        }
        let kept = content.kept();
        let known = kept.and_then(OnceLock::get).and_then(|value| Arc::clone(value).downcast().ok());
        if let Some(known) = known.or_else(|| origin.recent().get(&self.record)) {
            return Ok(known);
        }
        let value: Arc<T> = self.view().map(Arc::new)?;
        // What is kept as one type already is read as another one less often.
        if kept.is_none_or(|kept| kept.set(Arc::clone(&value) as AnyValue).is_err()) {
            origin.recent().put(&self.record, Arc::clone(&value) as AnyValue, content.raw_len());
        }
        Ok(value)
    }
}

impl<T> Clone for Object<T> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<T> fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}@{}", self.kind().kind, self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests;
