//! Indexes, and reading only a few fields of an object.
//!
//! `cargo run -p kube-informer-examples --bin 04_indexes_and_views`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube_informer::{InformerFactory, LabelSelector};
use kube_informer_examples::Cluster;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// The fields of a pod that this program uses. Decoding them is much cheaper than decoding the whole `Pod`.
#[derive(Deserialize)]
struct Images {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    image: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let api: Api<Pod> = Api::default_namespaced(cluster.client()?);
    for (name, node, image) in [("a", "node-0", "web:1"), ("b", "node-0", "cart:7"), ("c", "node-1", "web:1")]
    {
        let spec = json!({"nodeName": node, "containers": [{"name": "main", "image": image}]});
        let pod =
            json!({"metadata": {"name": name, "labels": {"app": image.split(':').next()}}, "spec": spec});
        api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }

    let factory = InformerFactory::from_config(cluster.config())?;
    // The kind is Pod; its objects are decoded as `Images`. A handle of the full type would share the same cache.
    let pods = factory.of_as::<Pod, Images>();
    let by_node = pods.index_field("spec.nodeName")?;
    let by_image = pods
        .index_view(|pod: &Images| pod.spec.containers.iter().map(|c| c.image.clone()).collect::<Vec<_>>())?;
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    // Use one snapshot for reads that must be consistent with each other.
    let now = pods.lister().snapshot();
    for node in now.values(&by_node)? {
        println!("{node}: {} pods", now.by(&by_node, &node)?.len());
    }
    let images: Vec<String> = now
        .by(&by_node, "node-0")?
        .iter()
        .map(|pod| Ok(pod.decode()?.spec.containers[0].image.clone()))
        .collect::<Result<_, kube_informer::DecodeError>>()?;
    println!("images on node-0: {}", images.join(", "));
    println!("pods with web:1: {}", now.by(&by_image, "web:1")?.len());
    let cart: LabelSelector = "app in (cart, checkout)".parse()?;
    println!("pods of the cart: {}", now.matching(&cart).len());
    factory.shutdown().await;
    Ok(())
}
