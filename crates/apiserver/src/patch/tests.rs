use serde_json::json;

use super::*;
use crate::schema::types;

fn strategic(object: Value, patch: Value) -> Value {
    let shape = types().kind("apps", "v1", "Deployment");
    Patch::read(PatchKind::Strategic, patch).unwrap().apply(object, shape, &Work::default()).unwrap()
}

fn containers(list: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": list}}}})
}

#[test]
fn containers_merge_by_name_and_new_ones_come_first() {
    let before = containers(json!([{"name": "c", "image": "1"}, {"name": "d", "image": "1"}]));
    let after = strategic(
        before,
        containers(json!([{"name": "n", "image": "n"}, {"name": "d", "env": [{"name": "A", "value": "1"}]}])),
    );
    assert_eq!(
        after,
        containers(json!([{"name": "n", "image": "n"}, {"name": "c", "image": "1"},
            {"name": "d", "image": "1", "env": [{"name": "A", "value": "1"}]}]))
    );
}

#[test]
fn directives_delete_replace_and_order() {
    let before = containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
    let gone = strategic(before.clone(), containers(json!([{"name": "a", "$patch": "delete"}])));
    assert_eq!(gone, containers(json!([{"name": "b", "image": "1"}])));
    let replaced =
        strategic(before.clone(), containers(json!([{"$patch": "replace"}, {"name": "z", "image": "2"}])));
    assert_eq!(replaced, containers(json!([{"name": "z", "image": "2"}])));
    let mut patch = containers(json!([]));
    patch["spec"]["template"]["spec"] =
        json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]});
    assert_eq!(
        strategic(before, patch),
        containers(json!([{"name": "b", "image": "1"}, {"name": "a", "image": "1"}]))
    );
}

#[test]
fn finalizers_are_a_set_and_can_be_taken_out_one_by_one() {
    let before = json!({"metadata": {"finalizers": ["x/a", "x/b"]}});
    let more = strategic(before.clone(), json!({"metadata": {"finalizers": ["x/c", "x/a"]}}));
    assert_eq!(more["metadata"]["finalizers"].as_array().unwrap().len(), 3);
    let less = strategic(before, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}));
    assert_eq!(less, json!({"metadata": {"finalizers": ["x/b"]}}));
}

#[test]
fn strategy_keeps_only_the_named_keys() {
    let before = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let after =
        strategic(before, json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}));
    assert_eq!(after, json!({"spec": {"strategy": {"type": "Recreate"}}}));
}

#[test]
fn plain_lists_are_replaced_and_null_removes() {
    let before = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["a", "b"]}], "hostname": "h"}}}});
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["z"]}], "hostname": null}}}});
    assert_eq!(strategic(before, patch), containers(json!([{"name": "c", "args": ["z"]}])));
}

#[test]
fn an_element_without_its_key_and_unknown_directives_contradict() {
    let shape = types().kind("apps", "v1", "Deployment");
    for patch in [containers(json!([{"image": "x"}])), json!({"spec": {"$patch": "explode"}})] {
        let result = Patch::read(PatchKind::Strategic, patch).unwrap().apply(
            containers(json!([{"name": "a"}])),
            shape,
            &Work::default(),
        );
        assert!(matches!(result, Err(PatchError::Contradictory(_))));
    }
}

#[test]
fn elements_with_equal_keys_stay_apart_where_there_was_no_list() {
    let shape = types().kind("", "v1", "Pod");
    let ports = json!([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]);
    let pod = |ports: Value| json!({"spec": {"containers": [{"name": "a", "ports": ports}]}});
    let bare = json!({"spec": {"containers": [{"name": "a"}]}});
    let patch = Patch::read(PatchKind::Strategic, pod(ports.clone())).unwrap();
    assert_eq!(patch.apply(bare, shape, &Work::default()).unwrap(), pod(ports));
}

