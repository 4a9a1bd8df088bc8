use serde_json::{Value, json};

use crate::registry::{Object, Registry};

/// One object a line with its errors, in the words of kube-apiserver.
const REFUSED: &str = include_str!("refused.jsonl");

#[test]
fn invalid_objects_are_rejected_with_the_messages_of_kube_apiserver() {
    let registry = Registry::built_in();
    for line in REFUSED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (api, plural) = (text(&row["object"]["apiVersion"]), text(&row["plural"]));
        let (group, version) = api.split_once('/').unwrap_or(("", &api));
        let resource = registry.find(group, version, &plural).unwrap();
        let mut object = Object::new(row["object"].clone()).unwrap();
        resource.default(&mut object, 1 << 20).unwrap();
        (resource.rules.prepare)(&mut object);
        let found: Vec<String> =
            (resource.rules.validate)(&object).iter().map(|fault| fault.text()).collect();
        let wanted: Vec<String> = row["faults"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(found, wanted, "{plural}: {}", row["object"]);
    }
}

fn service(spec: Value) -> Object {
    let mut service = Object::new(json!({"metadata": {"uid": "a1-b2"}, "spec": spec})).unwrap();
    let registry = Registry::built_in();
    registry.find("", "v1", "services").unwrap().default(&mut service, 1 << 20).unwrap();
    service
}

/// The service after an update of `old`, and its errors.
fn updated(old: Value, new: Value) -> (Object, Vec<String>) {
    let registry = Registry::built_in();
    let rules = registry.find("", "v1", "services").unwrap().rules;
    let mut before = service(old);
    (rules.prepare)(&mut before);
    let mut after = service(new);
    (rules.prepare_update)(&mut after, &before);
    let mut faults = (rules.validate)(&after);
    faults.extend((rules.validate_update)(&after, &before));
    (after, faults.iter().map(|fault| fault.text()).collect())
}

#[test]
fn a_service_keeps_its_address_and_ports_while_its_type_has_them() {
    let ports = json!([{"port": 80}]);
    let fixed =
        json!({"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 31000}]});
    let (kept, faults) = updated(fixed.clone(), json!({"type": "NodePort", "ports": ports}));
    assert_eq!((kept.str_at("/spec/clusterIP"), faults.len()), ("10.0.0.1", 0));
    assert_eq!(kept.at("/spec/ports/0/nodePort"), Some(&json!(31000)));
    // A type without ports on nodes loses them, if they were only sent back.
    let mut sent_back = fixed.clone();
    sent_back["type"] = "ClusterIP".into();
    sent_back["externalTrafficPolicy"] = "Cluster".into();
    let (plain, faults) = updated(fixed.clone(), sent_back);
    assert_eq!((plain.at("/spec/ports/0/nodePort"), faults.len()), (None, 0));
    // To a name and back: another address.
    let named = json!({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]});
    let (named, faults) = updated(json!({"clusterIP": "10.0.0.1", "ports": ports}), named);
    assert_eq!((named.at("/spec/clusterIP"), faults.len()), (None, 0), "{faults:?}");
    let (back, faults) =
        updated(json!({"type": "ExternalName", "externalName": "a.b"}), json!({"ports": ports}));
    assert!(back.at("/spec/clusterIP").is_none() && faults.is_empty(), "admission assigns one: {faults:?}");
}

#[test]
fn the_address_of_a_service_does_not_change() {
    let ports = json!([{"port": 80}]);
    let old = json!({"clusterIP": "10.0.0.1", "ports": ports});
    let (_, faults) =
        updated(old, json!({"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.1"], "ports": ports}));
    assert_eq!(faults, [r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set"#]);
}
