use serde_json::json;

use super::*;
use crate::managed::fields::cost;
use crate::registry::Registry;

fn writer(manager: &str) -> Writer {
    Writer { manager: manager.to_owned(), subresource: None, now: "2026-01-01T00:00:00Z".to_owned() }
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
    let (value, owners) = Managers::read(live).applied(
        resource,
        &writer(manager),
        live,
        &object(config),
        force,
        &Work::default(),
    )?;
    let mut new = object(value);
    owners.write(&mut new);
    Ok(new)
}

fn conflicts(error: &ApplyError) -> &Conflicts {
    match error {
        ApplyError::Conflicts(conflicts) => conflicts,
        ApplyError::Abandoned => panic!("abandoned"),
    }
}

fn update(manager: &str, old: Option<&Object>, new: Value) -> Object {
    let registry = Registry::built_in();
    let resource = registry.find("", "v1", "configmaps").unwrap();
    let mut new = object(new);
    let base = old.map(Managers::read).unwrap_or_default();
    base.updated(resource, &writer(manager), old, &new, &Work::default()).unwrap().write(&mut new);
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
    assert_eq!(conflicts(&error).listed, [("\"one\"".to_owned(), ".data.k".to_owned())]);
    let shared = apply("configmaps", "", "two", &one, other("v"), false).unwrap();
    assert_eq!(managers(&shared).len(), 2);
    let forced = apply("configmaps", "", "two", &one, other("w"), true).unwrap();
    assert_eq!(managers(&forced), [("two/Apply".into(), json!({"f:data": {"f:k": {}}}))]);
}

#[test]
fn fields_that_an_applier_omits_are_removed_unless_another_owns_them() {
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
    assert_eq!(conflicts(&error).listed[0].1, ".spec.template.spec.containers[name=\"c\"].image");
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

/// Work to apply a configuration of this size as the second manager: comparisons and moves in sets, and counted steps.
fn cost_of_apply(plural: &str, group: &str, config: impl Fn(usize) -> Value, size: usize) -> usize {
    let nothing = object(json!({"metadata": {"name": "x"}}));
    let live = apply(plural, group, "one", &nothing, config(size), false).unwrap();
    let registry = Registry::built_in();
    let resource = registry.find(group, "v1", plural).unwrap();
    let (config, work) = (object(config(size)), Work::default());
    let (applied, cost) = cost::of(|| {
        Managers::read(&live).applied(resource, &writer("two"), &live, &config, false, &work).unwrap()
    });
    assert_eq!(applied.1.0.len(), 2);
    cost + usize::try_from(work.count()).unwrap()
}

#[test]
fn the_work_of_an_apply_grows_with_the_object_and_not_with_its_square() {
    let containers = |n: usize| {
        // In an order that is not that of their names.
        let list: Vec<Value> =
            (0..n).map(|i| json!({"name": format!("c{}", i * 7919 % n), "image": "i"})).collect();
        json!({"spec": {"template": {"spec": {"containers": list}}}})
    };
    let finalizers = |n: usize| {
        let list: Vec<Value> = (0..n).map(|i| json!(format!("example.com/{}", i * 7919 % n))).collect();
        json!({"metadata": {"finalizers": list}})
    };
    for (of, short, long) in [
        (
            "containers",
            cost_of_apply("deployments", "apps", containers, 300),
            cost_of_apply("deployments", "apps", containers, 3000),
        ),
        (
            "finalizers",
            cost_of_apply("configmaps", "", finalizers, 300),
            cost_of_apply("configmaps", "", finalizers, 3000),
        ),
    ] {
        assert!(short > 300, "the work is counted");
        assert!(long <= 20 * short, "{of}: {short} for 300 elements, {long} for 3,000");
    }
}

/// Work to apply one field to an object that has many managers, with many fields each.
fn cost_of_managers(count: usize) -> usize {
    let fields =
        |of: usize| -> Map<String, Value> { (0..20).map(|n| (format!("f:k{of}-{n}"), json!({}))).collect() };
    let entries: Vec<Value> = (0..count)
        .map(|n| {
            json!({"manager": format!("m{n}"), "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": fields(n)}})
        })
        .collect();
    let data: Map<String, Value> =
        (0..count).flat_map(fields).map(|(f, _)| (f[2..].to_owned(), json!("1"))).collect();
    let live = object(json!({"metadata": {"name": "x", "uid": "1", "managedFields": entries}, "data": data}));
    let registry = Registry::built_in();
    let resource = registry.find("", "v1", "configmaps").unwrap();
    let config = object(json!({"data": {"new": "1"}}));
    let ((), cost) = cost::of(|| {
        let managers = Managers::read(&live);
        let (_, left) =
            managers.applied(resource, &writer("m0"), &live, &config, false, &Work::default()).unwrap();
        assert_eq!(left.0.len(), count);
    });
    cost
}

#[test]
fn the_work_of_an_apply_grows_with_the_managers_and_not_with_their_square() {
    let (few, many) = (cost_of_managers(30), cost_of_managers(300));
    assert!(many <= 20 * few, "{few} for 30 managers, {many} for 300");
}

#[test]
fn very_many_conflicts_are_counted_and_not_all_listed() {
    let data = |value: &str| -> Value {
        let data: Map<String, Value> =
            (0..20_000).map(|n| (format!("a-rather-long-key-{n}"), value.into())).collect();
        json!({"data": data})
    };
    let nothing = object(json!({"metadata": {"name": "x"}}));
    let one = apply("configmaps", "", "one", &nothing, data("1"), false).unwrap();
    let error = apply("configmaps", "", "two", &one, data("2"), false).unwrap_err();
    let found = conflicts(&error);
    assert_eq!(found.total, 20_000);
    let bytes: usize = found.listed.iter().map(|(manager, field)| manager.len() + field.len()).sum();
    assert!(!found.listed.is_empty() && bytes < 2 * MAX_CONFLICT_BYTES, "{bytes} bytes");
}
