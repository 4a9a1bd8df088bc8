//! Servers with an etcd store.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::storage::{EtcdOptions, EtcdStorage};

use crate::golden::exchange::{read, send};

use super::{Etcd, SharedEtcd, shared, until};

async fn server(etcd: &SharedEtcd) -> ApiServer {
    ApiServer::builder().storage(Arc::new(etcd.store().await)).start().await.expect("the server starts")
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, ..Default::default() }
}

#[tokio::test]
async fn objects_outlive_the_server_and_are_shared_by_all_servers() {
    let Some(etcd) = shared().await else { return };
    let first = server(&etcd).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(first.client().expect("a client"));
    let created = maps.create(&PostParams::default(), &map("a")).await.expect("stored");
    first.shutdown().await;

    let (second, third) = (server(&etcd).await, server(&etcd).await);
    let here: Api<ConfigMap> = Api::default_namespaced(second.client().expect("a client"));
    let there: Api<ConfigMap> = Api::default_namespaced(third.client().expect("a client"));
    assert_eq!(here.get("a").await.expect("still there"), created);
    here.create(&PostParams::default(), &map("b")).await.expect("stored");
    let names: Vec<_> = there
        .list(&Default::default())
        .await
        .expect("a list")
        .into_iter()
        .filter_map(|m| m.metadata.name)
        .collect();
    assert_eq!(names, ["a", "b"]);
    there.delete("a", &Default::default()).await.expect("deleted");
    assert!(here.get_opt("a").await.expect("read").is_none());
    let namespaces: Api<Namespace> = Api::all(second.client().expect("a client"));
    assert_eq!(namespaces.list(&Default::default()).await.expect("a list").items.len(), 4, "created once");
}

#[tokio::test]
async fn a_server_recovers_after_etcd_lost_its_data() {
    let Some(mut etcd) = Etcd::start() else { return };
    let storage = EtcdStorage::connect(EtcdOptions::new([etcd.url.clone()])).await.expect("etcd responds");
    let server = ApiServer::builder().storage(Arc::new(storage)).start().await.expect("the server starts");
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client().expect("a client"));
    maps.create(&PostParams::default(), &map("a")).await.expect("stored");
    let ready = async |verbose: &str| {
        let request = serde_json::json!({"path": format!("/readyz{verbose}")});
        read(send(server.address(), &request).await.expect("a response")).await.expect("whole")
    };
    assert_eq!(ready("").await["status"], 200);
    etcd.kill();
    let unready = ready("?verbose").await;
    assert!(
        unready["status"] == 500 && unready["text"].as_str().is_some_and(|t| t.contains("[-]etcd failed")),
        "{unready:?}"
    );
    etcd.restart_empty();
    until("writes succeed again", async || maps.create(&PostParams::default(), &map("b")).await.is_ok())
        .await;
    until("only the new object exists", async || {
        let list = maps.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
        let names: Vec<_> = list.into_iter().filter_map(|m| m.metadata.name).collect();
        names == ["b"]
    })
    .await;
}
