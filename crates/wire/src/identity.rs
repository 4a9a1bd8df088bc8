//! Reads the identity of an object without decoding its content.
//!
//! One pass over the JSON reads the identity and skips the rest. It is lenient on purpose: a label map that is a string
//! counts as absent and marks the identity as malformed, so that the object is still cached. Only a missing or invalid
//! name makes the whole object malformed. Skipped values are not checked to be JSON: that is left to the caller that
//! decodes them.

mod protobuf;

use crate::{
    Labels, Limits, ObjectKey, Owner, ResourceVersion, Uid,
    json::{Cursor, Syntax, Type},
};
use std::{borrow::Cow, sync::Arc};

/// The identity of an object. A transform cannot change key, uid and version.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) labels: Labels,
    pub(crate) controller: Option<Arc<Owner>>,
    pub(crate) generation: Generation,
    pub(crate) deleting: bool,
    /// Whether a part of the identity had a type that the API does not allow, and was left out.
    pub(crate) malformed: bool,
}

/// The generation of an object, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(i64);

impl Generation {
    /// Servers count generations up from 1.
    const NONE: Self = Self(i64::MIN);

    pub(crate) fn get(self) -> Option<i64> {
        (self != Self::NONE).then_some(self.0)
    }
}

impl From<Option<i64>> for Generation {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::NONE, Self)
    }
}

/// An item or event whose identity cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {reason}")]
#[non_exhaustive]
pub struct Malformed {
    /// The reason, without any content.
    pub reason: String,
    /// Its resource version, if that could be read: a stream can resume there.
    pub resource_version: Option<ResourceVersion>,
    /// The key of the object, if that could be read.
    pub key: Option<ObjectKey>,
}

impl Malformed {
    /// One of which neither version nor key is known.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), resource_version: None, key: None }
    }

    /// Sets the resource version.
    pub fn at(self, resource_version: Option<ResourceVersion>) -> Self {
        Self { resource_version, ..self }
    }

    /// An object that is too large; only its beginning is known.
    pub(crate) fn oversized(beginning: &[u8], limits: &Limits) -> Self {
        Self::scanned(format!("it is larger than {} bytes", limits.object_bytes), beginning, limits)
    }

    /// A protobuf message that is too large; only its beginning is known.
    pub(crate) fn oversized_protobuf(beginning: &[u8], limits: &Limits) -> Self {
        let reason = format!("it is larger than {} bytes", limits.object_bytes);
        Self::scanned_protobuf(&reason, beginning, limits)
    }

    /// Reads version and key as far as `message` is valid.
    pub(crate) fn scanned_protobuf(reason: &str, message: &[u8], limits: &Limits) -> Self {
        let (scan, _) = Scan::read_some_protobuf(message, limits);
        Self::of_scan(reason.to_owned(), &scan)
    }

    /// An object that is nested too deeply.
    pub(crate) fn too_deep(json: &[u8], limits: &Limits) -> Self {
        Self::scanned(format!("it is nested deeper than {} levels", limits.object_depth()), json, limits)
    }

    /// Reads version and key as far as `json` is valid.
    pub(crate) fn scanned(reason: String, json: &[u8], limits: &Limits) -> Self {
        let (scan, _) = Scan::read_some(json, limits);
        Self::of_scan(reason, &scan)
    }

    fn of_scan(reason: String, scan: &Scan<'_>) -> Self {
        let resource_version = scan.resource_version();
        // Servers write the namespace between name and version, so without a version the namespace may be missing too.
        let read = scan.meta.as_ref().filter(|_| resource_version.is_some());
        let key = read.and_then(|meta| meta.key().ok());
        Self { reason, resource_version, key }
    }
}

/// Whether an object has a `kind` or an `apiVersion`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    #[default]
    Absent,
    /// Empty, or not a string.
    Invalid,
    Present,
}

/// The result of one pass over an encoded object.
#[derive(Default)]
pub(crate) struct Scan<'a> {
    pub(crate) kind: Presence,
    pub(crate) api_version: Presence,
    meta: Option<Meta<'a>>,
    malformed: bool,
}

/// The parts of `metadata` that make up the identity.
#[derive(Default)]
struct Meta<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
    /// At most one label more than the limit.
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    generation: Option<i64>,
    deleting: bool,
    controller: Option<Owner>,
    initial_events_end: bool,
}

