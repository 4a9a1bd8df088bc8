//! Events of `events.k8s.io/v1`, which are stored as those of `v1`.

use serde_json::{Map, Value};

use super::{GroupVersion, StoredAs};

pub(in crate::registry) static EVENTS_AS_CORE: StoredAs = StoredAs {
    group_version: GroupVersion { group: "", version: "v1" },
    plural: "events",
    show: |event| rename(event, FIELDS.iter().copied()),
    store: |event| rename(event, FIELDS.iter().map(|(stored, shown)| (*shown, *stored))),
};

/// Top-level fields: name when stored, name when shown.
const FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

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
        (EVENTS_AS_CORE.show)(&mut object);
        assert_eq!(
            Value::Object(object.clone()),
            json!({"metadata": {}, "regarding": {"name": "p"}, "note": "m", "deprecatedCount": 2, "reason": "r"})
        );
        (EVENTS_AS_CORE.store)(&mut object);
        assert_eq!(Value::Object(object), stored);
    }
}
