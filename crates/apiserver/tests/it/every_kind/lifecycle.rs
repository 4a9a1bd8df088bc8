//! Creation, versions, finalizers, deletion.

use serde_json::{Value, json};

use super::{create, kinds, without_versions};
use crate::cluster::{Cluster, MERGE};

/// A write that changes nothing takes no version: clients that apply in a loop would otherwise wake every watcher.
#[tokio::test(start_paused = true)]
async fn a_put_of_the_same_object_takes_no_version() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        create(&c, kind).await;
        let (_, stored) = c.get(&kind.object_path()).await;
        let (code, put) = c.put(&kind.object_path(), stored.clone()).await;
        assert_eq!((code, &put), (200, &stored), "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_with_an_old_version_conflicts_for_every_kind() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        create(&c, kind).await;
        let (_, old) = c.get(&kind.object_path()).await;
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        let (code, newer) = c.patch(&kind.object_path(), MERGE, label).await;
        assert_eq!(code, 200, "{}: {newer}", kind.kind);
        let (code, status) = c.put(&kind.object_path(), old).await;
        assert_eq!((code, &status["reason"]), (409, &json!("Conflict")), "{}: {status}", kind.kind);
        let (_, stored) = c.get(&kind.object_path()).await;
        assert_eq!(stored, newer, "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_of_every_kind() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let mut held = kind.sample();
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        let (code, created) = c.post(&kind.path(), held).await;
        assert_eq!(code, 201, "{}: {created}", kind.kind);
        let path = kind.object_path();
        assert_eq!(c.delete(&path, json!({"gracePeriodSeconds": 0})).await.0, 200, "{}", kind.kind);
        let (code, waiting) = c.get(&path).await;
        assert_eq!(code, 200, "{}", kind.kind);
        assert!(waiting["metadata"]["deletionTimestamp"].is_string(), "{}: {waiting}", kind.kind);
        let (code, status) = c
            .patch(
                &path,
                MERGE,
                json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
            )
            .await;
        assert_eq!(code, 422, "{}: {status}", kind.kind);
        let (code, _) = c.patch(&path, MERGE, json!({"metadata": {"finalizers": null}})).await;
        assert_eq!(code, 200, "{}", kind.kind);
        assert_eq!(c.get(&path).await.0, 404, "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_alone_sets_identity_and_times() {
    let c = Cluster::new().await;
    let forged = json!({"uid": "11111111-1111-1111-1111-111111111111", "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 7,
        "selfLink": "/x", "managedFields": []});
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let mut object = kind.sample();
        for (field, value) in forged.as_object().expect("fields") {
            object["metadata"][field] = value.clone();
        }
        let (code, created) = c.post(&kind.path(), object).await;
        assert_eq!(code, 201, "{}: {created}", kind.kind);
        let metadata = &created["metadata"];
        for (field, value) in forged.as_object().expect("fields") {
            assert_ne!(&metadata[field], value, "{} of {}", field, kind.kind);
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            assert!(metadata[field].is_null(), "{} of {}", field, kind.kind);
        }
        // A later write keeps them.
        let path = kind.object_path();
        let (_, mut later) = c.get(&path).await;
        later["metadata"]["creationTimestamp"] = forged["creationTimestamp"].clone();
        later["metadata"]["generation"] = 42.into();
        later["metadata"]["labels"]["x"] = "y".into();
        let (code, put) = c.put(&path, later).await;
        assert_eq!(
            (code, &put["metadata"]["creationTimestamp"]),
            (200, &metadata["creationTimestamp"]),
            "{put}"
        );
        assert_ne!(put["metadata"]["generation"], 42, "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_can_be_generated_for_every_kind() {
    let c = Cluster::new().await;
    // Their names follow from their content.
    let named = ["APIService", "CustomResourceDefinition", "IPAddress"];
    for kind in kinds(&c).await.iter().filter(|kind| !named.contains(&kind.kind.as_str())) {
        let mut object = kind.sample();
        object["metadata"].as_object_mut().expect("metadata").remove("name");
        object["metadata"]["generateName"] = "made-".into();
        let (code, created) = c.post(&kind.path(), object).await;
        let name = created["metadata"]["name"].as_str().unwrap_or_default();
        assert!(code == 201 && name.len() == "made-".len() + 5 && name.starts_with("made-"), "{created}");
    }
}

/// The first delete of a collection that matches nothing deletes nothing; one that matches deletes only that.
#[tokio::test(start_paused = true)]
async fn a_collection_of_every_kind_is_deleted_by_selector() {
    let c = Cluster::new().await;
    let all = kinds(&c).await;
    let with_verb =
        |kind: &&super::Kind| kind.verbs.iter().any(|verb| verb == "deletecollection") && !kind.is_alias();
    for kind in all.iter().filter(with_verb) {
        let mut object = kind.sample();
        object["metadata"]["labels"] = json!({"delete": "me"});
        assert_eq!(c.post(&kind.path(), object).await.0, 201, "{}", kind.kind);
        let other = format!("{}?labelSelector=delete=other", kind.path());
        assert_eq!(c.delete(&other, Value::Null).await.0, 200, "{}", kind.kind);
        assert_eq!(c.get(&kind.object_path()).await.0, 200, "{}", kind.kind);
        let dry = format!("{}?labelSelector=delete=me&dryRun=All", kind.path());
        assert_eq!(c.delete(&dry, Value::Null).await.0, 200, "{}", kind.kind);
        assert_eq!(c.get(&kind.object_path()).await.0, 200, "{}", kind.kind);
        let both = format!("{}?labelSelector=delete=me&fieldSelector=metadata.name!=none", kind.path());
        let (code, list) = c.delete(&both, Value::Null).await;
        assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)), "{}: {list}", kind.kind);
        assert_eq!(c.get(&kind.object_path()).await.0, 404, "{}", kind.kind);
    }
}

