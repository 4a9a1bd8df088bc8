//! Reading who an object is without reading what it is.
//!
//! One pass over the JSON picks out the identity and skips the rest. It is lenient on purpose: a label map that
//! is a string makes the object *odd*, not unreadable, so that one strange object can never hide another one,
//! nor itself. Only a missing or impossible name does.

use crate::{Labels, Limits, ObjectKey, Owner, ResourceVersion, Uid};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::{borrow::Cow, fmt};

/// Who an object is. What a transform cannot change.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) labels: Labels,
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    pub(crate) controller: Option<Box<Owner>>,
    /// A part of the identity had a type that the API does not allow and was left out.
    pub(crate) odd: bool,
}

/// Something on the wire that is not an object with a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {reason}")]
pub struct Unreadable {
    /// Why, without any of the content.
    pub reason: String,
    /// The version it carried, if that much could be read: a stream can go on after it.
    pub resource_version: Option<ResourceVersion>,
}

impl Unreadable {
    /// Something unreadable that carries no version.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), resource_version: None }
    }
}

/// What one pass over an encoded object finds.
#[derive(Debug, Default)]
pub(crate) struct Scan<'a> {
    pub(crate) has_kind: bool,
    pub(crate) has_api_version: bool,
    pub(crate) initial_events_end: bool,
    meta: Option<Meta<'a>>,
    odd: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn read(json: &'a [u8]) -> Result<Self, Unreadable> {
        // The error text of serde_json may quote the input, which may be a secret: only its position is kept.
        serde_json::from_slice(json).map_err(|e| {
            Unreadable::new(format!("not a JSON object (line {}, column {})", e.line(), e.column()))
        })
    }

    pub(crate) fn resource_version(&self) -> Option<ResourceVersion> {
        let version = self.meta.as_ref()?.resource_version.as_deref()?;
        (!version.is_empty()).then(|| version.into())
    }

    pub(crate) fn identity(self, limits: &Limits) -> Result<Identity, Unreadable> {
        let resource_version = self.resource_version();
        let unreadable =
            |reason: &str| Unreadable { reason: reason.into(), resource_version: resource_version.clone() };
        let meta = self.meta.ok_or_else(|| unreadable("it has no metadata"))?;
        let name = meta.name.as_deref().unwrap_or_default();
        let namespace = meta.namespace.as_deref();
        if name.is_empty() {
            return Err(unreadable("it has no name"));
        }
        if name.contains('/') || namespace.is_some_and(|ns| ns.contains('/')) {
            return Err(unreadable("its name or namespace contains a slash"));
        }
        if meta.labels.len() > limits.labels {
            return Err(unreadable("it has too many labels"));
        }
        Ok(Identity {
            key: ObjectKey::new(namespace, name),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            resource_version: resource_version.unwrap_or_else(ResourceVersion::unset),
            labels: Labels::new(meta.labels),
            generation: meta.generation,
            deleting: meta.deleting,
            controller: meta.controller.map(Box::new),
            odd: self.odd || meta.odd,
        })
    }
}

impl<'de> Deserialize<'de> for Scan<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScanVisitor;
        impl<'de> Visitor<'de> for ScanVisitor {
            type Value = Scan<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scan<'de>, A::Error> {
                let mut scan = Scan::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match &*key.0 {
                        "kind" => scan.has_kind = !text(&mut map, &mut scan.odd)?.unwrap_or_default().is_empty(),
                        "apiVersion" => {
                            scan.has_api_version = !text(&mut map, &mut scan.odd)?.unwrap_or_default().is_empty();
                        }
                        "metadata" => {
                            let meta = map.next_value::<Lenient<Meta<'de>>>()?;
                            scan.odd |= matches!(meta, Lenient::Odd);
                            scan.meta = meta.into_option();
                            if let Some(meta) = &scan.meta {
                                scan.initial_events_end = meta.initial_events_end;
                            }
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(scan)
            }
        }
        deserializer.deserialize_map(ScanVisitor)
    }
}

/// The parts of `metadata` that make up the identity.
#[derive(Debug, Default)]
struct Meta<'a> {
    name: Option<Cow<'a, str>>,
    namespace: Option<Cow<'a, str>>,
    uid: Option<Cow<'a, str>>,
    resource_version: Option<Cow<'a, str>>,
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    generation: Option<i64>,
    deleting: bool,
    controller: Option<Owner>,
    initial_events_end: bool,
    odd: bool,
}

impl<'de> FromMap<'de> for Meta<'de> {
    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut meta = Meta::default();
        let mut odd = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key.0 {
                "name" => meta.name = text(&mut map, &mut odd)?,
                "namespace" => meta.namespace = text(&mut map, &mut odd)?,
                "uid" => meta.uid = text(&mut map, &mut odd)?,
                "resourceVersion" => meta.resource_version = text(&mut map, &mut odd)?,
                "deletionTimestamp" => meta.deleting = text(&mut map, &mut odd)?.is_some(),
                "generation" => meta.generation = lenient::<Number, _>(&mut map, &mut odd)?.map(|n| n.0),
                "labels" => {
                    let labels = lenient::<Texts<'de>, _>(&mut map, &mut odd)?.unwrap_or_default();
                    odd |= labels.odd;
                    meta.labels = labels.pairs;
                }
                "annotations" => {
                    // Only the mark that ends a streaming list is of interest here, and only "true" counts.
                    let annotations = lenient::<Texts<'de>, _>(&mut map, &mut odd)?.unwrap_or_default();
                    odd |= annotations.odd;
                    meta.initial_events_end = annotations
                        .pairs
                        .iter()
                        .any(|(key, value)| key == "k8s.io/initial-events-end" && value == "true");
                }
                "ownerReferences" => {
                    let owners = lenient::<Owners, _>(&mut map, &mut odd)?.unwrap_or_default();
                    odd |= owners.odd;
                    meta.controller = owners.controller;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        meta.odd = odd;
        Ok(meta)
    }
}

