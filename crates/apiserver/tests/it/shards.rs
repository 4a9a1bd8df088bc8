//! Lists and watches of some shards (`shardSelector`).

use std::collections::BTreeSet;

use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::watch_cache::FeatureGates;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LOW: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
const HIGH: &str = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

async fn cluster() -> Cluster {
    let mut gates = FeatureGates::default();
    gates.sharded_list_and_watch = true;
    let server = ApiServer::builder().seed(5).gates(gates).in_process().await.unwrap();
    let client = server.client();
    Cluster { server, client }
}

fn path(selector: &str, more: &str) -> String {
    let query: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
    format!("{MAPS}?shardSelector={query}{more}")
}

fn names(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn shards_divide_lists_and_watches() {
    let c = cluster().await;
    for number in 0..20 {
        c.post(MAPS, json!({"metadata": {"name": format!("c-{number}")}})).await;
    }
    let (_, whole) = c.get(MAPS).await;
    assert!(whole["metadata"].get("shardInfo").is_none());
    let (_, low) = c.get(&path(LOW, "")).await;
    let (_, high) = c.get(&path(HIGH, "")).await;
    assert_eq!(low["metadata"]["shardInfo"], json!({"selector": LOW}));
    let (low_names, high_names) = (names(&low), names(&high));
    assert!(low_names.len() > 3 && high_names.len() > 3, "{low_names:?} {high_names:?}");
    assert!(low_names.is_disjoint(&high_names));
    assert_eq!(&low_names | &high_names, names(&whole));
    let (_, both) = c.get(&path(&format!("{LOW} || {HIGH}"), "")).await;
    assert_eq!(names(&both), names(&whole));
    // Pages.
    let (_, page) = c.get(&path(LOW, "&limit=2")).await;
    assert_eq!(names(&page).len(), 2);
    assert!(page["metadata"].get("remainingItemCount").is_none(), "{page}");
    // A watch reports objects of the shard only, also when they are deleted.
    let version = whole["metadata"]["resourceVersion"].as_str().unwrap();
    let more = format!("&watch=true&resourceVersion={version}&timeoutSeconds=5");
    let mut watch = c.watch(&path(LOW, &more)).await;
    for name in &names(&whole) {
        c.delete(&format!("{MAPS}/{name}"), Value::Null).await;
    }
    let mut deleted = BTreeSet::new();
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "DELETED", "{event}");
        deleted.insert(event["object"]["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(deleted, low_names);
}

#[tokio::test(start_paused = true)]
async fn invalid_selectors_are_errors_and_servers_without_the_feature_ignore_them() {
    let c = cluster().await;
    c.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    for more in ["", "&watch=true"] {
        let (code, status) = c.get(&path("true", more)).await;
        assert_eq!((code, status["status"].as_str()), (500, Some("Failure")), "{status}");
        assert!(status["message"].as_str().unwrap().starts_with("invalid shard selector: "), "{status}");
    }
    let without = Cluster::new().await;
    without.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let (code, list) = without.get(&path("true", "")).await;
    assert_eq!((code, names(&list).len()), (200, 1));
    assert!(list["metadata"].get("shardInfo").is_none());
}
