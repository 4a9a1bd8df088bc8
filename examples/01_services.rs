//! The classic introduction to informers: a factory that resyncs every minute, an informer of Services, three callbacks.
//!
//! `cargo run -p kube-informer-examples --bin 01_services`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_informer::{HandlerFuncs, InformerFactory, ObjectKey, informer_client, version_changed};
use kube_informer_examples::Cluster;
use serde_json::json;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?; // yours: kube::Config::infer().await?
    let client = informer_client(cluster.config())?;

    let factory = InformerFactory::builder(client.clone()).resync(Duration::from_secs(60)).build();
    let services = factory.of::<Service>();
    services.add_handler(
        HandlerFuncs::new()
            .on_add(|service, _| println!("added {}", service.key()))
            .on_update(|old, new| {
                // A resync calls this every minute for each service. The same version means that nothing changed.
                if version_changed(old, new) {
                    println!("updated {}", new.key());
                }
            })
            .on_delete(|deleted| println!("deleted {}", deleted.key())),
    );
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    // Some changes to print. Your program would wait for Ctrl-C here.
    let api: Api<Service> = Api::default_namespaced(client);
    let cart =
        json!({"metadata": {"name": "cart"}, "spec": {"selector": {"app": "cart"}, "ports": [{"port": 80}]}});
    let (key, timeout) = (ObjectKey::namespaced("default", "cart"), Duration::from_secs(10));
    let made = api.create(&PostParams::default(), &serde_json::from_value(cart)?).await?;
    services.reached(&made).await?;
    let label = json!({"metadata": {"labels": {"tier": "front"}}});
    let changed = api.patch("cart", &PatchParams::default(), &Patch::Merge(label)).await?;
    services.reached(&changed).await?;
    api.delete("cart", &DeleteParams::default()).await?;
    services.wait_until(&key, timeout, |service| service.is_none()).await?;

    // Handlers run in their own tasks: let them finish pending events.
    factory.shutdown_with(kube_informer::Stop::Drain).await;
    Ok(())
}
