//! The options of deletes: grace periods, propagation, preconditions, formats.

use kube_informer_types::protobuf;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A pod, with a node unless that is empty.
async fn pod(c: &Cluster, name: &str, node: &str, grace: Value) {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    if !grace.is_null() {
        pod["spec"]["terminationGracePeriodSeconds"] = grace;
    }
    let (code, pod) = c.post(PODS, pod).await;
    assert_eq!(code, 201, "{pod}");
}

async fn map(c: &Cluster, name: &str) -> Value {
    let (code, map) = c.post(MAPS, json!({"metadata": {"name": name}})).await;
    assert_eq!(code, 201, "{map}");
    map
}

/// The grace period that a deleted pod has; `None` if it is removed.
async fn grace(c: &Cluster, name: &str) -> Option<i64> {
    let (code, pod) = c.get(&format!("{PODS}/{name}")).await;
    (code == 200).then(|| pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(-1))
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_is_that_of_the_options_or_the_pod() {
    let c = Cluster::new().await;
    let rows = [
        // node, own period, requested period, then what is left of the pod
        ("n", Value::Null, Value::Null, Some(30)),
        ("n", json!(7), Value::Null, Some(7)),
        ("n", json!(7), json!(3), Some(3)),
        ("n", json!(7), json!(90), Some(90)),
        ("n", json!(7), json!(0), None),
        ("n", json!(0), Value::Null, None),
        ("n", json!(7), json!(-1), Some(1)),
        // Nothing runs without a node.
        ("", json!(7), json!(90), None),
    ];
    for (i, (node, own, requested, left)) in rows.into_iter().enumerate() {
        for in_query in [false, true] {
            let name = format!("p{i}-{in_query}");
            pod(&c, &name, node, own.clone()).await;
            let path = format!("{PODS}/{name}");
            let (code, response) = match (in_query, &requested) {
                (true, Value::Number(seconds)) => {
                    c.delete(&format!("{path}?gracePeriodSeconds={seconds}"), Value::Null).await
                }
                (true, _) => c.delete(&path, Value::Null).await,
                (false, _) => c.delete(&path, json!({"gracePeriodSeconds": requested})).await,
            };
            assert_eq!(code, 200, "{response}");
            assert_eq!(grace(&c, &name).await, left, "{node:?} {own} {requested} {in_query}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_delete_may_shorten_the_grace_period_and_not_lengthen_it() {
    let c = Cluster::new().await;
    pod(&c, "p", "n", json!(30)).await;
    let path = format!("{PODS}/p");
    let delete = async |seconds: i64| {
        let (code, response) = c.delete(&path, json!({"gracePeriodSeconds": seconds})).await;
        assert_eq!(code, 200, "{response}");
        grace(&c, "p").await
    };
    assert_eq!(delete(20).await, Some(20));
    assert_eq!(delete(60).await, Some(20));
    assert_eq!(delete(5).await, Some(5));
    assert_eq!(c.delete(&path, Value::Null).await.0, 200);
    assert_eq!(grace(&c, "p").await, Some(5), "a delete without a period changes nothing");
    assert_eq!(delete(0).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_a_finalizer_and_contradictions_are_rejected() {
    let c = Cluster::new().await;
    for (query, finalizers) in [
        ("propagationPolicy=Orphan", json!(["orphan"])),
        ("propagationPolicy=Foreground", json!(["foregroundDeletion"])),
        ("propagationPolicy=Background", Value::Null),
        ("orphanDependents=true", json!(["orphan"])),
        ("orphanDependents=1", json!(["orphan"])),
        ("orphanDependents=false", Value::Null),
        ("", Value::Null),
    ] {
        map(&c, "m").await;
        let (code, response) = c.delete(&format!("{MAPS}/m?{query}"), Value::Null).await;
        assert_eq!(code, 200, "{query}: {response}");
        assert_eq!(response["metadata"]["finalizers"], finalizers, "{query}");
        let (code, held) = c.get(&format!("{MAPS}/m")).await;
        assert_eq!(code == 200, !finalizers.is_null(), "{query}: {held}");
        // A later delete with another policy replaces the finalizer of the first.
        c.delete(&format!("{MAPS}/m"), json!({"propagationPolicy": "Background"})).await;
        assert_eq!(c.get(&format!("{MAPS}/m")).await.0, 404, "{query}");
    }
    map(&c, "m").await;
    for (body, words) in [
        (json!({"propagationPolicy": "Sideways"}), "Unsupported value: \"Sideways\""),
        (json!({"propagationPolicy": "Orphan", "orphanDependents": true}), "cannot be both set"),
        (json!({"dryRun": ["Some"]}), "supported values: \"All\""),
    ] {
        let (code, status) = c.delete(&format!("{MAPS}/m"), body).await;
        assert_eq!(code, 422, "{status}");
        assert!(status["message"].as_str().is_some_and(|m| m.contains(words)), "{words}: {status}");
    }
    assert_eq!(c.get(&format!("{MAPS}/m")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn preconditions_of_deletes_are_checked() {
    let c = Cluster::new().await;
    let made = map(&c, "m").await;
    let (uid, version) = (&made["metadata"]["uid"], &made["metadata"]["resourceVersion"]);
    let path = format!("{MAPS}/m");
    for (preconditions, words) in [
        (json!({"uid": "other"}), "the UID in the precondition (other) does not match the UID in record"),
        (
            json!({"resourceVersion": "1"}),
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record",
        ),
        (json!({"uid": uid, "resourceVersion": "1"}), "the ResourceVersion in the precondition (1)"),
    ] {
        for dry_run in [json!([]), json!(["All"])] {
            let body = json!({"preconditions": preconditions, "dryRun": dry_run});
            let (code, status) = c.delete(&path, body).await;
            assert_eq!((code, &status["reason"]), (409, &json!("Conflict")), "{status}");
            assert!(status["message"].as_str().is_some_and(|m| m.contains(words)), "{words}: {status}");
        }
    }
    let body = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    assert_eq!(c.delete(&path, body).await.0, 200);
    assert_eq!(c.get(&path).await.0, 404);
}

/// Clients send options as JSON, YAML or protobuf, some with a kind, and old ones with fields that have no effect.
#[tokio::test(start_paused = true)]
async fn delete_options_are_read_in_every_format() {
    let c = Cluster::new().await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"});
    let encoded =
        protobuf::encode(options.to_string().as_bytes()).expect("DeleteOptions have a protobuf form");
    let yaml = "propagationPolicy: Orphan\n";
    for (media, body) in [
        ("application/json", options.to_string().into_bytes()),
        ("", options.to_string().into_bytes()),
        ("application/yaml", yaml.as_bytes().to_vec()),
        (protobuf::MEDIA_TYPE, encoded.to_vec()),
    ] {
        map(&c, "m").await;
        let (code, held, _) = c.send_text("DELETE", &format!("{MAPS}/m"), media, body).await;
        assert_eq!((code, &held["metadata"]["finalizers"]), (200, &json!(["orphan"])), "{media:?}: {held}");
        c.delete(&format!("{MAPS}/m"), json!({"propagationPolicy": "Background"})).await;
    }
    map(&c, "m").await;
    for (media, body, code) in [
        ("text/plain", "{}", 415),
        ("application/json", "{", 400),
        ("application/yaml", "a: b: c", 400),
        ("application/json", r#"{"kind": "Pod"}"#, 400),
        ("application/json", r#"{"gracePeriodSeconds": "soon"}"#, 400),
        (protobuf::MEDIA_TYPE, "k8s\0\u{1}", 400),
    ] {
        let (found, status, _) = c.send_text("DELETE", &format!("{MAPS}/m"), media, body).await;
        assert_eq!(found, code, "{media} {body}: {status}");
    }
    // The alpha feature that reads this field is off by default, here and in kube-apiserver.
    let unsafe_delete = json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true, "dryRun": ["All"]});
    assert_eq!(c.delete(&format!("{MAPS}/m"), unsafe_delete).await.0, 200);
    assert_eq!(c.get(&format!("{MAPS}/m")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_deletes_with_its_options() {
    let c = Cluster::new().await;
    let evict = async |name: &str, options: Value| {
        let eviction = json!({"metadata": {"name": name}, "deleteOptions": options});
        c.post(&format!("{PODS}/{name}/eviction"), eviction).await
    };
    pod(&c, "p", "n", json!(30)).await;
    assert_eq!(evict("p", json!({"dryRun": ["All"]})).await.0, 201);
    let (_, stored) = c.get(&format!("{PODS}/p")).await;
    assert!(stored["metadata"]["deletionTimestamp"].is_null(), "{stored}");
    assert_eq!(evict("p", json!({"preconditions": {"uid": "other"}})).await.0, 409);
    assert_eq!(evict("p", json!({"gracePeriodSeconds": 4})).await.0, 201);
    assert_eq!(grace(&c, "p").await, Some(4));
    assert_eq!(evict("p", json!({"gracePeriodSeconds": 0})).await.0, 201);
    assert_eq!(grace(&c, "p").await, None);
    assert_eq!(evict("p", json!({})).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn one_owner_may_be_the_controller() {
    let c = Cluster::new().await;
    let owner = |name: &str, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": controller});
    let with = |owners: Value| json!({"metadata": {"name": "m", "ownerReferences": owners}});
    let (code, status) = c.post(MAPS, with(json!([owner("a", true), owner("b", true)]))).await;
    assert_eq!(code, 422, "{status}");
    assert_eq!(
        status["details"]["causes"][0],
        json!({"reason": "FieldValueInvalid", "field": "metadata.ownerReferences",
            "message": "Invalid value: 2: Only one reference can have Controller set to true"})
    );
    for field in ["apiVersion", "kind", "name", "uid"] {
        let mut incomplete = owner("a", false);
        incomplete.as_object_mut().expect("an object").remove(field);
        let (code, status) = c.post(MAPS, with(json!([incomplete]))).await;
        assert_eq!(code, 422, "{status}");
        assert_eq!(status["details"]["causes"][0]["field"], format!("metadata.ownerReferences[0].{field}"));
    }
    assert_eq!(c.post(MAPS, with(json!([owner("a", true), owner("b", false)]))).await.0, 201);
}
