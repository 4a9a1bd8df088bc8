use super::*;
use crate::{Kind, Origin, Prune};
use proptest::prelude::*;
use serde_json::json;

fn path(text: &str) -> FieldPath {
    text.parse().unwrap()
}

fn paths(omissions: &Omissions) -> Vec<String> {
    omissions.paths.iter().map(ToString::to_string).collect()
}

#[test]
fn changed_fields_are_named_to_the_second_level_where_a_schema_names_them() {
    let before = json!({
        "metadata": {"name": "a", "labels": {"x": "1"}, "managedFields": [1]},
        "spec": {"template": {"spec": {"x": 1}}, "replicas": 1}, "data": {"k": "v"}, "gone": 1, "same": [1, 2],
    });
    let after = json!({
        "metadata": {"name": "a", "labels": {"x": "2"}},
        "spec": {"template": {"spec": {"x": 2}}, "replicas": 1}, "data": {"k": "w"}, "new": 1, "same": [1, 2],
    });
    let omissions = Omissions::between(&before, &after);
    let wanted = ["data", "gone", "metadata.labels", "metadata.managedFields", "new", "spec.template"];
    assert_eq!(paths(&omissions), wanted);
    assert!(Omissions::between(&before, &before).is_empty());
    assert_eq!(Omissions::between(&before, &json!([])), Omissions::everything());
}

#[test]
fn however_much_changed_there_is_a_bound() {
    let many = |name: &str, n: usize| {
        let fields: Map<String, Value> = (0..n).map(|i| (format!("{name}{i}"), json!(i))).collect();
        Value::Object(fields)
    };
    let before = json!({"spec": many("a", MAX_FIELDS), "metadata": many("b", MAX_FIELDS + 1)});
    let omissions = Omissions::between(&before, &json!({"spec": {}, "metadata": {}}));
    assert_eq!(omissions.paths.len(), MAX_FIELDS + 1, "one for all of metadata");
    assert_eq!(Omissions::between(&many("a", MAX_FIELDS + 1), &json!({})), Omissions::everything());
    let long = json!({"spec": {"x".repeat(MAX_NAME + 1): 1}});
    assert_eq!(paths(&Omissions::between(&long, &json!({"spec": {}}))), ["spec"]);
}

#[test]
fn every_extent_is_read_from_its_number() {
    let whole = [Omissions::default(), Omissions::everything()].map(Arc::new);
    for omissions in whole.into_iter().chain([Omissions::outside_metadata(), Omissions::content()]) {
        let read = Omissions::of_code(omissions.extent_code(), omissions.paths().to_vec());
        assert_eq!(read.as_ref(), Some(&*omissions));
    }
    assert_eq!(Omissions::of_code(4, vec![]), None);
}

#[test]
fn objects_made_smaller_in_the_same_way_share_an_origin() {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    let slim = Arc::new(Omissions::fields([path("spec.a")]));
    let (one, two) = (origin.omitting(&slim), origin.omitting(&Arc::new(Omissions::clone(&slim))));
    assert!(Arc::ptr_eq(&one, &two));
    assert!(Arc::ptr_eq(&origin.omitting(&Arc::default()), &origin), "nothing is omitted");
    assert!(Arc::ptr_eq(&one.omitting(&slim), &one), "nothing more is omitted");
    let both = one.omitting(&Omissions::outside_metadata());
    assert_eq!(both.omissions(), &Omissions::clone(&slim).and(&Omissions::outside_metadata()));
    drop((one, two, both));
    assert_eq!(Arc::strong_count(&origin), 1, "an origin lives as long as its objects");
}

#[test]
fn in_how_many_ways_objects_are_made_smaller_has_a_bound_and_is_never_understated() {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    let omit = |text: String| origin.omitting(&Arc::new(Omissions::fields([path(&text)])));
    let fine: Vec<_> = (0..1000).map(|n| omit(format!("spec.f{n}"))).collect();
    assert_eq!(paths(fine[0].omissions()), ["spec.f0"]);
    let exact = fine.iter().take_while(|origin| paths(origin.omissions()) != ["spec"]).count();
    assert_eq!((exact, paths(fine[999].omissions())), (64, vec!["spec".to_owned()]));
    let top: Vec<_> = (0..1000).map(|n| omit(format!("f{n}"))).collect();
    assert_eq!(paths(top[0].omissions()), ["f0"]);
    assert_eq!(top[999].omissions(), &Omissions::everything());
    let distinct: BTreeSet<_> = fine.iter().chain(&top).map(Arc::as_ptr).collect();
    assert_eq!(distinct.len(), 2 * 64 + 1, "those that name fields, and the one that omits everything");
    // Those that are needed no more make room.
    drop((fine, top));
    assert_eq!(paths(omit("spec.again".to_owned()).omissions()), ["spec.again"]);
}

