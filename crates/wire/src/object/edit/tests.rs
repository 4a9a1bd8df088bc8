use super::*;
use crate::{FieldPath, Kind, Limits, Origin, Prune};
use serde_json::json;
use std::sync::Arc;

const UID: &str = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";

fn object(json: Value) -> Object<Value> {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    Object::parse(&origin, json.to_string().into(), &Limits::default()).unwrap()
}

/// The object with fields dropped, as an informer does it.
fn without(object: &Object<Value>, paths: &[&str]) -> Object<Value> {
    let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
    let json = Prune::new(paths.clone()).apply(&object.json().unwrap()).unwrap();
    object.with_content(json, &Arc::new(Omissions::fields(paths)), &Limits::default()).unwrap()
}

fn pod() -> Object<Value> {
    object(json!({
        "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "5", "annotations": {"x": "1"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "env": [{"name": "E"}]}, {"name": "d", "image": "j"}],
            "tolerations": [{"key": "k"}, {"key": "l"}],
            "nodeName": "n",
        },
    }))
}

fn patched(object: &Object<Value>, change: impl FnOnce(&mut Value)) -> Value {
    serde_json::to_value(object.edit(change).unwrap()).unwrap()
}

/// The path that an edit is refused for.
fn refused(object: &Object<Value>, change: impl FnOnce(&mut Value)) -> String {
    match object.edit(change).unwrap_err() {
        EditError::NotHeld { path, .. } => path,
        other => panic!("{other}"),
    }
}

#[test]
fn an_edit_is_guarded_by_version_and_uid_of_the_identity() {
    let meta = json!({"name": "a", "resourceVersion": "5", "uid": UID});
    let whole = object(json!({"metadata": meta, "spec": {"x": 1, "unknown": 2}}));
    let bare = without(&whole, &["metadata"]);
    for object in [whole, bare] {
        assert_eq!(
            patched(&object, |value| value["spec"]["x"] = json!(9)),
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
                {"op": "test", "path": "/metadata/uid", "value": UID},
                {"op": "replace", "path": "/spec/x", "value": 9},
            ])
        );
    }
    let fake = object(json!({"metadata": {"name": "a", "resourceVersion": "5", "uid": "u-1"}}));
    assert_eq!(patched(&fake, |_| {}).as_array().unwrap().len(), 1, "a digest guards nothing");
    let unversioned = object(json!({"metadata": {"name": "a"}}));
    assert!(matches!(unversioned.edit(|_| {}), Err(EditError::Unversioned { .. })));
}