#[test]
fn json_patches_apply_whole_or_not_at_all() {
    let read = |body| Patch::read(PatchKind::Json, body);
    let object = json!({"data": {"k": "1"}});
    let good = read(json!([{"op": "test", "path": "/data/k", "value": "1"}, {"op": "add", "path": "/data/l", "value": "2"}])).unwrap();
    assert_eq!(
        good.apply(object.clone(), None, &Work::default()).unwrap(),
        json!({"data": {"k": "1", "l": "2"}})
    );
    let absent = read(json!([
        {"op": "test", "path": "/data/l", "value": null}, {"op": "add", "path": "/data/l", "value": "2"}
    ]));
    assert_eq!(
        absent.unwrap().apply(object.clone(), None, &Work::default()).unwrap(),
        json!({"data": {"k": "1", "l": "2"}})
    );
    for bad in [
        json!([{"op": "test", "path": "/data/k", "value": "x"}]),
        json!([{"op": "test", "path": "/data/k", "value": null}]),
        json!([{"op": "test", "path": "/none/k", "value": null}]),
        json!([{"op": "remove", "path": "/data/none"}]),
        json!([{"op": "add", "path": "/a/b/c", "value": 1}]),
        json!([{"op": "replace", "path": "/nope", "value": 1}]),
    ] {
        assert!(matches!(
            read(bad).unwrap().apply(object.clone(), None, &Work::default()),
            Err(PatchError::DoesNotApply(_))
        ));
    }
    assert!(matches!(read(json!({})), Err(PatchError::Malformed(_))));
    for unknown in [json!([{"op": "explode", "path": "/"}]), json!([{"path": "/"}])] {
        assert!(matches!(read(unknown), Err(PatchError::DoesNotApply(_))));
    }
    let many = Value::Array(vec![json!({"op": "remove", "path": "/x"}); MAX_OPERATIONS + 1]);
    assert!(matches!(read(many), Err(PatchError::TooManyOperations(10_001))));
}

/// For a few bytes, each of these doubles the object or nests it once more.
#[test]
fn a_json_patch_cannot_grow_without_bound() {
    let apply = |operations: Vec<Value>| {
        let patch = Patch::read(PatchKind::Json, Value::Array(operations)).unwrap();
        patch
            .apply(json!({"list": ["x".repeat(100)], "a": {}}), None, &Work::default())
            .map_err(|error| error.to_string())
    };
    let double = json!({"op": "copy", "from": "/list", "path": "/list/-"});
    assert!(apply(vec![double.clone(); 8]).is_ok());
    assert!(apply(vec![double; 60]).unwrap_err().contains("too much"));
    let nest = [
        json!({"op": "add", "path": "/b", "value": {}}),
        json!({"op": "move", "from": "/a", "path": "/b/c"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let nest = |times: usize| nest.iter().cloned().cycle().take(3 * times).collect();
    assert!(apply(nest(100)).is_ok());
    assert!(apply(nest(3000)).unwrap_err().contains("deeper"));
}

#[test]
fn operations_at_the_front_of_a_long_list_are_limited() {
    let list: Vec<Value> = vec![0.into(); 100_000];
    let object = json!({"metadata": {}, "list": list});
    let patch = |count: usize| {
        let operations: Vec<Value> = (0..count)
            .map(|n| {
                if n % 2 == 0 {
                    json!({"op": "remove", "path": "/list/0"})
                } else {
                    json!({"op": "add", "path": "/list/0", "value": 1})
                }
            })
            .collect();
        Patch::read(PatchKind::Json, operations.into()).unwrap()
    };
    assert!(patch(100).apply(object.clone(), None, &Work::default()).is_ok());
    let error = patch(10_000).apply(object.clone(), None, &Work::default()).unwrap_err();
    assert!(error.to_string().contains("shifts too many list elements"), "{error}");
    let end: Vec<Value> = (0..10_000).map(|n| json!({"op": "add", "path": "/list/-", "value": n})).collect();
    let appended =
        Patch::read(PatchKind::Json, end.into()).unwrap().apply(object, None, &Work::default()).unwrap();
    assert_eq!(appended["list"].as_array().unwrap().len(), 110_000);
}
