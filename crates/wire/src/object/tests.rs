use super::*;
use serde::Deserialize;
use serde_json::json;

fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}

fn parse(json: &str) -> Result<Object<Value>, Malformed> {
    Object::parse(&origin(), Bytes::copy_from_slice(json.as_bytes()), &Limits::default())
}

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"cart-0","namespace":"shop",
    "uid":"0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1","resourceVersion":"42","generation":3,
    "labels":{"tier":"front","app":"cart"},"deletionTimestamp":"2026-01-01T00:00:00Z",
    "ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"x"},
      {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"cart","uid":"u-1","controller":true}]},
    "spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}"#;

#[test]
fn identity_is_read_without_decoding() {
    let pod = parse(POD).unwrap();
    assert_eq!(pod.key().to_string(), "shop/cart-0");
    assert_eq!(pod.uid().to_string(), "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1");
    assert_eq!(pod.resource_version().number(), Some(42));
    assert_eq!(pod.labels().iter().collect::<Vec<_>>(), [("app", "cart"), ("tier", "front")]);
    assert_eq!((pod.generation(), pod.is_deleting(), pod.has_malformed_identity()), (Some(3), true, false));
    let owner = pod.controller().unwrap();
    assert_eq!((&*owner.kind, &*owner.name, &*owner.api_version), ("ReplicaSet", "cart", "apps/v1"));
}

#[test]
fn a_list_item_equals_the_watched_object() {
    let watched = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
    let listed = r#"{"metadata":{"name":"a"}}"#;
    assert!(parse(listed).unwrap().is_same_content(&parse(watched).unwrap()));
    let half = parse(r#"{"kind":"Strange","metadata":{"name":"a"}}"#).unwrap();
    assert!(half.is_same_content(&parse(watched).unwrap()));
    let spaced = parse("{ \"metadata\" : {\"name\":\"a\"}}").unwrap();
    assert_eq!(spaced.view::<Value>().unwrap(), parse(watched).unwrap().view::<Value>().unwrap());
}

#[test]
fn a_view_decodes_only_its_fields() {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        node_name: String,
    }
    #[derive(Deserialize)]
    struct View {
        spec: Spec,
    }
    assert_eq!(parse(POD).unwrap().view::<View>().unwrap().spec.node_name, "n1");
}

