//! Conversion between the stored and the shown form of objects.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::custom::{self, Structural};
use crate::server::OBJECT_BYTES;

/// The conversion of stored objects.
#[derive(Debug, Clone)]
pub(crate) enum Conversion {
    /// Objects are stored as those of another kind.
    Renamed(&'static Renaming),
    /// Objects may have been stored under an older schema.
    Coerced(Arc<Structural>),
}

/// The difference between a kind and the kind that stores it.
#[derive(Debug)]
pub(crate) struct Renaming {
    /// Group and plural of the resource whose store is shared.
    stored_group: &'static str,
    stored_plural: &'static str,
    /// Top-level fields: name when stored, name when shown.
    renamed: &'static [(&'static str, &'static str)],
}

/// Events of `events.k8s.io/v1` are stored as those of `v1`.
pub(super) static EVENTS_AS_CORE: Renaming = Renaming {
    stored_group: "",
    stored_plural: "events",
    renamed: &[
        ("involvedObject", "regarding"),
        ("message", "note"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
        ("reportingComponent", "reportingController"),
    ],
};

impl Conversion {
    /// From the stored form to the shown one.
    pub(crate) fn show(&self, object: &mut Map<String, Value>) {
        match self {
            Self::Renamed(names) => rename(object, names.renamed.iter().copied()),
            Self::Coerced(schema) => {
                custom::prune(schema, object);
                // Defaults that do not fit are not shown: such an object cannot be stored.
                let _ = custom::apply_defaults(schema, object, &mut Budget::new(OBJECT_BYTES));
            }
        }
    }

    /// From the shown form to the stored one.
    pub(crate) fn store(&self, object: &mut Map<String, Value>) {
        if let Self::Renamed(names) = self {
            rename(object, names.renamed.iter().map(|(stored, shown)| (*shown, *stored)));
        }
    }

    /// Group and plural of the resource whose store is shared.
    pub(super) fn stored_as(&self) -> Option<(&str, &str)> {
        match self {
            Self::Renamed(names) => Some((names.stored_group, names.stored_plural)),
            Self::Coerced(_) => None,
        }
    }
}

fn rename<'n>(object: &mut Map<String, Value>, names: impl Iterator<Item = (&'n str, &'n str)>) {
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_and_back() {
        let stored = json!({"metadata": {}, "involvedObject": {"name": "p"}, "message": "m", "count": 2, "reason": "r"});
        let mut object = stored.as_object().unwrap().clone();
        Conversion::Renamed(&EVENTS_AS_CORE).show(&mut object);
        assert_eq!(
            Value::Object(object.clone()),
            json!({"metadata": {}, "regarding": {"name": "p"}, "note": "m", "deprecatedCount": 2, "reason": "r"})
        );
        Conversion::Renamed(&EVENTS_AS_CORE).store(&mut object);
        assert_eq!(Value::Object(object), stored);
    }
}
