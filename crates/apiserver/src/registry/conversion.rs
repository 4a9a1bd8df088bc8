//! Kinds that are stored in the form of another: one object, two faces.

use serde_json::{Map, Value};

/// How a kind differs from the one it is stored as.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// Group and plural of the resource whose store is shared.
    pub(super) stored_group: &'static str,
    pub(super) stored_plural: &'static str,
    /// Top-level fields: name when stored, name when shown.
    renamed: &'static [(&'static str, &'static str)],
}

/// Events of `events.k8s.io/v1` are stored as those of `v1`.
pub(super) static EVENTS: Conversion = Conversion {
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
        rename(object, self.renamed.iter().copied());
    }

    /// From the shown form to the stored one.
    pub(crate) fn store(&self, object: &mut Map<String, Value>) {
        rename(object, self.renamed.iter().map(|(stored, shown)| (*shown, *stored)));
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
        EVENTS.show(&mut object);
        assert_eq!(
            Value::Object(object.clone()),
            json!({"metadata": {}, "regarding": {"name": "p"}, "note": "m", "deprecatedCount": 2, "reason": "r"})
        );
        EVENTS.store(&mut object);
        assert_eq!(Value::Object(object), stored);
    }
}
