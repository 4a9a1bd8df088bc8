//! One version of one object.

mod apply;
mod decode_error;
mod edit;
mod reading;

pub use apply::Apply;
pub use decode_error::DecodeError;
pub use decode_error::DecodeFailure;
pub use edit::EditError;
pub(crate) use reading::MessageKind;

use crate::{
    Bookmark, FieldPath, FieldPaths, Kind, Labels, Limits, Malformed, ObjectKey, Omissions, Origin, Owner,
    Prune, ResourceVersion, Uid,
    decode_cache::{AnyValue, KeptValue},
    fields::Found,
    identity::{Identity, Presence, Scan},
    kept_views::KeptViews,
    media_type::Encoded,
    pack::{Content, Packer},
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

/// One version of one object: its identity is decoded, its content is the bytes the server sent.
///
/// 1. Cloning increments a reference count. Objects are immutable, so no deep copy is needed before use.
/// 2. Reading the identity (key, uid, version, labels, generation, deletion, controlling owner) decodes nothing.
/// 3. The content is decoded on use, into the whole type, or into a *view* with only some fields. A small cache shares
///    recently decoded values, except those of secrets. An error affects only the caller that decodes.
/// 4. The content always has `apiVersion` and `kind`, whether the object was listed or watched.
/// 5. `Debug` prints the identity and never the content, which may be a secret.
/// 6. A cached object knows which parts of the server's object it does not hold: [`edit`](Self::edit) refuses to write
///    to them, so that writing back never erases anything.
///
/// `T` is the type that the content is decoded into: [`cast`](Self::cast) to another type is free.
#[derive(RefCastCustom)]
#[repr(transparent)]
pub struct Object<T> {
    record: Arc<Record>,
    as_type: PhantomData<fn() -> T>,
}

/// The record of an object: everything that is read without unpacking the content, in one small allocation.
///
/// Records of a list are allocated one after the other, and their content goes elsewhere, so that a loop over all objects
/// reads memory in order. Labels, owner and fields are shared with other records that have the same.
pub(crate) struct Record {
    pub(crate) identity: Identity,
    pub(crate) origin: Arc<Origin>,
    /// Values that were decoded before the content was packed: the fields of indexes. `None` if there are none, or if they
    /// cannot be decoded. The place for everything else that is decoded on arrival.
    pub(crate) fields: Option<Arc<Found>>,
    pub(crate) content: Content,
    /// Views that were decoded on arrival, or later.
    pub(crate) views: KeptViews,
}

/// Why a protobuf message cannot be cached as an object.
#[derive(Debug)]
pub(crate) enum MessageError {
    Malformed(Malformed),
    /// It has a field that the table of types does not know: reading it as JSON would lose that field.
    UnknownFields,
}

impl Object<Value> {
    /// Reads the identity of an encoded object.
    pub fn parse(origin: &Arc<Origin>, json: Bytes, limits: &Limits) -> Result<Self, Malformed> {
        let scan = scan(&json, limits)?;
        let type_meta = (scan.kind, scan.api_version);
        let identity = scan.identity(limits)?;
        let content = Content::raw(Encoded::json(complete(origin, json, type_meta)?));
        Ok(Self::from_record(Record {
            origin: Arc::clone(origin),
            identity,
            fields: None,
            content,
            views: KeptViews::default(),
        }))
    }

    /// Reads the identity of an object in protobuf, without its envelope.
    pub(crate) fn parse_protobuf(
        origin: &Arc<Origin>,
        message: Bytes,
        limits: &Limits,
    ) -> Result<Self, MessageError> {
        let identity = scan_protobuf(&message, limits)
            .and_then(|scan| scan.identity(limits))
            .map_err(MessageError::Malformed)?;
        let malformed = |reason| {
            let malformed = Malformed::new(reason).at(Some(identity.resource_version.clone()));
            MessageError::Malformed(Malformed { key: Some(identity.key.clone()), ..malformed })
        };
        let Some(kind) = origin.message() else { return Err(malformed("its kind has no protobuf encoding")) };
        match kind.has_unknown_fields(&message) {
            Ok(true) => return Err(MessageError::UnknownFields),
            Ok(false) => {}
            Err(error) => return Err(malformed(&error.to_string())),
        }
        let content = Content::raw(Encoded::protobuf(message));
        Ok(Self::from_record(Record {
            origin: Arc::clone(origin),
            identity,
            fields: None,
            content,
            views: KeptViews::default(),
        }))
    }
}

fn scan_protobuf<'a>(message: &'a [u8], limits: &Limits) -> Result<Scan<'a>, Malformed> {
    if message.len() > limits.object_bytes {
        return Err(Malformed::oversized_protobuf(message, limits));
    }
    Scan::read_protobuf(message, limits)
}

fn scan<'a>(json: &'a [u8], limits: &Limits) -> Result<Scan<'a>, Malformed> {
    if json.len() > limits.object_bytes {
        return Err(Malformed::oversized(json, limits));
    }
    Scan::read(json, limits)
}

