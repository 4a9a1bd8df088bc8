use super::*;
use serde_json::json;

mod generated;

fn round_trip(object: &Value) -> Value {
    decode(&encode(object.to_string().as_bytes()).unwrap()).unwrap()
}

#[test]
fn objects_round_trip() {
    let pod = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": "a", "namespace": "b", "uid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "x", "empty": ""},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": false}],
            "managedFields": [{"manager": "m", "operation": "Update", "fieldsV1": {"f:metadata": {}}}]
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "v", "hostPath": {"path": "/x", "type": ""}}, {"name": "w", "emptyDir": {}}],
            "securityContext": {"supplementalGroups": [1, -2, 3], "runAsUser": -1},
            "containers": [{
                "name": "c", "image": "i",
                "resources": {"limits": {"cpu": "100m"}},
                "ports": [{"containerPort": 80}],
                "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": false}}}],
                "livenessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 8080}}
            }]
        },
        "status": {"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {}, "lastState": {}}]}
    });
    assert_eq!(round_trip(&pod), pod);
    let secret =
        json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"k": "AAEC/w=="}});
    assert_eq!(round_trip(&secret), secret);
    let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "l"},
        "spec": {"renewTime": "2026-01-02T03:04:05.000006Z", "leaseDurationSeconds": 15}});
    assert_eq!(round_trip(&lease), lease);
    let review = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"user": "u", "extra": {"scopes": ["a", "b"], "none": []}}});
    assert_eq!(round_trip(&review)["spec"], review["spec"]);
}

#[test]
fn a_list_is_allocated_once() {
    #[derive(serde::Deserialize)]
    struct Pod {
        spec: Spec,
    }
    #[derive(serde::Deserialize)]
    struct Spec {
        containers: Vec<Value>,
    }
    for count in [1, 2, 5, 9] {
        let containers: Vec<Value> = (0..count).map(|i| json!({"name": i.to_string()})).collect();
        let pod =
            json!({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": containers, "nodeName": "n"}});
        let body = encode(pod.to_string().as_bytes()).unwrap();
        let Envelope { kind, api_version, raw } = Envelope::decode(&body).unwrap();
        let pod: Pod = MessageType::of(api_version, kind).unwrap().decode(raw, (kind, api_version)).unwrap();
        assert_eq!((pod.spec.containers.len(), pod.spec.containers.capacity()), (count, count));
    }
}

/// Fields in any order, and repeated keys, of which the last one counts.
#[test]
fn the_order_of_json_does_not_matter() {
    let ordered = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"1","b":"2"}},
        "spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}],"containers":[{"name":"c","image":"i"}],"nodeName":"n"}}"#;
    let shuffled = r#"{"spec":{"nodeName":"n","containers":[{"image":"i","name":"c"}],
        "volumes":[{"hostPath":{"path":"/x"},"name":"v"}]},
        "metadata":{"labels":{"b":"2","a":"1"},"name":"a"},"unknown":[{}],"apiVersion":"v1","kind":"Pod"}"#;
    let repeated = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"},"metadata":{"name":"a","labels":{"a":"0","b":"2","a":"1"}},
        "spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}],"containers":[{"name":"c","image":"i"}],"nodeName":"n"}}"#;
    let whole = encode(ordered.as_bytes()).unwrap();
    assert_eq!(encode(shuffled.as_bytes()).unwrap(), whole);
    assert_eq!(encode(repeated.as_bytes()).unwrap(), whole);
}

#[test]
fn a_wrong_type_names_its_field() {
    for (spec, field) in [
        (r#"{"nodeName":7}"#, "nodeName"),
        (r#"{"containers":{}}"#, "containers"),
        (r#"{"containers":["a"]}"#, "containers"),
        (r#"{"nodeSelector":[]}"#, "nodeSelector"),
        (r#"{"nodeSelector":{"a":true}}"#, "nodeSelector"),
        (r#"{"hostNetwork":"yes"}"#, "hostNetwork"),
        (r#"{"affinity":"none"}"#, "affinity"),
    ] {
        let json = format!(r#"{{"kind":"Pod","apiVersion":"v1","spec":{spec}}}"#);
        assert_eq!(
            encode(json.as_bytes()),
            Err(ProtobufError::Mismatch { field: field.to_owned() }),
            "{json}"
        );
    }
    for json in [
        "",
        "{",
        "[]",
        r#"{"kind":"Pod","apiVersion":"v1"} x"#,
        r#"{"kind":"Pod","apiVersion":"v1","spec":{]}"#,
    ] {
        assert_eq!(encode(json.as_bytes()), Err(ProtobufError::Malformed), "{json}");
    }
}

/// Go encodes every field that is not a pointer, and omits most zero values in JSON.
#[test]
fn zero_values_are_decoded_as_by_go() {
    let mut spec = Vec::new();
    write::text(&mut spec, 10, ""); // nodeName
    let mut pod = Vec::new();
    write::bytes(&mut pod, 1, &[]);
    write::bytes(&mut pod, 2, &spec);
    write::bytes(&mut pod, 3, &[]);
    let body = Envelope { api_version: "v1", kind: "Pod", raw: &pod }.encode();
    let zeros = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"containers": null}, "status": {}});
    assert_eq!(decode(&body).unwrap(), zeros);
}

#[test]
fn lists_and_partial_metadata_are_encoded() {
    let mut list = ListWriter::new("v1", "ConfigMapList", &json!({"resourceVersion": "7"})).unwrap();
    list.push(br#"{"metadata": {"name": "a"}}"#).unwrap();
    list.push(br#"{"metadata": {"name": "b"}}"#).unwrap();
    assert!(list.push(b"[]").is_err());
    let bytes = list.finish();
    let envelope = Envelope::decode(&bytes).unwrap();
    assert_eq!((envelope.api_version, envelope.kind), ("v1", "ConfigMapList"));
    let fields: Vec<u32> = fields::Fields(envelope.raw).map(|field| field.unwrap().0).collect();
    assert_eq!(fields, [1, 2, 2]);
    let partial =
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}});
    assert_eq!(round_trip(&partial), partial);
    assert!(!knows("example.com/v1", "Widget") && knows("apps/v1", "Deployment") && knows("v1", "Status"));
}

#[test]
fn packed_numbers_are_decoded() {
    let mut context = Vec::new();
    write::bytes(&mut context, 4, &[1, 0x96, 0x01]); // supplementalGroups
    let (mut spec, mut pod) = (Vec::new(), Vec::new());
    write::bytes(&mut spec, 14, &context);
    write::bytes(&mut pod, 2, &spec);
    let body = Envelope { api_version: "v1", kind: "Pod", raw: &pod }.encode();
    assert_eq!(decode(&body).unwrap()["spec"]["securityContext"], json!({"supplementalGroups": [1, 150]}));
}

#[test]
fn malformed_bytes_are_an_error() {
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let good = encode(map.to_string().as_bytes()).unwrap();
    let mut rejected = 0;
    for end in 0..good.len() {
        rejected += usize::from(decode(&good[..end]).is_err());
    }
    assert!(rejected > good.len() / 2, "most truncated messages are rejected");
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut bytes = good.to_vec();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(4..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let _ = decode(&bytes);
    }
    assert_eq!(decode(b"{}"), Err(ProtobufError::NoMagic));
    let huge_length =
        [b"k8s\0".as_slice(), &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
    assert_eq!(decode(&huge_length), Err(ProtobufError::Malformed));
}
