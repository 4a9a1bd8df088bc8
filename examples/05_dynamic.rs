//! Kinds that are known only at run time: a custom resource, found by discovery, decoded as JSON and as a struct with a few
//! fields.
//!
//! `cargo run -p kube-informer-examples --bin 05_dynamic`

#![allow(clippy::print_stdout)] // an example prints

use futures_util::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client,
    api::{Api, DynamicObject, PostParams},
    discovery,
};
use kube_informer::{Event, InformerFactory, kind_of_discovered};
use kube_informer_examples::Cluster;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The fields of a backup that this program uses.
#[derive(Deserialize)]
struct Backup {
    spec: BackupSpec,
}

#[derive(Deserialize)]
struct BackupSpec {
    volume: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let client = cluster.client()?;
    define_backups(&client).await?;

    let group = discovery::group(&client, "example.com").await?;
    let (resource, capabilities) = group.recommended_kind("Backup").ok_or("the server has no backups")?;
    let kind = kind_of_discovered(&resource, &capabilities);
    println!("watching {kind}");

    let factory = InformerFactory::from_config(cluster.config())?;
    let backups = factory.of_kind::<Backup>(kind, |options| options);
    // A stream instead of a handler, for async code.
    let mut events = backups.events();
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let monday = json!({"apiVersion": "example.com/v1", "kind": "Backup", "metadata": {"name": "monday"},
        "spec": {"volume": "data", "keep": 7}});
    api.create(&PostParams::default(), &serde_json::from_value(monday)?).await?;

    if let Some(Event::Added { object, .. }) = events.next().await {
        println!("{} is of volume {}", object.key(), object.decode()?.spec.volume);
        // The same object, decoded as another type.
        let everything: Value = object.view()?;
        println!("{} is kept for {} days", object.key(), everything["spec"]["keep"]);
    }
    factory.shutdown().await;
    Ok(())
}

async fn define_backups(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    let definition = json!({
        "metadata": {"name": "backups.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "backups", "singular": "backup", "kind": "Backup"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "volume": {"type": "string"}, "keep": {"type": "integer"}
                }}}
            }}}]
        }
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    Ok(())
}
