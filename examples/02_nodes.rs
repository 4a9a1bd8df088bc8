//! An informer of Nodes from the chain that client-go users know; reading its cache.
//!
//! `cargo run -p kube-informer-examples --bin 02_nodes`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use kube_informer::InformerFactory;
use kube_informer_examples::Cluster;
use serde_json::json;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?; // yours: kube::Config::infer().await?
    let api: Api<Node> = Api::all(cluster.client()?);
    for number in 0..3 {
        let node = json!({"metadata": {"name": format!("node-{number}"), "labels": {"zone": format!("z{}", number % 2)}}});
        api.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    }

    let factory = InformerFactory::from_config(cluster.config())?;
    let nodes = factory.core().v1().nodes();
    let lister = nodes.lister(); // the factory starts only informers that are used
    factory.start();
    factory.synced(Duration::from_secs(30)).await?; // the error names informers that are not synced, with the reason

    println!("synced: {}", nodes.informer().status());
    // Reading the cache needs no request.
    for node in &lister.list() {
        println!("{} in zone {}", node.name(), node.labels().get("zone").unwrap_or("?"));
    }
    factory.shutdown().await;
    Ok(())
}
