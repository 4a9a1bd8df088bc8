//! Patches and sets of managed fields.

use crate::{depth, values};
use kube_embedded_apiserver::fuzzing::{FieldSet, patch};
use serde_json::{Value, json};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The deepest nesting of a stored object: a deeper one cannot be decoded.
const MAX_DEPTH: usize = 128;

/// The depth of a patched object is bounded; tests change nothing; the difference of two values, applied to the first,
/// gives the second.
pub fn json_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    if let Ok(patched) = patch(JSON, body.clone(), object.clone()) {
        assert!(depth(&patched) <= MAX_DEPTH, "the patched object is too deep");
        let tests = body.as_array().is_some_and(|all| all.iter().all(|operation| operation["op"] == "test"));
        assert!(!tests || patched == object, "a test changed the object");
    }
    let difference = json_patch::diff(&object, &body);
    let difference = serde_json::to_value(&difference).expect("a patch in JSON");
    assert_eq!(patch(JSON, difference, object), Ok(body));
}

/// A merge patch is idempotent, sets its fields, and removes the fields that are null in it.
pub fn merge_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    let Ok(once) = patch(MERGE, body.clone(), object.clone()) else {
        assert!(!body.is_object(), "an object is rejected as a merge patch");
        return;
    };
    assert_eq!(patch(MERGE, body.clone(), once.clone()).as_ref(), Ok(&once));
    for (name, value) in body.as_object().into_iter().flatten() {
        match value {
            Value::Null => assert!(once.get(name).is_none(), "{name} is not removed"),
            Value::Object(_) => assert!(once[name].is_object()),
            value => assert_eq!(&once[name], value),
        }
    }
    assert_eq!(patch(MERGE, json!({}), once.clone()), Ok(once));
}

/// A strategic merge patch without lists and directives equals a merge patch; the depth of its result is bounded.
pub fn strategic_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    let Ok(patched) = patch(STRATEGIC, body.clone(), object.clone()) else { return };
    assert!(patched.is_object(), "the result is not an object");
    assert!(depth(&patched) <= depth(&object) + depth(&body), "the result is too deep");
    if object.is_object() && is_plain(&body) {
        assert_eq!(patch(MERGE, body, object), Ok(patched));
    }
}

/// Returns whether a patch has neither lists nor directives.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(_) => false,
        // Selectors are replaced as a whole, as their types require.
        Value::Object(fields) => fields.iter().all(|(name, inner)| {
            !name.starts_with('$') && name != "selector" && name != "labelSelector" && is_plain(inner)
        }),
        _ => true,
    }
}

/// Field sets satisfy the laws of sets, and survive a JSON round trip.
pub fn field_sets(data: &[u8]) {
    let Some((a, b)) = values(data) else { return };
    let (a, b) = (FieldSet::read(&a), FieldSet::read(&b));
    for set in [&a, &b] {
        assert_eq!(FieldSet::read(&set.write()).paths(), set.paths(), "{}", set.write());
        assert_eq!(set.union(set).paths(), set.paths());
        assert!(set.difference(set).is_empty() && set.without_trees(set).paths().len() <= set.paths().len());
    }
    let (both, either) = (a.intersection(&b), a.union(&b));
    assert_eq!(both.paths(), b.intersection(&a).paths());
    assert_eq!(either.paths(), b.union(&a).paths());
    assert_eq!(a.difference(&b).union(&both).paths(), a.paths());
    assert_eq!(either.difference(&a).paths(), b.difference(&a).paths());
    assert!(a.difference(&b).intersection(&b).is_empty());
    assert!(a.without_trees(&b).intersection(&b).is_empty());
}
