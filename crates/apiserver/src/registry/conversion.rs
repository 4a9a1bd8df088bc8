//! Conversion between the stored and the shown form of objects.

mod autoscaler;
mod event;

use serde_json::{Map, Value};

pub(super) use self::autoscaler::AUTOSCALER_AS_V2;
pub(super) use self::autoscaler::as_v2;
pub(super) use self::autoscaler::normalize_v1;
pub(super) use self::event::EVENTS_AS_CORE;

use super::group_version::GroupVersion;
use crate::custom::Versions;

/// The conversion of stored objects.
#[derive(Debug, Clone)]
pub(crate) enum Conversion {
    /// Objects are stored as those of another kind or version.
    StoredAs(&'static StoredAs),
    /// Objects may have been stored in another version, or under an older schema.
    Versions(Versions),
}

/// The difference between a kind and the kind that stores it.
#[derive(Debug)]
pub(crate) struct StoredAs {
    /// The resource whose store is shared.
    group_version: GroupVersion<'static>,
    plural: &'static str,
    /// From the stored form to the shown one.
    show: fn(&mut Map<String, Value>),
    /// From the shown form to the stored one.
    store: fn(&mut Map<String, Value>),
}

impl Conversion {
    /// From the stored form to the shown one. `version` is the [recorded](crate::storage::Document::version) one.
    pub(crate) fn show(&self, object: &mut Map<String, Value>, version: &str) {
        match self {
            Self::StoredAs(form) => (form.show)(object),
            Self::Versions(versions) => versions.show(object, version),
        }
    }

    /// From the shown form to the stored one.
    pub(crate) fn store(&self, object: &mut Map<String, Value>) {
        match self {
            Self::StoredAs(form) => (form.store)(object),
            Self::Versions(versions) => versions.store(object),
        }
    }

    /// Whether [`store`](Self::store) may change an object.
    pub(super) fn changes_stored(&self) -> bool {
        match self {
            Self::StoredAs(_) => true,
            Self::Versions(versions) => versions.differ(),
        }
    }

    /// Version and plural of the resource whose store is shared.
    pub(super) fn stored_as(&self) -> Option<(GroupVersion<'static>, &'static str)> {
        match self {
            Self::StoredAs(form) => Some((form.group_version, form.plural)),
            Self::Versions(_) => None,
        }
    }
}
