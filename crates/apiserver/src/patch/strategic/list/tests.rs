use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::types;

/// The list of containers of a pod, which merges by name, or its finalizers, which merge by value.
fn shape(of: &str) -> &'static Shape {
    let list = |kind: &str, field: &str| &types().named(kind).unwrap().field(field).unwrap().shape;
    if of == "containers" {
        list("core.v1.PodSpec", "containers")
    } else {
        list("meta.v1.ObjectMeta", "finalizers")
    }
}

fn rule(shape: &Shape) -> &Merge {
    let Shape::List(_, _, rule) = shape else { panic!("a list") };
    rule
}

/// The same merge, written with nested loops: what is promised, in a form that is easy to check.
mod model {
    use super::*;

    pub(super) fn merge(items: &mut Vec<Value>, patch: &[Value], order: Option<&Vec<Value>>, rule: &Merge) {
        let server = items.clone();
        for element in patch {
            let id = rule.key.and_then(|key| element.get(key));
            let same = |item: &Value| rule.key.map_or(item == element, |key| item.get(key) == id);
            if directive(element) == Some("delete") {
                items.retain(|item| !same(item));
            } else if let Some(found) = items.iter_mut().find(|item| same(item)) {
                if let (Value::Object(found), Value::Object(patch)) = (found, element) {
                    found.extend(patch.clone());
                }
            } else {
                items.push(element.clone());
            }
        }
        arrange(items, order.map_or(patch, Vec::as_slice), &server, rule);
    }

    fn arrange(items: &mut Vec<Value>, wanted: &[Value], server: &[Value], rule: &Merge) {
        let same = |a: &Value, b: &Value| rule.key.map_or(a == b, |key| a.get(key) == b.get(key));
        let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
        let (mut patched, mut own): (Vec<Value>, Vec<Value>) =
            std::mem::take(items).into_iter().partition(|item| place(wanted, item).is_some());
        patched.sort_by_key(|item| place(wanted, item));
        own.reverse();
        for item in patched {
            while let Some(next) = own.last() {
                match (place(server, next), place(server, &item)) {
                    (Some(before), Some(after)) if before < after => items.extend(own.pop()),
                    _ => break,
                }
            }
            items.push(item);
        }
        items.extend(own.into_iter().rev());
    }
}

fn container() -> impl Strategy<Value = Value> {
    (0..6u8, 0..3u8, any::<bool>()).prop_map(|(name, image, delete)| match (delete, image) {
        (true, 0) => json!({"name": name.to_string(), "$patch": "delete"}),
        _ => json!({"name": name.to_string(), "image": image.to_string()}),
    })
}

fn finalizer() -> impl Strategy<Value = Value> {
    (0..6u8).prop_map(|n| json!(n.to_string()))
}

fn check(
    of: &str,
    mut items: Vec<Value>,
    patch: Vec<Value>,
    order: Option<Vec<Value>>,
) -> Result<(), TestCaseError> {
    items.retain(|item| directive(item).is_none());
    let mut expected = items.clone();
    model::merge(&mut expected, &patch, order.as_ref(), rule(shape(of)));
    merge(&mut items, &patch, Some(shape(of)), order.as_ref(), &Work::default()).unwrap();
    prop_assert_eq!(items, expected);
    Ok(())
}

proptest! {
    #[test]
    fn keyed_lists_merge_as_promised(
        items in prop::collection::vec(container(), 0..8),
        patch in prop::collection::vec(container(), 0..8),
        order in prop::option::of(prop::collection::vec(container(), 0..8)),
    ) {
        check("containers", items, patch, order)?;
    }

    #[test]
    fn lists_of_values_merge_as_promised(
        items in prop::collection::vec(finalizer(), 0..8),
        patch in prop::collection::vec(finalizer(), 0..8),
        order in prop::option::of(prop::collection::vec(finalizer(), 0..8)),
    ) {
        check("finalizers", items, patch, order)?;
    }
}

/// Steps to merge two lists of this length, half of which they share.
fn steps(of: &str, length: usize) -> u64 {
    let element = |n: usize| match of {
        "containers" => json!({"name": n.to_string()}),
        _ => json!(n.to_string()),
    };
    let work = Work::default();
    let mut items = (0..length).map(element).collect();
    let patch: Vec<Value> = (length / 2..length * 3 / 2).rev().map(element).collect();
    merge(&mut items, &patch, Some(shape(of)), None, &work).unwrap();
    assert_eq!(items.len(), length * 3 / 2);
    work.count()
}

#[test]
fn the_work_grows_with_the_lists_and_not_with_their_product() {
    for of in ["containers", "finalizers"] {
        let (short, long) = (steps(of, 500), steps(of, 5000));
        assert!(short >= 500, "the work is counted");
        assert!(long <= 11 * short, "{of}: {short} steps for 500 elements, {long} for 5,000");
    }
}

#[test]
fn an_abandoned_merge_ends() {
    let work = Work::default();
    work.abandon();
    let mut items = vec![json!({"name": "a"})];
    let result = merge(&mut items, &[json!({"name": "b"})], Some(shape("containers")), None, &work);
    assert!(matches!(result, Err(PatchError::Abandoned(_))));
}
