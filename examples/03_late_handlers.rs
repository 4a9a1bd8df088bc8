//! A handler can be added at any time. It receives an add for every existing object, then every change, each once. It can
//! also be removed.
//!
//! `cargo run -p kube-informer-examples --bin 03_late_handlers`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube_informer::{EventHandler, InformerFactory, Object, Stop};
use kube_informer_examples::Cluster;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;

/// A handler is any type with these methods; the default ones do nothing.
struct Printer {
    name: &'static str,
    /// Notified of each call.
    called: Arc<Notify>,
}

impl Printer {
    fn new(name: &'static str) -> (Self, Arc<Notify>) {
        let called = Arc::new(Notify::new());
        (Self { name, called: Arc::clone(&called) }, called)
    }
}

impl EventHandler<ConfigMap> for Printer {
    fn on_add(&mut self, map: &Object<ConfigMap>, initial: bool) {
        println!("{}: + {}{}", self.name, map.key(), if initial { " (initial)" } else { "" });
        self.called.notify_one();
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client()?);
    let factory = InformerFactory::from_config(cluster.config())?;
    let maps = factory.of::<ConfigMap>();

    let (printer, called) = Printer::new("early");
    let early = maps.add_handler(printer);
    factory.start();
    early.synced().await?;
    let made = api.create(&PostParams::default(), &config_map("a")?).await?;
    maps.reached(&made).await?; // the cache has it; the handler may be called later
    called.notified().await;

    let late = maps.add_handler(Printer::new("late").0);
    late.synced().await?; // it has received all existing objects
    early.remove().await; // it is not running any more, and will not be called again
    let made = api.create(&PostParams::default(), &config_map("b")?).await?;
    maps.reached(&made).await?;

    factory.shutdown_with(Stop::Drain).await;
    Ok(())
}

fn config_map(name: &str) -> Result<ConfigMap, serde_json::Error> {
    serde_json::from_value(json!({"metadata": {"name": name}}))
}
