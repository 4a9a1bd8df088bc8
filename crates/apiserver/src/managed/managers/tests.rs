use serde_json::json;

use super::*;
use crate::registry::Registry;

fn writer(manager: &str) -> Writer {
    Writer { manager: manager.to_owned(), subresource: String::new(), now: "2026-01-01T00:00:00Z".to_owned() }
}

fn object(value: Value) -> Object {
    Object::new(value).unwrap()
}

fn managers(object: &Object) -> Vec<(String, Value)> {
    let list = object.metadata().get("managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter()
        .map(|e| {
            (
                format!("{}/{}", e["manager"].as_str().unwrap(), e["operation"].as_str().unwrap()),
                e["fieldsV1"].clone(),
            )
        })
        .collect()
}

fn apply(
    plural: &str,
    group: &str,
    manager: &str,
    live: &Object,
    config: Value,
    force: bool,
) -> Result<Object, ApplyError> {
    let registry = Registry::built_in();
    let resource = registry.find(group, "v1", plural).unwrap();
    let (value, owners) =
        Managers::read(live).applied(resource, &writer(manager), live, &object(config), force)?;
    let mut new = object(value);
    owners.write(&mut new);
    Ok(new)
}

fn update(manager: &str, old: Option<&Object>, new: Value) -> Object {
    let registry = Registry::built_in();
    let resource = registry.find("", "v1", "configmaps").unwrap();
    let mut new = object(new);
    let base = old.map(Managers::read).unwrap_or_default();
    base.updated(resource, &writer(manager), old, &new).write(&mut new);
    new
}

#[test]
fn a_writer_owns_what_it_set_and_takes_what_it_changes() {
    let first = update("a", None, json!({"metadata": {"name": "x"}, "data": {"k": "1", "l": "1"}}));
    assert_eq!(managers(&first), [("a/Update".into(), json!({"f:data": {".": {}, "f:k": {}, "f:l": {}}}))]);
    let second = update("b", Some(&first), json!({"metadata": {"name": "x"}, "data": {"k": "2", "m": "1"}}));
    assert_eq!(
        managers(&second),
        [
            ("a/Update".into(), json!({"f:data": {}})),
            ("b/Update".into(), json!({"f:data": {"f:k": {}, "f:m": {}}}))
        ]
    );
    let same = update("c", Some(&second), json!({"metadata": {"name": "x"}, "data": {"k": "2", "m": "1"}}));
    assert_eq!(managers(&same), managers(&second));
}

#[test]
fn applying_anothers_field_conflicts_unless_equal_or_forced() {
    let nothing = object(json!({"metadata": {"name": "x"}}));
    let one = apply(
        "configmaps",
        "",
        "one",
        &nothing,
        json!({"metadata": {"name": "x"}, "data": {"k": "v"}}),
        false,
    )
    .unwrap();
    let other = |value: &str| json!({"metadata": {"name": "x"}, "data": {"k": value}});
    let error = apply("configmaps", "", "two", &one, other("w"), false).unwrap_err();
    assert_eq!(error.conflicts, [("\"one\"".to_owned(), ".data.k".to_owned())]);
    let shared = apply("configmaps", "", "two", &one, other("v"), false).unwrap();
    assert_eq!(managers(&shared).len(), 2);
    let forced = apply("configmaps", "", "two", &one, other("w"), true).unwrap();
    assert_eq!(managers(&forced), [("two/Apply".into(), json!({"f:data": {"f:k": {}}}))]);
}

#[test]
fn what_an_applier_leaves_out_goes_unless_another_has_it() {
    let nothing = object(json!({"metadata": {"name": "x"}}));
    let one = apply(
        "configmaps",
        "",
        "one",
        &nothing,
        json!({"data": {"k": "v", "gone": "x", "shared": "s"}}),
        false,
    )
    .unwrap();
    let two = apply("configmaps", "", "two", &one, json!({"data": {"shared": "s"}}), false).unwrap();
    let left = apply("configmaps", "", "one", &two, json!({"data": {"k": "w"}}), false).unwrap();
    assert_eq!(left.at("/data"), Some(&json!({"k": "w", "shared": "s"})));
    let none = apply("configmaps", "", "one", &left, json!({}), false).unwrap();
    assert_eq!(none.at("/data"), Some(&json!({"shared": "s"})));
}

#[test]
fn keyed_elements_have_owners_of_their_own() {
    let spec = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let nothing = object(json!({"metadata": {"name": "x"}}));
    let one =
        apply("deployments", "apps", "one", &nothing, spec(json!([{"name": "c", "image": "1"}])), false)
            .unwrap();
    let two = apply("deployments", "apps", "two", &one, spec(json!([{"name": "side", "image": "2"}])), false)
        .unwrap();
    let names = |o: &Object| {
        o.at("/spec/template/spec/containers")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&two), ["c", "side"]);
    let error = apply("deployments", "apps", "two", &two, spec(json!([{"name": "c", "image": "9"}])), false)
        .unwrap_err();
    assert_eq!(error.conflicts[0].1, ".spec.template.spec.containers[name=\"c\"].image");
    let back = apply("deployments", "apps", "two", &two, json!({}), false).unwrap();
    assert_eq!(names(&back), ["c"]);
    assert_eq!(managers(&back).len(), 1);
}

#[test]
fn many_writers_become_one() {
    let mut map = update("m0", None, json!({"metadata": {"name": "x"}, "data": {"k0": "1"}}));
    for n in 1..15 {
        let mut next = map.clone().into_value();
        next["data"][format!("k{n}")] = "1".into();
        map = update(&format!("m{n}"), Some(&map), next);
    }
    assert_eq!(managers(&map).len(), MAX_UPDATERS);
    assert!(managers(&map).iter().any(|(name, _)| name == "ancient-changes/Update"));
}

#[test]
fn a_reset_is_a_list_that_says_nothing() {
    let with = |list: Value| object(json!({"metadata": {"managedFields": list}}));
    assert!(Managers::is_reset(&with(json!([]))) && Managers::is_reset(&with(json!([{}]))));
    assert!(!Managers::is_reset(&object(json!({}))));
    assert!(!Managers::is_reset(&with(json!([{"manager": "m"}]))));
}
