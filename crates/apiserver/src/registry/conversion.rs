//! Conversion between the stored and the shown form of objects.

mod autoscaler;
mod event;

use std::sync::Arc;

use serde_json::{Map, Value};

pub(super) use self::autoscaler::AUTOSCALER_AS_V2;
pub(super) use self::autoscaler::as_v2;
pub(super) use self::autoscaler::normalize_v1;
pub(super) use self::event::EVENTS_AS_CORE;

use super::group_version::GroupVersion;
use crate::budget::Budget;
use crate::custom::{self, Structural};
use crate::server::OBJECT_BYTES;

/// The conversion of stored objects.
#[derive(Debug, Clone)]
pub(crate) enum Conversion {
    /// Objects are stored as those of another kind or version.
    StoredAs(&'static StoredAs),
    /// Objects may have been stored under an older schema.
    Coerced(Arc<Structural>),
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
    /// From the stored form to the shown one.
    pub(crate) fn show(&self, object: &mut Map<String, Value>) {
        match self {
            Self::StoredAs(form) => (form.show)(object),
            Self::Coerced(schema) => {
                custom::prune(schema, object);
                // Defaults that do not fit are not shown: such an object cannot be stored.
                let _ = custom::apply_defaults(schema, object, &mut Budget::new(OBJECT_BYTES));
            }
        }
    }

    /// From the shown form to the stored one.
    pub(crate) fn store(&self, object: &mut Map<String, Value>) {
        if let Self::StoredAs(form) = self {
            (form.store)(object);
        }
    }

    /// Version and plural of the resource whose store is shared.
    pub(super) fn stored_as(&self) -> Option<(GroupVersion<'static>, &'static str)> {
        match self {
            Self::StoredAs(form) => Some((form.group_version, form.plural)),
            Self::Coerced(_) => None,
        }
    }
}
