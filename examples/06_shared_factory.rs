//! Several controllers on one factory: each resource is listed and watched once, even if they decode it as different types.
//!
//! `cargo run -p kube-informer-examples --bin 06_shared_factory`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube_informer::{InformerFactory, ObjectKey, WorkQueue, enqueue};
use kube_informer_examples::Cluster;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;

/// One controller of a larger program: takes informers from the factory, and runs until the receiver is closed.
async fn names(factory: InformerFactory, seen: mpsc::Sender<String>) {
    let pods = factory.of::<Pod>();
    let queue = WorkQueue::named("names");
    pods.add_handler(enqueue(&queue));
    let stop = seen.clone();
    let work = queue.run_workers(2, async |key: ObjectKey| Ok(seen.send(format!("names: {key}")).await?));
    work.until(stop.closed()).await;
}

/// Another one, which decodes the same pods as its own type.
async fn nodes(factory: InformerFactory, seen: mpsc::Sender<String>) {
    #[derive(Deserialize)]
    struct Placed {
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        node_name: Option<String>,
    }
    let pods = factory.of_as::<Pod, Placed>();
    let queue = WorkQueue::named("nodes");
    pods.add_handler(enqueue(&queue));
    let stop = seen.clone();
    let work = queue.run_workers(2, async |key: ObjectKey| {
        let Some(pod) = pods.lister().get(&key) else { return Ok(()) };
        let node = pod.decode()?.spec.node_name.clone().unwrap_or_else(|| "no node".to_owned());
        Ok(seen.send(format!("nodes: {key} on {node}")).await?)
    });
    work.until(stop.closed()).await;
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let factory = InformerFactory::from_config(cluster.config())?;
    let (sender, mut seen) = mpsc::channel(16);
    let both = async { tokio::join!(names(factory.clone(), sender.clone()), nodes(factory.clone(), sender)) };
    let rest = async {
        factory.start();
        factory.synced(Duration::from_secs(30)).await?;
        println!("informers: {}", factory.informers().len());
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "web:1"}]}});
        let api: Api<Pod> = Api::default_namespaced(cluster.client()?);
        api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let mut lines = [seen.recv().await.unwrap_or_default(), seen.recv().await.unwrap_or_default()];
        lines.sort();
        println!("{}", lines.join("\n"));
        drop(seen); // stops both
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    let (_, result) = tokio::join!(both, rest);
    result?;
    factory.shutdown().await;
    Ok(())
}
