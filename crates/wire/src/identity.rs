//! Reading who an object is without reading what it is.
//!
//! One pass over the JSON picks out the identity and skips the rest. It is lenient on purpose: a label map that
//! is a string makes the object *odd*, not unreadable, so that one strange object can never hide another one,
//! nor itself. Only a missing or impossible name does. What is skipped is followed by its brackets and quotes
//! only: whether it is JSON concerns whoever decodes it.

use crate::{
    Labels, Limits, ObjectKey, Owner, ResourceVersion, Uid,
    json::{Cursor, Syntax, Type},
};
use std::{borrow::Cow, sync::Arc};

/// Who an object is. What a transform cannot change.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) labels: Labels,
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    pub(crate) controller: Option<Arc<Owner>>,
    /// A part of the identity had a type that the API does not allow and was left out.
    pub(crate) odd: bool,
}

/// Something on the wire that is not an object with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {reason}")]
#[non_exhaustive]
pub struct Unreadable {
    /// Why, without any of the content.
    pub reason: String,
    /// The version it carried, if that much could be read: a stream can go on after it.
    pub resource_version: Option<ResourceVersion>,
    /// The object it is about, if that much could be read.
    pub key: Option<ObjectKey>,
}

impl Unreadable {
    /// Something unreadable that carries neither a version nor a name.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), resource_version: None, key: None }
    }

    /// The same, with a version.
    pub fn at(self, resource_version: Option<ResourceVersion>) -> Self {
        Self { resource_version, ..self }
    }

    /// An object that is too large, of which only a beginning is there.
    pub(crate) fn oversized(beginning: &[u8], limits: &Limits) -> Self {
        Self::scanned(format!("it is larger than {} bytes", limits.object_bytes), beginning, limits)
    }

    /// An object that is nested too deeply.
    pub(crate) fn too_deep(json: &[u8], limits: &Limits) -> Self {
        Self::scanned(format!("it is nested deeper than {} levels", limits.object_depth()), json, limits)
    }

    /// Something unreadable, with the version that stands before the place where reading ends.
    pub(crate) fn scanned(reason: String, json: &[u8], limits: &Limits) -> Self {
        let (scan, _) = Scan::read_some(json, limits);
        let resource_version = scan.resource_version();
        // Servers write the namespace between name and version: where there is no version yet, one may be missing.
        let read = scan.meta.as_ref().filter(|_| resource_version.is_some());
        let key = read.and_then(|meta| meta.key().ok());
        Self { reason, resource_version, key }
    }
}

/// Whether an object says what it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// Not at all.
    #[default]
    No,
    /// With an empty value, or one that is no text.
    Badly,
    Yes,
}

/// What one pass over an encoded object finds.
#[derive(Default)]
pub(crate) struct Scan<'a> {
    pub(crate) kind: Said,
    pub(crate) api_version: Said,
    meta: Option<Meta<'a>>,
    odd: bool,
}

/// The parts of `metadata` that make up the identity.
#[derive(Default)]
struct Meta<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
    /// At most one more than the limit.
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    generation: Option<i64>,
    deleting: bool,
    controller: Option<Owner>,
    initial_events_end: bool,
}

impl<'a> Scan<'a> {
    /// Reads a complete object.
    pub(crate) fn read(json: &'a [u8], limits: &Limits) -> Result<Self, Unreadable> {
        let (scan, end) = Self::read_some(json, limits);
        match end {
            Ok(()) => Ok(scan),
            Err(Syntax { at, expected }) => {
                let reason =
                    format!("not a JSON object (expected {expected} at byte {at} of {})", json.len());
                Err(Unreadable::new(reason).at(scan.resource_version()))
            }
        }
    }

    /// Reads as far as the text is JSON.
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

    /// Whether the object carries the mark that ends the initial events of a streaming list.
    pub(crate) fn initial_events_end(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.initial_events_end)
    }

    /// The identity of an object that has just arrived.
    pub(crate) fn identity(self, limits: &Limits) -> Result<Identity, Unreadable> {
        let resource_version = self.resource_version();
        let meta = self.meta.as_ref();
        let key = meta.ok_or("it has no metadata").and_then(Meta::key);
        let key = key.map_err(|reason| Unreadable::new(reason).at(resource_version.clone()))?;
        let uid = Uid::from(meta.and_then(|meta| meta.uid.as_deref()).unwrap_or_default());
        self.identity_of(key, uid, resource_version.unwrap_or_else(ResourceVersion::unset), limits)
    }

    /// The identity of an object whose key, uid and version are known, and everything else is as read.
    pub(crate) fn identity_of(
        self,
        key: ObjectKey,
        uid: Uid,
        resource_version: ResourceVersion,
        limits: &Limits,
    ) -> Result<Identity, Unreadable> {
        let meta = self.meta.unwrap_or_default();
        if meta.labels.len() > limits.labels {
            let version = Some(resource_version).filter(|version| !version.is_unset());
            return Err(Unreadable {
                key: Some(key),
                ..Unreadable::new("it has too many labels").at(version)
            });
        }
        Ok(Identity {
            key,
            uid,
            resource_version,
            labels: Labels::new(meta.labels),
            generation: meta.generation,
            deleting: meta.deleting,
            controller: meta.controller.map(Arc::new),
            odd: self.odd,
        })
    }

    fn fields(&mut self, cursor: &mut Cursor<'a>, limits: &Limits) -> Result<(), Syntax> {
        cursor.object(|cursor, key| match &*key {
            b"kind" => said(cursor, &mut self.odd).map(|kind| self.kind = kind),
            b"apiVersion" => said(cursor, &mut self.odd).map(|version| self.api_version = version),
            b"metadata" => {
                self.meta = None;
                if expect(cursor, Type::Object, &mut self.odd)? {
                    self.meta.insert(Meta::default()).fields(cursor, limits, &mut self.odd)?;
                }
                Ok(())
            }
            _ => cursor.skip_unchecked(),
        })
    }
}