#[test]
fn dropped_fields_cannot_be_written() {
    let slim = without(&pod(), &["metadata.annotations", "spec.tolerations"]);
    assert_eq!(refused(&slim, |v| v["metadata"]["annotations"]["b"] = "2".into()), "metadata.annotations");
    assert_eq!(refused(&slim, |v| v["metadata"]["annotations"] = json!({})), "metadata.annotations");
    assert_eq!(refused(&slim, |v| v["spec"]["tolerations"] = json!([])), "spec.tolerations");
    assert_eq!(refused(&slim, |v| v["spec"]["tolerations"] = Value::Null), "spec.tolerations");
    assert_eq!(refused(&slim, |v| drop(v.as_object_mut().unwrap().remove("spec"))), "spec");
    assert_eq!(refused(&slim, |v| v["spec"] = "text".into()), "spec");
    let patch = patched(&slim, |v| {
        v["metadata"]["labels"]["app"] = "web".into();
        v["spec"]["containers"][1]["image"] = "k".into();
    });
    assert_eq!(patch.as_array().unwrap().len(), 3, "{patch}");
    // A new `spec` in the place of the old one keeps what was not seen of it.
    let patch = patched(&slim, |v| v["spec"] = json!({"nodeName": "m"}));
    assert!(!patch.to_string().contains(r#""path":"/spec""#), "{patch}");
}

#[test]
fn elements_of_an_array_are_not_distinguished() {
    let filtered = without(&pod(), &["spec.tolerations[0]"]);
    assert_eq!(refused(&filtered, |v| v["spec"]["tolerations"][0]["key"] = "m".into()), "spec.tolerations");
    let partial = without(&pod(), &["spec.containers[*].env"]);
    assert_eq!(refused(&partial, |v| v["spec"]["containers"][0]["image"] = "k".into()), "spec.containers");
    let swap = |v: &mut Value| v["spec"]["containers"].as_array_mut().unwrap().reverse();
    assert_eq!(refused(&partial, swap), "spec.containers");
    patched(&partial, |v| v["spec"]["tolerations"][0]["key"] = "m".into());
    patched(&filtered, swap);
}

#[test]
fn a_field_that_was_not_there_can_be_created_with_all_but_omitted_fields_in_it() {
    let slim = without(&pod(), &["status.conditions", "extra[*].secret"]);
    patched(&slim, |v| v["status"] = json!({"phase": "x"}));
    patched(&slim, |v| v["extra"] = json!([{"open": 1}]));
    assert_eq!(refused(&slim, |v| v["status"] = json!({"conditions": []})), "status");
    assert_eq!(refused(&slim, |v| v["extra"] = json!([{"secret": 1}])), "extra");
}

#[test]
fn fields_that_a_function_changed_cannot_be_written() {
    let pod = pod();
    let before: Value = pod.view().unwrap();
    let mut after = before.clone();
    after["spec"]["tolerations"].as_array_mut().unwrap().remove(0);
    after["metadata"].as_object_mut().unwrap().retain(|name, _| name == "name");
    after["computed"] = json!(1);
    let omissions = Arc::new(Omissions::between(&before, &after));
    let slim = pod.with_content(after.to_string().into(), &omissions, &Limits::default()).unwrap();
    for (edit, place) in [
        (json!({"spec": {"tolerations": [{"key": "m"}]}}), "spec.tolerations"),
        (json!({"metadata": {"annotations": {"y": "2"}}}), "metadata.annotations"),
        (json!({"computed": 2}), "computed"),
        (json!({"spec": null}), "spec"),
    ] {
        assert_eq!(refused(&slim, |v| json_patch::merge(v, &edit)), place);
    }
    let patch = patched(&slim, |v| v["spec"]["containers"][0]["image"] = "k".into());
    assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"}));
}

#[test]
fn only_metadata_is_written_where_only_metadata_is_held() {
    let meta = json!({"name": "a", "resourceVersion": "5", "labels": {"x": "1"}});
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta});
    // From a source without knowledge of it, and from one whose origin says so.
    let unannounced = object(partial);
    let origin = Arc::new(Origin::new(unannounced.kind().clone())).omitting(&Omissions::outside_metadata());
    let whole = json!({"metadata": meta, "data": {"a": "1"}}).to_string();
    let announced = Object::parse(&origin, whole.into(), &Limits::default()).unwrap();
    for object in [unannounced, announced] {
        let error = object.edit(|v| v["data"]["b"] = "2".into()).unwrap_err();
        let EditError::NotHeld { path, omission, .. } = &error else { panic!("{error}") };
        assert_eq!((path.as_str(), *omission), ("data", Omission::MetadataOnly));
        assert_eq!(patched(&object, |v| v["metadata"]["labels"]["y"] = "2".into())[1]["op"], "add");
    }
}

#[test]
fn the_identity_cannot_be_edited() {
    let pod = pod();
    for (path, at) in IDENTITY {
        let other = |v: &mut Value| v.pointer_mut(at).into_iter().for_each(|value| *value = "other".into());
        let error = pod.edit(other).err();
        let present = pod.view::<Value>().unwrap().pointer(at).is_some();
        assert_eq!(error, present.then(|| pod.identity_error(path)), "{path}");
    }
    assert_eq!(pod.edit(|v| v["metadata"]["uid"] = UID.into()), Err(pod.identity_error("metadata.uid")));
    for (path, edited) in [(".", json!([])), ("metadata", json!({"metadata": null}))] {
        let error = pod.edit(|v| *v = edited).unwrap_err();
        assert!(matches!(&error, EditError::NotAnObject { path: found, .. } if *found == path), "{error}");
    }
}

#[test]
fn an_error_says_what_to_do_and_shows_no_value() {
    let slim = without(&pod(), &["spec.nodeName"]);
    let error = slim.edit(|v| v["spec"]["nodeName"] = "hunter2".into()).unwrap_err().to_string();
    assert_eq!(
        error,
        "Pod ns/a: cannot edit spec.nodeName: the informer's transform removes or changes it or a part of it; \
         keep the field in the transform, or set it with edit_via_apply"
    );
}