#[test]
fn malformed_parts_do_not_hide_the_object() {
    for meta in [
        r#""labels":"nope""#,
        r#""labels":["a"]"#,
        r#""labels":{"a":1}"#,
        r#""generation":"x""#,
        r#""generation":1.5"#,
        r#""uid":{"a":[1,{"b":2}]}"#,
        r#""resourceVersion":7"#,
        r#""deletionTimestamp":[]"#,
        r#""ownerReferences":{}"#,
        r#""ownerReferences":[null,7,{"controller":"yes"}]"#,
        r#""annotations":7"#,
        r#""annotations":{"a":7}"#,
    ] {
        let object = parse(&format!(r#"{{"metadata":{{"name":"a",{meta}}}}}"#)).unwrap();
        assert!(object.has_malformed_identity(), "{meta}");
        assert_eq!(object.key().name(), "a");
    }
    for meta in [r#""labels":null,"generation":null"#, r#""annotations":{"a":"1","b":null}"#] {
        let object = parse(&format!(r#"{{"metadata":{{"name":"a",{meta}}}}}"#)).unwrap();
        assert!(!object.has_malformed_identity(), "{meta}");
    }
}

#[test]
fn without_a_name_it_is_malformed() {
    for (json, reason) in [
        ("", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{", "not a JSON object"),
        (r#"{"metadata":{"name":"a"}} x"#, "not a JSON object"),
        ("{}", "no metadata"),
        (r#"{"metadata":7}"#, "no metadata"),
        (r#"{"metadata":{}}"#, "no name"),
        (r#"{"metadata":{"name":7}}"#, "no name"),
        (r#"{"metadata":{"name":"a/b"}}"#, "slash"),
    ] {
        let malformed = parse(json).unwrap_err();
        assert!(malformed.reason.contains(reason), "{json}: {malformed}");
    }
    let with_version = parse(r#"{"metadata":{"resourceVersion":"7"}}"#).unwrap_err();
    assert_eq!(with_version.resource_version, Some(7.into()));
}

#[test]
fn a_decode_error_names_the_place_and_never_the_value() {
    #[derive(Debug, Deserialize)]
    struct Spec {
        #[allow(dead_code)]
        replicas: u32,
    }
    #[derive(Debug, Deserialize)]
    struct View {
        #[allow(dead_code)]
        spec: Spec,
    }
    let secret = "hunter2, expected hunter3 at line 7";
    let object = parse(
        &json!({"metadata": {"name": "a", "resourceVersion": "5"}, "spec": {"replicas": secret}}).to_string(),
    )
    .unwrap();
    let error = object.view::<View>().unwrap_err();
    assert_eq!((error.path.as_str(), error.expected.as_str()), ("spec.replicas", "u32"));
    assert!(!error.to_string().contains("hunter"), "{error}");
    let missing = parse(r#"{"metadata":{"name":"a"},"spec":{}}"#).unwrap().view::<View>().unwrap_err();
    assert_eq!(missing.expected, "the field `replicas`");
}

#[test]
fn debug_shows_identity_only() {
    let object =
        parse(r#"{"metadata":{"name":"a","resourceVersion":"5"},"data":{"password":"hunter2"}}"#).unwrap();
    assert_eq!(format!("{object:?}"), "Pod a@5");
}

#[test]
fn new_content_cannot_change_the_identity() {
    let object = parse(POD).unwrap();
    let changed = r#"{"metadata":{"name":"other","uid":"u","resourceVersion":"1","labels":{"app":"x"}}}"#;
    let with_content =
        |json: &'static str| object.with_content(json.into(), &Arc::default(), &Limits::default());
    let changed = with_content(changed).unwrap();
    assert!(changed.is_same_version(&object));
    assert_eq!(changed.labels().get("app"), Some("x"));
    for bare in ["{}", r#"{"metadata":{}}"#, r#"{"metadata":null}"#] {
        let bare = with_content(bare).unwrap();
        assert!(bare.is_same_version(&object) && bare.labels().is_empty());
        assert_eq!(bare.view::<Value>().unwrap()["kind"], "Pod");
    }
    assert!(with_content("[]").is_err());
}

#[test]
fn content_is_in_memory_unless_it_is_written_to_disk() {
    for packing in [crate::Packing::Packed, crate::Packing::Raw] {
        let pod = crate::Packer::new(packing).pack(parse(POD).unwrap());
        assert!(pod.is_content_in_memory() && !pod.is_content_lost());
        assert!(pod.heap_size() > POD.len() / 2, "{packing:?}: {} bytes", pod.heap_size());
    }
}

#[test]
fn an_error_quotes_no_message_of_the_type() {
    struct Picky;
    impl<'de> Deserialize<'de> for Picky {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(serde::de::Error::custom("password hunter2, expected hunter3"))
        }
    }
    #[derive(Deserialize)]
    struct View {
        #[serde(rename = "spec")]
        _spec: Picky,
    }
    let error = parse(POD).unwrap().view::<View>().err().unwrap();
    assert_eq!((&*error.path, &*error.expected), ("spec", "a valid value"));
    assert!(!error.is_unavailable());
}

#[test]
fn without_content_the_identity_stays_and_nothing_can_be_read() {
    let pod = parse(POD).unwrap();
    let bare = pod.without_content();
    assert!(bare.is_same_version(&pod) && bare.is_content_withheld() && !pod.is_content_withheld());
    assert_eq!(bare.labels(), pod.labels());
    assert_eq!((bare.generation(), bare.is_deleting(), bare.controller()), (Some(3), true, pod.controller()));
    let error = bare.view::<Value>().unwrap_err();
    assert!(error.to_string().contains("transform failed"), "{error}");
    assert!(bare.json().is_err() && bare.decode().is_err());
    assert!(bare.is_same_content(&pod.without_content()), "the same state is no news");
    let other = parse(&POD.replace("n1", "n2")).unwrap().without_content();
    assert!(!bare.is_same_content(&other), "another state of the same version is");
    let paths = crate::FieldPaths::new(["spec.nodeName".parse().unwrap()]);
    assert!(crate::Packer::new(crate::Packing::Packed).pack_with(bare, &paths).packed_fields().is_none());
}

#[test]
fn an_invalid_type_is_replaced() {
    for meta in [
        r#""kind":"""#,
        r#""kind":null,"apiVersion":7"#,
        r#""apiVersion":"v1""#,
        r#""kind":"Pod","apiVersion":"""#,
    ] {
        let object = parse(&format!(r#"{{{meta},"metadata":{{"name":"a"}},"z":1,"b":2}}"#)).unwrap();
        let expected = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"z":1,"b":2}"#;
        assert_eq!(object.json().unwrap(), expected, "{meta}");
    }
}

#[test]
fn limits_hold_for_a_single_object() {
    let limits = Limits { object_bytes: 100, depth: 3, labels: 1 };
    let parse = |json: &str| Object::parse(&origin(), Bytes::copy_from_slice(json.as_bytes()), &limits);
    assert!(parse(r#"{"metadata":{"name":"a","x":{}},"y":[[1]]}"#).is_ok());
    assert!(parse(r#"{"metadata":{"name":"a","labels":{"a":""}}}"#).is_ok());
    for (json, reason) in [
        (format!(r#"{{"metadata":{{"name":"a"}},"x":"{}"}}"#, "x".repeat(100)), "larger than 100 bytes"),
        (r#"{"metadata":{"name":"a"},"x":[[[1]]]}"#.into(), "less nesting"),
        (r#"{"metadata":{"name":"a","labels":{"a":"","b":""}}}"#.into(), "too many labels"),
        (r#"{"metadata":{"name":"a","x":[[]]}}"#.into(), "less nesting"),
    ] {
        let malformed = parse(&json).unwrap_err();
        assert!(malformed.reason.contains(reason), "{json}: {malformed}");
    }
}

#[test]
fn skipped_values_need_not_be_json() {
    let object = parse(r#"{"metadata":{"name":"a","x":{y}},"spec":{"a":nonsense}}"#).unwrap();
    assert_eq!(object.name(), "a");
    assert!(object.view::<Value>().is_err());
    assert!(parse(r#"{"metadata":{"name":"a"},"spec":nonsense}"#).is_err());
}

#[test]
fn the_closing_bookmark_needs_the_exact_mark() {
    let bookmark = |value: &str| {
        let json = format!(
            r#"{{"kind":"Pod","metadata":{{"resourceVersion":"9","annotations":{{"k8s.io/initial-events-end":"{value}"}}}}}}"#
        );
        Bookmark::parse(json.as_bytes()).unwrap()
    };
    assert!(bookmark("true").initial_events_end);
    assert!(!bookmark("True").initial_events_end);
    assert!(Bookmark::parse(br#"{"metadata":{}}"#).is_err());
}

fn kept(kind: Kind, packing: crate::Packing) -> Object<Value> {
    let json = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let object = Object::parse(&Arc::new(Origin::new(kind)), json.into(), &Limits::default()).unwrap();
    crate::Packer::new(packing).pack(object)
}

#[test]
fn readers_of_one_object_share_its_decoded_value_unless_it_is_a_secret() {
    use crate::Packing;
    for packing in [Packing::Packed, Packing::Raw, Packing::Decoded] {
        let map = kept(Kind::namespaced("", "v1", "ConfigMap", "configmaps"), packing);
        assert!(Arc::ptr_eq(&map.decode().unwrap(), &map.decode().unwrap()), "{packing:?}");
        let typed = map.cast::<std::collections::BTreeMap<String, Value>>();
        assert!(Arc::ptr_eq(&typed.decode().unwrap(), &typed.decode().unwrap()), "{packing:?}");
        let secret = kept(Kind::namespaced("", "v1", "Secret", "secrets"), packing);
        assert!(!Arc::ptr_eq(&secret.decode().unwrap(), &secret.decode().unwrap()), "{packing:?}");
    }
}

#[test]
fn a_value_is_kept_for_as_long_as_the_object_only_where_that_was_asked_for() {
    let kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
    let value = Arc::downgrade(&kept(kind.clone(), crate::Packing::Raw).decode().unwrap());
    assert!(value.upgrade().is_none(), "gone with its origin");
    let object = kept(kind, crate::Packing::Decoded);
    let value = Arc::downgrade(&object.decode().unwrap());
    assert!(value.upgrade().is_some());
    drop(object);
    assert!(value.upgrade().is_none());
}

#[test]
fn fields_are_read_before_packing_and_kept() {
    let json = r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n1"}}"#;
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    let parse = || Object::parse(&origin, json.into(), &Limits::default()).unwrap();
    let paths = crate::FieldPaths::new(["spec.nodeName".parse().unwrap(), "spec.none".parse().unwrap()]);
    let packer = crate::Packer::new(crate::Packing::Packed);
    let (one, two) = (packer.pack_with(parse(), &paths), packer.pack_with(parse(), &paths));
    assert_eq!(one.packed_fields().unwrap(), [vec![Value::from("n1")], vec![]]);
    assert!(std::ptr::eq(one.packed_fields().unwrap(), two.packed_fields().unwrap()), "shared");
    assert!(packer.pack(parse()).packed_fields().is_none());
}

#[test]
fn a_record_is_small() {
    // Two words of these are the list of kept views.
    assert!(size_of::<Record>() <= 17 * size_of::<usize>(), "{} bytes", size_of::<Record>());
}