impl<'a> Scan<'a> {
    /// Reads a complete object.
    pub(crate) fn read(json: &'a [u8], limits: &Limits) -> Result<Self, Malformed> {
        let (scan, end) = Self::read_some(json, limits);
        match end {
            Ok(()) => Ok(scan),
            Err(Syntax { at, expected }) => {
                let reason =
                    format!("not a JSON object (expected {expected} at byte {at} of {})", json.len());
                Err(Malformed::new(reason).at(scan.resource_version()))
            }
        }
    }

    /// Reads up to the first syntax error.
    pub(crate) fn read_some(json: &'a [u8], limits: &Limits) -> (Self, Result<(), Syntax>) {
        let mut scan = Self::default();
        let mut cursor = Cursor::new(json, limits.object_depth());
        let end = scan.fields(&mut cursor, limits).and_then(|()| cursor.end());
        (scan, end)
    }

    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        let version = self.meta.as_ref()?.resource_version.as_deref()?;
        (!version.is_empty()).then(|| version.into())
    }

    /// Whether the object has the annotation that marks the end of the initial events of a streaming list.
    pub(crate) fn initial_events_end(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.initial_events_end)
    }

    /// The identity of an object from a server.
    pub(crate) fn identity(self, limits: &Limits) -> Result<Identity, Malformed> {
        let resource_version = self.resource_version();
        let meta = self.meta.as_ref();
        let key = meta.ok_or("it has no metadata").and_then(Meta::key);
        let key = key.map_err(|reason| Malformed::new(reason).at(resource_version.clone()))?;
        let uid = Uid::from(meta.and_then(|meta| meta.uid.as_deref()).unwrap_or_default());
        self.identity_of(key, uid, resource_version.unwrap_or_else(ResourceVersion::unset), limits)
    }

    /// The identity of an object whose key, uid and version are known; the rest is as read.
    pub(crate) fn identity_of(
        self,
        key: ObjectKey,
        uid: Uid,
        resource_version: ResourceVersion,
        limits: &Limits,
    ) -> Result<Identity, Malformed> {
        let meta = self.meta.unwrap_or_default();
        if meta.labels.len() > limits.labels {
            let version = Some(resource_version).filter(|version| !version.is_unset());
            return Err(Malformed { key: Some(key), ..Malformed::new("it has too many labels").at(version) });
        }
        Ok(Identity {
            key,
            uid,
            resource_version,
            labels: Labels::new(meta.labels),
            generation: meta.generation.into(),
            deleting: meta.deleting,
            controller: meta.controller.map(Arc::new),
            malformed: self.malformed,
        })
    }

    fn fields(&mut self, cursor: &mut Cursor<'a>, limits: &Limits) -> Result<(), Syntax> {
        cursor.object(|cursor, key| match &*key {
            b"kind" => presence(cursor, &mut self.malformed).map(|kind| self.kind = kind),
            b"apiVersion" => presence(cursor, &mut self.malformed).map(|version| self.api_version = version),
            b"metadata" => {
                self.meta = None;
                if expect(cursor, Type::Object, &mut self.malformed)? {
                    self.meta.insert(Meta::default()).fields(cursor, limits, &mut self.malformed)?;
                }
                Ok(())
            }
            _ => cursor.skip_unchecked(),
        })
    }
}