/// Everything that a watcher of a kind sees of one object, in order.
#[tokio::test(start_paused = true)]
async fn the_life_of_an_object_is_watched_for_every_kind() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await {
        let mut watch = c
            .watch(&format!(
                "{}?watch=1&fieldSelector=metadata.name={}",
                kind.path(),
                kind.sample()["metadata"]["name"].as_str().expect("a name")
            ))
            .await;
        let created = create(&c, &kind).await;
        let event = watch.next().await.expect("an event");
        assert_eq!(event["type"], "ADDED", "{}", kind.kind);
        assert_eq!(event["object"]["metadata"]["uid"], created["metadata"]["uid"]);
        assert_eq!(event["object"]["apiVersion"], kind.api_version.as_str());
        c.patch(&kind.object_path(), MERGE, json!({"metadata": {"annotations": {"a": "b"}}})).await;
        c.delete(&kind.object_path(), json!({"gracePeriodSeconds": 0})).await;
        let mut last = event;
        while last["type"] != "DELETED" {
            let next = watch.next().await.expect("an event");
            let version =
                |event: &Value| event["object"]["metadata"]["resourceVersion"].as_str().map(str::to_owned);
            let number = |event| version(event).and_then(|text| text.parse::<u64>().ok());
            assert!(number(&next) > number(&last), "{}: {next} after {last}", kind.kind);
            last = next;
        }
        assert_eq!(last["object"]["metadata"]["annotations"]["a"], "b", "{}", kind.kind);
        assert_eq!(c.get(&kind.object_path()).await.0, 404, "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_create_is_refused_and_changes_nothing() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        create(&c, kind).await;
        let (_, first) = c.get(&kind.object_path()).await;
        let mut other = kind.sample();
        other["metadata"]["labels"] = json!({"second": "one"});
        let (code, status) = c.post(&kind.path(), other).await;
        assert_eq!((code, &status["reason"]), (409, &json!("AlreadyExists")), "{}: {status}", kind.kind);
        let (_, second) = c.get(&kind.object_path()).await;
        assert_eq!(without_versions(&second), without_versions(&first), "{}", kind.kind);
    }
}
