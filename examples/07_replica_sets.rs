//! Runs the complete controller in `src/replica_set_controller.rs`. Start there if you write your own.
//!
//! `cargo run -p kube-informer-examples --bin 07_replica_sets`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube_informer::{InformerFactory, Object, ObjectKey};
use kube_informer_examples::{Cluster, replica_set_controller};
use serde_json::json;
use std::time::Duration;
use tokio::sync::oneshot;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_env_filter("warn").with_writer(std::io::stderr).init();
    let cluster = Cluster::start().await?;
    let factory = InformerFactory::from_config(cluster.config())?;
    let controller = replica_set_controller(&factory, cluster.client()?)?;
    let sets = factory.of::<ReplicaSet>();

    // Your program: controller.until(tokio::signal::ctrl_c())
    let (stop, stopped) = oneshot::channel::<()>();
    let scaling = async {
        let (api, pods) = (
            Api::<ReplicaSet>::default_namespaced(cluster.client()?),
            Api::<Pod>::default_namespaced(cluster.client()?),
        );
        api.create(&PostParams::default(), &replica_set()?).await?;
        for replicas in [3, 5, 1] {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let scaled = api.patch("web", &PatchParams::default(), &patch).await?;
            let done = |set: Option<&Object<ReplicaSet>>| {
                set.is_some_and(|set| has_settled(set, replicas, scaled.metadata.generation))
            };
            sets.wait_until(&ObjectKey::namespaced("default", "web"), Duration::from_secs(30), done).await?;
            println!(
                "asked for {replicas}, there are {}",
                pods.list(&ListParams::default()).await?.items.len()
            );
        }
        drop(stop);
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let (ran, scaled) = tokio::join!(controller.until(stopped), scaling);
    ran?;
    scaled?;
    factory.shutdown().await;
    Ok(())
}

/// Whether the controller has observed this generation and created all replicas.
fn has_settled(set: &Object<ReplicaSet>, replicas: i32, generation: Option<i64>) -> bool {
    let status = set.decode().ok().and_then(|set| set.status.clone());
    status.is_some_and(|status| status.replicas == replicas && status.observed_generation >= generation)
}

fn replica_set() -> Result<ReplicaSet, serde_json::Error> {
    let labels = json!({"app": "web"});
    serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    }))
}
