use super::*;
use crate::{Kind, Limits, Origin};
use std::sync::Arc;

const UID: &str = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";

fn object(json: Value) -> Object<Value> {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps")));
    Object::parse(&origin, json.to_string().into(), &Limits::default()).unwrap()
}

fn map() -> Object<Value> {
    let meta =
        json!({"name": "a", "namespace": "ns", "uid": UID, "resourceVersion": "5", "labels": {"x": "1"}});
    object(json!({"metadata": meta, "data": {"password": "hunter2"}}))
}

#[test]
fn it_has_the_identity_and_the_set_fields_only() {
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ns", "uid": UID, "labels": {"y": "2"}},
        "data": {"b": "2"},
    });
    for object in [map(), map().without_content()] {
        let apply = object
            .edit_via_apply("me", |fields| {
                fields["metadata"]["labels"]["y"] = "2".into();
                fields["data"]["b"] = "2".into();
            })
            .unwrap();
        assert_eq!((apply.document(), apply.manager(), apply.name()), (&wanted, "me", "a"));
        assert_eq!(serde_json::to_value(&apply).unwrap(), wanted);
        assert_eq!(format!("{apply:?}"), "Apply(a by me)");
    }
    let fake = object(json!({"metadata": {"name": "a", "uid": "u-1"}}));
    let apply = fake.edit_via_apply("me", |_| {}).unwrap();
    assert_eq!(
        apply.document(),
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    );
}

#[test]
fn it_is_about_this_object_only() {
    let map = map();
    for (path, fields) in [
        ("apiVersion", json!({"apiVersion": "v2"})),
        ("kind", json!({"kind": "Secret"})),
        ("metadata.name", json!({"metadata": {"name": "b"}})),
        ("metadata.namespace", json!({"metadata": {"namespace": null}})),
        ("metadata.uid", json!({"metadata": {"uid": "other"}})),
        ("metadata.resourceVersion", json!({"metadata": {"resourceVersion": "4"}})),
        ("metadata.managedFields", json!({"metadata": {"managedFields": []}})),
    ] {
        assert_eq!(map.edit_via_apply("me", |all| *all = fields), Err(map.identity_error(path)));
    }
    let same = json!({"kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "5"}});
    let apply = map.edit_via_apply("me", |all| *all = same).unwrap();
    assert_eq!(apply.document()["metadata"]["resourceVersion"], "5");
    assert!(matches!(map.edit_via_apply("me", |all| *all = json!(1)), Err(EditError::NotAnObject { .. })));
}