/// What becomes of a value when another one is made of it, all that was not seen left where it was. `None` where that
/// has no single meaning.
fn carried_over(whole: &Value, before: &Value, after: &Value) -> Option<Value> {
    match (whole, before, after) {
        _ if before == after => Some(whole.clone()),
        (Value::Object(whole), Value::Object(before), Value::Object(after)) => {
            let mut result = Map::new();
            for (name, value) in whole {
                match (before.get(name), after.get(name)) {
                    (None, None) => drop(result.insert(name.clone(), value.clone())),
                    (None, Some(_)) => return None,
                    // Removed with all its contents: only if all of it was held.
                    (Some(seen), None) if seen == value => {}
                    (Some(_), None) => return None,
                    (Some(seen), Some(now)) => {
                        drop(result.insert(name.clone(), carried_over(value, seen, now)?))
                    }
                }
            }
            let new = after.iter().filter(|(name, _)| !whole.contains_key(*name));
            result.extend(new.map(|(name, value)| (name.clone(), value.clone())));
            Some(Value::Object(result))
        }
        // Anything else is written whole, and must be held whole.
        (whole, before, after) => (whole == before).then(|| after.clone()),
    }
}

/// Small values with few names, so that paths and edits meet.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from)];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            2 => prop::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[abc]", any_value()), 1..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn any_path() -> impl Strategy<Value = FieldPath> {
    let step = prop_oneof![
        4 => "[abc]".prop_map(FieldStep::Name),
        1 => (0..3usize).prop_map(FieldStep::Index),
        1 => Just(FieldStep::Every),
    ];
    prop::collection::vec(step, 1..4).prop_map(FieldPath::of_steps)
}

/// Sets or removes one thing, down a path of existing fields and elements that the picks choose.
fn change(value: &mut Value, picks: &[usize], new: Option<&Value>) {
    let (pick, rest) = picks.split_first().unwrap_or((&0, &[]));
    match value {
        Value::Object(fields) if rest.is_empty() => {
            let name = ["a", "b", "c"][pick % 3];
            match new {
                Some(new) => drop(fields.insert(name.to_owned(), new.clone())),
                None => drop(fields.remove(name)),
            }
        }
        Value::Array(elements) if rest.is_empty() => match new {
            Some(new) => elements.insert(pick % (elements.len() + 1), new.clone()),
            None => drop((!elements.is_empty()).then(|| elements.remove(pick % elements.len()))),
        },
        Value::Object(fields) if !fields.is_empty() => {
            let at = pick % fields.len();
            change(fields.values_mut().nth(at).unwrap(), rest, new);
        }
        Value::Array(elements) if !elements.is_empty() => {
            let at = pick % elements.len();
            change(&mut elements[at], rest, new);
        }
        other => drop(new.map(|new| *other = new.clone())),
    }
}

fn any_edit() -> impl Strategy<Value = (Vec<usize>, Option<Value>)> {
    (prop::collection::vec(0..6usize, 1..4), prop::option::weighted(0.7, any_value()))
}

proptest! {
    /// Either the change is refused, or the patch has one meaning, and that is what it does.
    #[test]
    fn an_accepted_edit_changes_nothing_else(
        whole in any_object(),
        dropped in prop::collection::vec(any_path(), 0..4),
        edits in prop::collection::vec(any_edit(), 1..3),
    ) {
        let prune = Prune::new(dropped.iter().cloned());
        let before: Value = serde_json::from_slice(&prune.apply(&whole.to_string().into()).unwrap()).unwrap();
        let mut after = before.clone();
        edits.iter().for_each(|(picks, new)| change(&mut after, picks, new.as_ref()));
        if Omissions::fields(dropped).check(&before, &after).is_ok() {
            let mut patched = whole.clone();
            json_patch::patch(&mut patched, &json_patch::diff(&before, &after)).unwrap();
            prop_assert_eq!(Some(patched), carried_over(&whole, &before, &after));
        }
    }

    /// The same where a function makes the object smaller, or other.
    #[test]
    fn fields_that_a_function_changed_are_never_written(
        mut whole in any_object(),
        function in prop::collection::vec(any_edit(), 0..3),
        edits in prop::collection::vec(any_edit(), 1..3),
    ) {
        // One of the fields that are looked into.
        whole["spec"] = whole.clone();
        let mut before = whole.clone();
        function.iter().for_each(|(picks, new)| change(&mut before, picks, new.as_ref()));
        let mut after = before.clone();
        edits.iter().for_each(|(picks, new)| change(&mut after, picks, new.as_ref()));
        if Omissions::between(&whole, &before).check(&before, &after).is_ok() {
            let mut patched = whole.clone();
            json_patch::patch(&mut patched, &json_patch::diff(&before, &after)).unwrap();
            // What the function changed is as the server has it, everything else as edited.
            for place in ["/a", "/b", "/c", "/spec/a", "/spec/b", "/spec/c"] {
                let held = whole.pointer(place) == before.pointer(place);
                let wanted = if held { &after } else { &whole };
                prop_assert_eq!(patched.pointer(place), wanted.pointer(place), "{}", place);
            }
        }
    }
}