impl<'a> Meta<'a> {
    /// Namespace and name, or the reason why there is none.
    fn key(&self) -> Result<ObjectKey, &'static str> {
        let name = self.name.as_deref().unwrap_or_default();
        let namespace = self.namespace.as_deref();
        if name.is_empty() {
            return Err("it has no name");
        }
        if name.contains('/') || namespace.is_some_and(|namespace| namespace.contains('/')) {
            return Err("its name or namespace contains a slash");
        }
        Ok(ObjectKey::new(namespace, name))
    }

    fn fields(
        &mut self,
        cursor: &mut Cursor<'a>,
        limits: &Limits,
        malformed: &mut bool,
    ) -> Result<(), Syntax> {
        cursor.object(|cursor, key| {
            match &*key {
                b"name" => self.name = text(cursor, malformed)?,
                b"namespace" => self.namespace = text(cursor, malformed)?,
                b"uid" => self.uid = text(cursor, malformed)?,
                b"resourceVersion" => self.resource_version = text(cursor, malformed)?,
                b"deletionTimestamp" => self.deleting = text(cursor, malformed)?.is_some(),
                b"generation" => self.generation = number(cursor, malformed)?,
                b"labels" => self.labels(cursor, limits, malformed)?,
                b"annotations" => self.annotations(cursor, malformed)?,
                b"ownerReferences" => self.owners(cursor, malformed)?,
                _ => cursor.skip_unchecked()?,
            }
            Ok(())
        })
    }

    fn labels(
        &mut self,
        cursor: &mut Cursor<'a>,
        limits: &Limits,
        malformed: &mut bool,
    ) -> Result<(), Syntax> {
        self.labels.clear();
        if !expect(cursor, Type::Object, malformed)? {
            return Ok(());
        }
        cursor.object(|cursor, key| {
            if self.labels.len() > limits.labels {
                return cursor.skip();
            }
            match (utf8(key), text(cursor, malformed)?) {
                (Some(key), Some(value)) => self.labels.push((key, value)),
                (None, _) => *malformed = true,
                (Some(_), None) => {}
            }
            Ok(())
        })
    }

    /// Looks for the annotation that marks the end of the initial events; only "true" counts.
    fn annotations(&mut self, cursor: &mut Cursor<'a>, malformed: &mut bool) -> Result<(), Syntax> {
        self.initial_events_end = false;
        if !expect(cursor, Type::Object, malformed)? {
            return Ok(());
        }
        cursor.object(|cursor, key| {
            if &*key == b"k8s.io/initial-events-end" {
                self.initial_events_end = text(cursor, malformed)?.is_some_and(|value| value == "true");
                return Ok(());
            }
            *malformed |= !matches!(cursor.peek_type()?, Type::Text | Type::Null);
            cursor.skip()
        })
    }

    /// Keeps the first owner reference that is a controller.
    fn owners(&mut self, cursor: &mut Cursor<'a>, malformed: &mut bool) -> Result<(), Syntax> {
        self.controller = None;
        if !expect(cursor, Type::Array, malformed)? {
            return Ok(());
        }
        cursor.array(|cursor, _| {
            if cursor.peek_type()? != Type::Object {
                *malformed = true;
                return cursor.skip();
            }
            let owner = owner(cursor, malformed)?;
            self.controller = self.controller.take().or(owner);
            Ok(())
        })
    }
}

/// One owner reference, if it is a controller.
fn owner(cursor: &mut Cursor<'_>, malformed: &mut bool) -> Result<Option<Owner>, Syntax> {
    let (mut api_version, mut kind, mut name, mut uid) = (None, None, None, None);
    let mut controller = false;
    cursor.object::<Syntax>(|cursor, key| {
        match &*key {
            b"apiVersion" => api_version = text(cursor, malformed)?,
            b"kind" => kind = text(cursor, malformed)?,
            b"name" => name = text(cursor, malformed)?,
            b"uid" => uid = text(cursor, malformed)?,
            b"controller" => controller = flag(cursor, malformed)?,
            _ => cursor.skip_unchecked()?,
        }
        Ok(())
    })?;
    Ok(match (api_version, kind, name, uid) {
        (Some(api_version), Some(kind), Some(name), Some(uid)) if controller => Some(Owner {
            api_version: api_version.as_ref().into(),
            kind: kind.as_ref().into(),
            name: name.as_ref().into(),
            uid: uid.as_ref().into(),
        }),
        _ => None,
    })
}

/// Whether the next value has the wanted type. Otherwise skips it, and unless it is null marks the identity as malformed.
fn expect(cursor: &mut Cursor<'_>, wanted: Type, malformed: &mut bool) -> Result<bool, Syntax> {
    let found = cursor.peek_type()?;
    if found == wanted {
        return Ok(true);
    }
    *malformed |= found != Type::Null;
    cursor.skip()?;
    Ok(false)
}

fn text<'a>(cursor: &mut Cursor<'a>, malformed: &mut bool) -> Result<Option<Cow<'a, str>>, Syntax> {
    if !expect(cursor, Type::Text, malformed)? {
        return Ok(None);
    }
    let text = cursor.string()?.text();
    *malformed |= text.is_none();
    Ok(text)
}

fn number(cursor: &mut Cursor<'_>, malformed: &mut bool) -> Result<Option<i64>, Syntax> {
    if !expect(cursor, Type::Number, malformed)? {
        return Ok(None);
    }
    let number = std::str::from_utf8(cursor.span()?).ok().and_then(|digits| digits.parse().ok());
    *malformed |= number.is_none();
    Ok(number)
}

fn flag(cursor: &mut Cursor<'_>, malformed: &mut bool) -> Result<bool, Syntax> {
    Ok(expect(cursor, Type::Flag, malformed)? && cursor.span()? == b"true")
}

fn presence(cursor: &mut Cursor<'_>, malformed: &mut bool) -> Result<Presence, Syntax> {
    let text = text(cursor, malformed)?;
    Ok(if text.is_some_and(|text| !text.is_empty()) { Presence::Present } else { Presence::Invalid })
}

fn utf8(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}
