//! One version of one object.

use crate::{
    Bookmark, FieldPath, FieldPaths, Kind, Labels, Limits, ObjectKey, Origin, Owner, Prune, ResourceVersion,
    Uid, Unreadable,
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

    /// The object as JSON, with `apiVersion` and `kind`.
    pub fn json(&self) -> Result<Bytes, DecodeError> {
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

    /// The object as it is kept: its content packed if that pays, and in any case in one allocation of its own,
    /// so that it does not keep a larger buffer alive.
    pub fn pack(self, packer: &Packer) -> Self {
        self.pack_with(packer, &FieldPaths::default())
    }

    /// The same; and `fields` are read before that and kept with the object, so that whoever needs them later need
    /// not unpack it.
    pub fn pack_with(mut self, packer: &Packer, fields: &FieldPaths) -> Self {
        let Some(record) = Arc::get_mut(&mut self.record) else { return self };
        if !fields.is_empty() {
            record.fields = record.content.read().and_then(|json| fields.read(&json).ok()).map(Arc::new);
        }
        packer.share(&mut record.identity, &mut record.fields);
        let secret = record.origin.kind().is_secret();
        let raw = std::mem::replace(&mut record.content, Content::Raw(Bytes::new()));
        record.content = packer.pack(raw, secret);
        self
    }

    /// The fields that [`pack_with`](Self::pack_with) found, in the order of the paths; none if it found none.
    pub fn packed_fields(&self) -> Option<&[Vec<Value>]> {
        self.record.fields.as_deref().map(Vec::as_slice)
    }

    /// The object with other content. Key, uid and version stay; labels, generation, deletion and controller
    /// are read anew. The content need not say who the object is.
    pub fn with_content(&self, json: Bytes, limits: &Limits) -> Result<Self, Unreadable> {
        let (own, origin) = (&self.record.identity, &self.record.origin);
        let scan = scan(&json, limits)?;
        let type_meta = (scan.kind, scan.api_version);
        let identity = scan.identity_of(own.key.clone(), own.uid, own.resource_version.clone(), limits)?;
        let content = Content::Raw(complete(origin, json, type_meta)?);
        Ok(Self::from_record(Record { origin: Arc::clone(origin), identity, fields: None, content }))
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

    /// A JSON patch from this object to what `change` makes of it, guarded by the resource version: the server
    /// answers 409 if the object has moved on. Fields that nobody here knows stay as they are.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) -> Result<json_patch::Patch, DecodeError> {
        let before: Value = self.view()?;
        let mut after = before.clone();
        change(&mut after);
        let mut patch = json_patch::diff(&before, &after);
        if let Some(version) = before.pointer("/metadata/resourceVersion") {
            let path = json_patch::jsonptr::PointerBuf::from_tokens(["metadata", "resourceVersion"]);
            let test = json_patch::TestOperation { path, value: version.clone() };
            patch.0.insert(0, json_patch::PatchOperation::Test(test));
        }
        Ok(patch)
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

/// The content of an object is not what the reader expects. Names where and what, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {key} at version {version}: cannot read {path}: expected {expected}")]
pub struct DecodeError {
    /// Kind of the object.
    pub kind: String,
    /// Key of the object.
    pub key: ObjectKey,
    /// Version of the object.
    pub version: ResourceVersion,
    /// Path of the field that cannot be read; `.` is the whole object.
    pub path: String,
    /// What the reading type expects there.
    pub expected: String,
}

impl DecodeError {
    /// Memory was damaged, or there is a mistake in here: what was packed does not unpack.
    fn unpackable<T>(object: &Object<T>) -> Self {
        Self::at(object, ".".to_owned(), "content that unpacks".to_owned())
    }

    fn at<T>(object: &Object<T>, path: String, expected: String) -> Self {
        let (kind, key) = (object.kind().kind.clone(), object.key().clone());
        Self { kind, key, version: object.resource_version().clone(), path, expected }
    }

    /// Reads once more, slowly, to learn where it fails: only failures pay for the path.
    fn locate<V: DeserializeOwned, T>(object: &Object<T>, content: &[u8]) -> Self {
        let reader = &mut serde_json::Deserializer::from_slice(content);
        let (path, expected) = match serde_path_to_error::deserialize::<_, V>(reader) {
            Err(error) => (error.path().to_string(), expectation(&error.inner().to_string())),
            Ok(_) => (".".to_owned(), "nothing after the object".to_owned()),
        };
        Self::at(object, path, expected)
    }
}

/// What the reader expected, from the message of serde, which may quote the offending value before it.
fn expectation(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    if message.starts_with("missing field ") {
        return format!("no {message}").replacen("no missing", "the", 1);
    }
    let by_serde =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant ", "unknown field "];
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if by_serde.iter().any(|start| message.starts_with(start)) => expected.to_owned(),
        _ => "a valid value".to_owned(),
    }
}

#[cfg(test)]
mod tests;