impl<'a> Meta<'a> {
    /// Namespace and name, or why there are none.
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

    fn fields(&mut self, cursor: &mut Cursor<'a>, limits: &Limits, odd: &mut bool) -> Result<(), Syntax> {
        cursor.object(|cursor, key| {
            match &*key {
                b"name" => self.name = text(cursor, odd)?,
                b"namespace" => self.namespace = text(cursor, odd)?,
                b"uid" => self.uid = text(cursor, odd)?,
                b"resourceVersion" => self.resource_version = text(cursor, odd)?,
                b"deletionTimestamp" => self.deleting = text(cursor, odd)?.is_some(),
                b"generation" => self.generation = number(cursor, odd)?,
                b"labels" => self.labels(cursor, limits, odd)?,
                b"annotations" => self.annotations(cursor, odd)?,
                b"ownerReferences" => self.owners(cursor, odd)?,
                _ => cursor.skip_unchecked()?,
            }
            Ok(())
        })
    }

    fn labels(&mut self, cursor: &mut Cursor<'a>, limits: &Limits, odd: &mut bool) -> Result<(), Syntax> {
        self.labels.clear();
        if !expect(cursor, Type::Object, odd)? {
            return Ok(());
        }
        cursor.object(|cursor, key| {
            if self.labels.len() > limits.labels {
                return cursor.skip();
            }
            match (utf8(key), text(cursor, odd)?) {
                (Some(key), Some(value)) => self.labels.push((key, value)),
                (None, _) => *odd = true,
                (Some(_), None) => {}
            }
            Ok(())
        })
    }

    /// Only the mark that ends a streaming list is of interest here, and only "true" counts.
    fn annotations(&mut self, cursor: &mut Cursor<'a>, odd: &mut bool) -> Result<(), Syntax> {
        self.initial_events_end = false;
        if !expect(cursor, Type::Object, odd)? {
            return Ok(());
        }
        cursor.object(|cursor, key| {
            if &*key == b"k8s.io/initial-events-end" {
                self.initial_events_end = text(cursor, odd)?.is_some_and(|value| value == "true");
                return Ok(());
            }
            *odd |= !matches!(cursor.peek_type()?, Type::Text | Type::Null);
            cursor.skip()
        })
    }

    /// Of the owner references only the first that controls is kept.
    fn owners(&mut self, cursor: &mut Cursor<'a>, odd: &mut bool) -> Result<(), Syntax> {
        self.controller = None;
        if !expect(cursor, Type::Array, odd)? {
            return Ok(());
        }
        cursor.array(|cursor, _| {
            if cursor.peek_type()? != Type::Object {
                *odd = true;
                return cursor.skip();
            }
            let owner = owner(cursor, odd)?;
            self.controller = self.controller.take().or(owner);
            Ok(())
        })
    }
}

/// One owner reference, if it is that of the controller.
fn owner(cursor: &mut Cursor<'_>, odd: &mut bool) -> Result<Option<Owner>, Syntax> {
    let (mut api_version, mut kind, mut name, mut uid) = (None, None, None, None);
    let mut controller = false;
    cursor.object::<Syntax>(|cursor, key| {
        match &*key {
            b"apiVersion" => api_version = text(cursor, odd)?,
            b"kind" => kind = text(cursor, odd)?,
            b"name" => name = text(cursor, odd)?,
            b"uid" => uid = text(cursor, odd)?,
            b"controller" => controller = flag(cursor, odd)?,
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

/// Whether the next value is of the wanted type. If not it is skipped, and odd unless it is null.
fn expect(cursor: &mut Cursor<'_>, wanted: Type, odd: &mut bool) -> Result<bool, Syntax> {
    let found = cursor.peek_type()?;
    if found == wanted {
        return Ok(true);
    }
    *odd |= found != Type::Null;
    cursor.skip()?;
    Ok(false)
}

fn text<'a>(cursor: &mut Cursor<'a>, odd: &mut bool) -> Result<Option<Cow<'a, str>>, Syntax> {
    if !expect(cursor, Type::Text, odd)? {
        return Ok(None);
    }
    let text = cursor.string()?.text();
    *odd |= text.is_none();
    Ok(text)
}

fn number(cursor: &mut Cursor<'_>, odd: &mut bool) -> Result<Option<i64>, Syntax> {
    if !expect(cursor, Type::Number, odd)? {
        return Ok(None);
    }
    let number = std::str::from_utf8(cursor.span()?).ok().and_then(|digits| digits.parse().ok());
    *odd |= number.is_none();
    Ok(number)
}

fn flag(cursor: &mut Cursor<'_>, odd: &mut bool) -> Result<bool, Syntax> {
    Ok(expect(cursor, Type::Flag, odd)? && cursor.span()? == b"true")
}

fn said(cursor: &mut Cursor<'_>, odd: &mut bool) -> Result<Said, Syntax> {
    let text = text(cursor, odd)?;
    Ok(if text.is_some_and(|text| !text.is_empty()) { Said::Yes } else { Said::Badly })
}

fn utf8(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}