/// Adds `kind` and `apiVersion` if either is missing or invalid.
fn complete(origin: &Origin, json: Bytes, found: (Presence, Presence)) -> Result<Bytes, Malformed> {
    match found {
        (Presence::Present, Presence::Present) => Ok(json),
        (Presence::Absent, Presence::Absent) => Ok(with_type_meta(origin, &json)),
        // One is missing, or one is invalid. Both are replaced, so that they match.
        _ => Ok(with_type_meta(origin, &STRIP_TYPE_META.apply(&json)?)),
    }
}

/// Removes `kind` and `apiVersion`.
static STRIP_TYPE_META: LazyLock<Prune> =
    LazyLock::new(|| Prune::new(["kind", "apiVersion"].map(FieldPath::field)));

/// Adds `kind` and `apiVersion` at the start of an object that has neither.
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

/// A hash of the content.
fn fingerprint(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

impl Bookmark {
    /// Reads the object of a BOOKMARK event.
    pub fn parse(json: &[u8]) -> Result<Self, Malformed> {
        Self::of_scan(&Scan::read(json, &Limits::default())?)
    }

    fn of_scan(scan: &Scan<'_>) -> Result<Self, Malformed> {
        let resource_version =
            scan.resource_version().ok_or_else(|| Malformed::new("a bookmark without a resource version"))?;
        Ok(Self { resource_version, initial_events_end: scan.initial_events_end() })
    }

    /// Reads the object of a BOOKMARK event in protobuf.
    pub(crate) fn parse_protobuf(message: &[u8]) -> Result<Self, Malformed> {
        Self::of_scan(&Scan::read_protobuf(message, &Limits::default())?)
    }
}

impl<T> Object<T> {
    pub(crate) fn from_record(record: Record) -> Self {
        Self { record: Arc::new(record), as_type: PhantomData }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    #[ref_cast_custom]
    fn of(record: &Arc<Record>) -> &Self;

    /// The same object, decoded as another type.
    pub fn cast<U>(&self) -> Object<U> {
        Object { record: Arc::clone(&self.record), as_type: PhantomData }
    }

    /// Like [`cast`](Self::cast), but borrowed: not even a reference count changes.
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

    /// The uid. Every object of an API server has one; otherwise it is [`Uid::NONE`].
    pub fn uid(&self) -> Uid {
        self.record.identity.uid
    }

    /// The resource version.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.record.identity.resource_version
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.record.identity.labels
    }

    /// The generation of the desired state, for kinds that have it.
    pub fn generation(&self) -> Option<i64> {
        self.record.identity.generation.get()
    }

    /// Whether deletion has begun and waits for finalizers or a grace period.
    pub fn is_deleting(&self) -> bool {
        self.record.identity.deleting
    }

    /// The owner that controls this object.
    pub fn controller(&self) -> Option<&Owner> {
        self.record.identity.controller.as_deref()
    }

    /// Whether a part of the identity has a type that the API does not allow, such as labels that are a string. That
    /// part counts as absent.
    pub fn has_malformed_identity(&self) -> bool {
        self.record.identity.malformed
    }

    /// Whether both are the same object by key and uid; a recreated object is another one.
    pub fn is_same<U>(&self, other: &Object<U>) -> bool {
        self.key() == other.key() && self.record.identity.uid == other.record.identity.uid
    }

    /// Whether both are the same version of the same object, by uid and resource version.
    pub fn is_same_version<U>(&self, other: &Object<U>) -> bool {
        self.is_same(other)
            && !self.resource_version().is_unset()
            && self.resource_version() == other.resource_version()
    }

    /// Whether both share one allocation.
    pub fn is_identical<U>(&self, other: &Object<U>) -> bool {
        Arc::ptr_eq(&self.record, &other.record)
    }

    /// Whether the content is withheld because a transform failed on this object. The identity is complete; reading the
    /// content is an error.
    pub fn is_content_withheld(&self) -> bool {
        self.omissions().is_content_withheld()
    }

    /// The parts of the server's object that this one does not hold.
    pub fn omissions(&self) -> &Omissions {
        self.record.origin.omissions()
    }

    /// Packs the content. An object that is already shared stays as it is.
    pub(crate) fn packed_by(
        mut self,
        packer: &Packer,
        fields: &FieldPaths,
        before: Option<&Content>,
    ) -> Self {
        let Some(record) = Arc::get_mut(&mut self.record) else { return self };
        if !fields.is_empty() && !record.origin.omissions().is_content_withheld() {
            let encoded = record.content.read().ok();
            record.fields =
                encoded.and_then(|encoded| reading::fields(&record.origin, &encoded, fields)).map(Arc::new);
        }
        packer.share(&mut record.identity, &mut record.fields);
        if let Some(raw) = record.content.as_raw() {
            record.content = packer.pack_content(raw, record.origin.kind().is_secret(), before);
        }
        self
    }

    /// The fields that [`Packer::pack_with`] found, in the order of the paths; `None` if it found none.
    pub fn packed_fields(&self) -> Option<&[Vec<Value>]> {
        self.record.fields.as_deref().map(Vec::as_slice)
    }

    /// The object with other content, derived from its own: `omissions` names the fields that were removed or changed.
    /// Key, uid and version stay; labels, generation, deletion and controller are read from the new content, which need
    /// not have a name.
    pub fn with_content(
        &self,
        json: Bytes,
        omissions: &Arc<Omissions>,
        limits: &Limits,
    ) -> Result<Self, Malformed> {
        let own = &self.record.identity;
        let origin = self.record.origin.omitting(omissions);
        let scan = scan(&json, limits)?;
        let type_meta = (scan.kind, scan.api_version);
        let identity = scan.identity_of(own.key.clone(), own.uid, own.resource_version.clone(), limits)?;
        let content = Content::raw(Encoded::json(complete(&origin, json, type_meta)?));
        Ok(Self::from_record(Record { origin, identity, fields: None, content, views: KeptViews::default() }))
    }

    /// The object with other content in protobuf, as [`with_content`](Self::with_content) has it.
    fn with_message(
        &self,
        message: Bytes,
        omissions: &Arc<Omissions>,
        limits: &Limits,
    ) -> Result<Self, Malformed> {
        let own = &self.record.identity;
        let scan = scan_protobuf(&message, limits)?;
        let identity = scan.identity_of(own.key.clone(), own.uid, own.resource_version.clone(), limits)?;
        let origin = self.record.origin.omitting(omissions);
        let content = Content::raw(Encoded::protobuf(message));
        Ok(Self::from_record(Record { origin, identity, fields: None, content, views: KeptViews::default() }))
    }

    /// The object with its identity and without its content.
    pub fn without_content(&self) -> Self {
        let identity = self.record.identity.clone();
        let origin = self.record.origin.omitting(&Omissions::content());
        // Never decoded, but compared: after a restore, two states may have the same version.
        let own = self.record.content.read();
        let fingerprint = own.map_or(0, |own| fingerprint(&own.bytes));
        let content = Content::raw(Encoded::json(Bytes::copy_from_slice(&fingerprint.to_be_bytes())));
        Self::from_record(Record { origin, identity, fields: None, content, views: KeptViews::default() })
    }

    /// Size of the encoded content in bytes.
    pub fn content_len(&self) -> usize {
        self.record.content.raw_len()
    }

    /// Size on the heap in bytes; shared allocations count in full, content that is not in memory does not.
    pub fn heap_size(&self) -> usize {
        let identity = &self.record.identity;
        self.own_size()
            + identity.labels.heap_size()
            + identity.controller.as_ref().map_or(0, |_| size_of::<Owner>())
            + if self.is_content_in_memory() { self.record.content.packed_len() } else { 0 }
    }

    /// Whether reading the content neither blocks nor fails, because it is in memory. With
    /// [`Storage::Disk`](crate::Storage::Disk) that changes all the time. The content of a restored object is in the file of
    /// the saved cache at first, and is moved into memory in the background.
    pub fn is_content_in_memory(&self) -> bool {
        self.record.content.is_in_memory()
    }

    /// Whether the content is in a file and could not be read when that was last tried. The informer fetches the object again.
    pub fn is_content_lost(&self) -> bool {
        self.record.content.is_lost()
    }

    /// Bytes of the views that are kept with this object.
    pub fn views_size(&self) -> usize {
        self.record.views.size()
    }

    /// Bytes of content that is not packed, and lies in an allocation of this object alone. It never changes.
    pub fn unpacked_size(&self) -> usize {
        self.record.content.own_len()
    }

    /// Bytes in allocations of this object alone: without labels, owner and fields, which are shared, and without packed
    /// content ([`Packer::usage`] counts these). It never changes.
    pub fn own_size(&self) -> usize {
        2 * size_of::<usize>() + size_of::<Record>() + self.key().heap_size() + self.unpacked_size()
    }
}

impl<T: DeserializeOwned + Send + Sync + 'static> Object<T> {
    /// Decodes the whole object, or returns the cached value. Blocks if the content is in a file
    /// ([`is_content_in_memory`](Self::is_content_in_memory)), and may fail then.
    pub fn decode(&self) -> Result<Arc<T>, DecodeError> {
        let Record { origin, content, .. } = &*self.record;
        if origin.kind().is_secret() {
            return self.view().map(Arc::new);
        }
        let cell = content.decoded_cell();
        let known = cell.and_then(OnceLock::get).and_then(KeptValue::get);
        if let Some(known) = known.or_else(|| origin.decode_cache().get(&self.record)) {
            return Ok(known);
        }
        let value: Arc<T> = self.view().map(Arc::new)?;
        // There is no cell, or it holds a value of another type: put this one in the shared cache.
        let keep = || KeptValue::new(Arc::clone(&value) as AnyValue);
        if cell.is_none_or(|cell| cell.set(keep()).is_err()) {
            origin.decode_cache().put(&self.record, Arc::clone(&value) as AnyValue, content.raw_len());
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