/// A map of texts; entries of other types make it odd and are left out.
#[derive(Default)]
struct Texts<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    odd: bool,
}

impl<'de> FromMap<'de> for Texts<'de> {
    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut texts = Texts::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if let Some(value) = text(&mut map, &mut texts.odd)? {
                texts.pairs.push((key.0, value));
            }
        }
        Ok(texts)
    }
}

/// The owner references, of which only the controlling one is kept.
#[derive(Default)]
struct Owners {
    controller: Option<Owner>,
    odd: bool,
}

/// One owner reference.
struct OwnerRef {
    owner: Option<Owner>,
    odd: bool,
}

impl<'de> FromMap<'de> for OwnerRef {
    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut api_version, mut kind, mut name, mut uid) = (None, None, None, None);
        let (mut controller, mut odd) = (false, false);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key.0 {
                "apiVersion" => api_version = text(&mut map, &mut odd)?,
                "kind" => kind = text(&mut map, &mut odd)?,
                "name" => name = text(&mut map, &mut odd)?,
                "uid" => uid = text(&mut map, &mut odd)?,
                "controller" => controller = lenient::<Flag, _>(&mut map, &mut odd)?.is_some_and(|f| f.0),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let owner = match (api_version, kind, name, uid) {
            (Some(api_version), Some(kind), Some(name), Some(uid)) if controller => Some(Owner {
                api_version: api_version.as_ref().into(),
                kind: kind.as_ref().into(),
                name: name.as_ref().into(),
                uid: uid.as_ref().into(),
            }),
            _ => None,
        };
        Ok(OwnerRef { owner, odd })
    }
}

/// A value of the wanted type, null, or of another type.
enum Lenient<T> {
    Good(T),
    Null,
    Odd,
}

impl<T> Lenient<T> {
    fn into_option(self) -> Option<T> {
        match self {
            Self::Good(value) => Some(value),
            Self::Null | Self::Odd => None,
        }
    }
}

/// Reads the next value; one of another type sets `odd` and is left out.
fn lenient<'de, T, A>(map: &mut A, odd: &mut bool) -> Result<Option<T>, A::Error>
where
    Lenient<T>: Deserialize<'de>,
    A: MapAccess<'de>,
{
    let value = map.next_value::<Lenient<T>>()?;
    *odd |= matches!(value, Lenient::Odd);
    Ok(value.into_option())
}

fn text<'de, A: MapAccess<'de>>(map: &mut A, odd: &mut bool) -> Result<Option<Cow<'de, str>>, A::Error> {
    Ok(lenient::<Text<'de>, A>(map, odd)?.map(|text| text.0))
}

/// What a wanted type makes of each JSON type. The default for all of them is: odd.
trait Wanted<'de>: Sized {
    fn from_str(_: Cow<'de, str>) -> Option<Self> {
        None
    }
    fn from_i64(_: i64) -> Option<Self> {
        None
    }
    fn from_bool(_: bool) -> Option<Self> {
        None
    }
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        skip_map(map).map(|()| None)
    }
    fn from_seq<A: SeqAccess<'de>>(seq: A) -> Result<Option<Self>, A::Error> {
        skip_seq(seq).map(|()| None)
    }
}

/// A wanted type that is a JSON object.
trait FromMap<'de>: Sized {
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de, T: FromMap<'de>> Wanted<'de> for T {
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        <T as FromMap<'de>>::from_map(map).map(Some)
    }
}

struct Text<'a>(Cow<'a, str>);

impl<'de> Wanted<'de> for Text<'de> {
    fn from_str(text: Cow<'de, str>) -> Option<Self> {
        Some(Text(text))
    }
}

/// Keys of JSON objects are always strings; borrowed unless they contain escapes.
impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Lenient::<Text<'de>>::deserialize(deserializer)?.into_option().ok_or_else(|| D::Error::custom("no text"))
    }
}

struct Number(i64);

impl<'de> Wanted<'de> for Number {
    fn from_i64(number: i64) -> Option<Self> {
        Some(Number(number))
    }
}

struct Flag(bool);

impl<'de> Wanted<'de> for Flag {
    fn from_bool(flag: bool) -> Option<Self> {
        Some(Flag(flag))
    }
}

impl<'de> Wanted<'de> for Owners {
    fn from_seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Option<Self>, A::Error> {
        let mut owners = Owners::default();
        while let Some(next) = seq.next_element::<Lenient<OwnerRef>>()? {
            match next {
                Lenient::Good(reference) => {
                    owners.odd |= reference.odd;
                    owners.controller = owners.controller.or(reference.owner);
                }
                Lenient::Null | Lenient::Odd => owners.odd = true,
            }
        }
        Ok(Some(owners))
    }
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de, T: Wanted<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientVisitor<T>(std::marker::PhantomData<T>);
        fn lenient<T>(value: Option<T>) -> Lenient<T> {
            value.map_or(Lenient::Odd, Lenient::Good)
        }
        impl<'de, T: Wanted<'de>> Visitor<'de> for LenientVisitor<T> {
            type Value = Lenient<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(lenient(T::from_str(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(lenient(T::from_str(Cow::Owned(text.to_owned()))))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(lenient(T::from_i64(number)))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(lenient(i64::try_from(number).ok().and_then(T::from_i64)))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Lenient::Odd)
            }
            fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(lenient(T::from_bool(flag)))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Lenient::Null)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::from_map(map).map(lenient)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                T::from_seq(seq).map(lenient)
            }
        }
        deserializer.deserialize_any(LenientVisitor(std::marker::PhantomData))
    }
}
