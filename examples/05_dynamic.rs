//! Kinds that are known only at run time: found by discovery, read as JSON. Custom resources work the same way.
//!
//! `cargo run -p kube-informer-examples --bin 05_dynamic`

use kube::{
    api::{Api, DynamicObject, PostParams},
    discovery,
};
use kube_informer::{Event, InformerFactory, Object};
use kube_informer_examples::Cluster;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use futures_util::StreamExt;
    let cluster = Cluster::start().await?;
    let client = cluster.client()?;
    let group = discovery::group(&client, "coordination.k8s.io").await?;
    let (resource, _) = group.recommended_kind("Lease").ok_or("this server has no leases")?;

    let factory = InformerFactory::from_config(cluster.config())?;
    let leases = factory.dynamic(&resource);
    println!("watching {}", leases.kind());
    // A stream instead of a handler, for code that wants to `.await` between events.
    let mut events = leases.events();
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "worker-1"}});
    api.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;

    if let Some(Event::Added { object, .. }) = events.next().await {
        println!("{} is held by {}", object.key(), holder(&object)?);
    }
    factory.shutdown().await;
    Ok(())
}

/// Any object can be read as plain JSON, or as a struct that names the fields you want.
fn holder(lease: &Object<DynamicObject>) -> Result<String, Box<dyn std::error::Error>> {
    let value: Value = lease.view()?;
    Ok(value["spec"]["holderIdentity"].as_str().unwrap_or("nobody").to_owned())
}
