//! Patches and field ownership.

use crate::values;
use kube_embedded_apiserver::fuzzing::{FieldSet, patch};
use serde_json::{Value, json};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Deepest nesting of anything that is stored: what is deeper cannot be read again.
const DEEPEST: usize = 128;

/// A patch applies or does not, and what it makes can be read again; the difference of two values, applied to
/// one, is the other; tests change nothing.
pub fn json_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    if let Ok(patched) = patch(JSON, body.clone(), object.clone()) {
        assert!(depth(&patched) <= DEEPEST, "a patch cannot nest without bound");
        let tests = body.as_array().is_some_and(|all| all.iter().all(|operation| operation["op"] == "test"));
        assert!(!tests || patched == object, "tests change nothing");
    }
    let difference = json_patch::diff(&object, &body);
    let difference = serde_json::to_value(&difference).expect("a patch is JSON");
    assert_eq!(patch(JSON, difference, object), Ok(body));
}

/// A merge patch holds afterwards: applied again it changes nothing, and nothing it names as null is there.
pub fn merge_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    let Ok(once) = patch(MERGE, body.clone(), object.clone()) else {
        assert!(!body.is_object(), "every object is a merge patch");
        return;
    };
    assert_eq!(patch(MERGE, body.clone(), once.clone()).as_ref(), Ok(&once));
    for (name, value) in body.as_object().into_iter().flatten() {
        match value {
            Value::Null => assert!(once.get(name).is_none(), "{name} was removed"),
            Value::Object(_) => assert!(once[name].is_object()),
            value => assert_eq!(&once[name], value),
        }
    }
    assert_eq!(patch(MERGE, json!({}), once.clone()), Ok(once));
}

/// A strategic merge patch never breaks the server, and where it names no list it is a merge patch.
pub fn strategic_patch(data: &[u8]) {
    let Some((object, body)) = values(data) else { return };
    let Ok(patched) = patch(STRATEGIC, body.clone(), object.clone()) else { return };
    assert!(patched.is_object(), "an object stays one");
    assert!(depth(&patched) <= depth(&object) + depth(&body), "a merge does not nest");
    if object.is_object() && is_plain(&body) {
        assert_eq!(patch(MERGE, body, object), Ok(patched));
    }
}

/// No lists and no directives.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Array(_) => false,
        // These the type replaces as a whole.
        Value::Object(fields) => fields.iter().all(|(name, inner)| {
            !name.starts_with('$') && name != "selector" && name != "labelSelector" && is_plain(inner)
        }),
        _ => true,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Sets of fields are sets: written and read they are the same, and union, intersection and difference fit.
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
