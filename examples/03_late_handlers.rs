//! A handler may be added at any time. It hears of everything that is there, then of everything that happens: nothing is missed,
//! nothing told twice. And it may leave again.
//!
//! `cargo run -p kube-informer-examples --bin 03_late_handlers`

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube_informer::{EventHandler, InformerFactory, Object, Stop};
use kube_informer_examples::Cluster;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

/// A handler is any type with these methods; those left out do nothing.
struct Printer {
    name: &'static str,
    /// Told of each call.
    heard: Arc<Notify>,
}

impl Printer {
    fn new(name: &'static str) -> (Self, Arc<Notify>) {
        let heard = Arc::new(Notify::new());
        (Self { name, heard: Arc::clone(&heard) }, heard)
    }
}

impl EventHandler<ConfigMap> for Printer {
    fn on_add(&mut self, map: &Object<ConfigMap>, initial: bool) {
        println!("{}: + {}{}", self.name, map.key(), if initial { " (was there)" } else { "" });
        self.heard.notify_one();
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client()?);
    let factory = InformerFactory::from_config(cluster.config())?;
    let maps = factory.of::<ConfigMap>();

    let (printer, heard) = Printer::new("early");
    let early = maps.add_handler(printer);
    factory.start();
    early.synced().await?;
    let made = api.create(&PostParams::default(), &config_map("a")?).await?;
    maps.reached(&made).await?; // the cache has it; a handler hears of it in its own time
    heard.notified().await;

    let late = maps.add_handler(Printer::new("late").0);
    late.synced().await?; // it has heard of all that was there, and returned from the last call
    early.remove().await; // when this returns it is no longer running, nor will it be
    let made = api.create(&PostParams::default(), &config_map("b")?).await?;
    maps.reached(&made).await?;

    factory.shutdown_with(Stop::Drain).await;
    Ok(())
}

fn config_map(name: &str) -> Result<ConfigMap, serde_json::Error> {
    serde_json::from_value(json!({"metadata": {"name": name}}))
}
