//! This library as a contender.

mod heard;
mod readers;
mod reads;
mod trim;

use crate::{
    args::ContenderOptions,
    protocol::{answer, commands, number},
};
use anyhow::{Context, bail};
use heard::Heard;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    HandlerFuncs, Index, InformerBuilder, InformerFactory, Kind, Packing, Scope, SharedInformer,
    informer_client,
};
use readers::Readers;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Time limit of a command.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Contender {
    options: ContenderOptions,
    informer: SharedInformer<Pod>,
    by_node: Index<String>,
    heard: Arc<Heard>,
    /// A second informer of the same objects, and readers of one of the two.
    other: Option<SharedInformer<Pod>>,
    readers: Option<Readers>,
}

/// Runs the commands from standard input.
pub(crate) async fn run(options: ContenderOptions) -> anyhow::Result<()> {
    let informer = informer(&options)?;
    let by_node = informer.index_field("spec.nodeName")?;
    let heard = Arc::new(Heard::default());
    informer.add_handler(Heard::handler(&heard));
    let mut contender = Contender { options, informer, by_node, heard, other: None, readers: None };
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        answer(contender.obey(&words).await)?;
    }
    Ok(())
}

fn informer(options: &ContenderOptions) -> anyhow::Result<SharedInformer<Pod>> {
    let packing = match options.variant.as_str() {
        "packed" => Packing::Packed,
        "raw" => Packing::Raw,
        "decoded" => Packing::Decoded,
        other => bail!("unknown way to store objects {other:?}"),
    };
    let (group, version, kind) = match options.kind.as_str() {
        "pods" => ("", "v1", "Pod"),
        "configmaps" => ("", "v1", "ConfigMap"),
        "secrets" => ("", "v1", "Secret"),
        "events" => ("", "v1", "Event"),
        "widgets" => ("example.com", "v1", "Widget"),
        other => bail!("unknown kind {other:?}"),
    };
    let kind = Kind::namespaced(group, version, kind, &options.kind);
    let client = informer_client(kube::Config::new(options.server.parse()?))?;
    let factory = InformerFactory::builder(client)
        .configure(move |builder: InformerBuilder| builder.packing(packing))
        .build();
    let scope = options.namespace.as_deref().map_or(Scope::All, Scope::namespace);
    // For any kind: only pods are decoded.
    Ok(factory.of_kind(kind, |defaults| defaults.scope(scope)))
}

impl Contender {
    async fn obey(&mut self, words: &[String]) -> anyhow::Result<Value> {
        match words.first().map(String::as_str) {
            Some("start") => self.start().await,
            Some("settle") => Ok(json!({})),
            Some("reset") => Ok(self.heard.reset()),
            Some("await") => self.heard.until(number(words, 1)?, PATIENCE).await,
            Some("latency") => Ok(self.heard.latency()),
            Some("reads") => reads::measure(&self.informer, &self.by_node),
            Some("decode-each") => reads::decode_each(&self.informer),
            Some("decode-all") => reads::decode_all(&self.informer),
            Some("trim") => {
                trim::trim();
                Ok(json!({}))
            }
            Some("other") => self.start_other().await,
            Some("readers") => {
                let of_other = words.get(1).is_some_and(|which| which == "other");
                self.read(of_other, number(words, 2)?)
            }
            Some("rest") => {
                self.readers = None;
                Ok(json!({}))
            }
            Some("stall") => Ok(self.stall()),
            Some("stats") => Ok(self.stats()),
            other => bail!("the contender has no command {other:?}"),
        }
    }

    async fn start(&self) -> anyhow::Result<Value> {
        let start = Instant::now();
        self.informer.start();
        self.informer.synced(PATIENCE).await?;
        let objects = self.informer.lister().len();
        self.heard.until_count(objects as u64, PATIENCE).await?;
        Ok(json!({"objects": objects, "wall_s": start.elapsed().as_secs_f64()}))
    }

    async fn start_other(&mut self) -> anyhow::Result<Value> {
        let other = informer(&self.options)?;
        other.index_field("spec.nodeName")?;
        other.start();
        other.synced(PATIENCE).await?;
        self.other = Some(other);
        Ok(json!({}))
    }

    fn read(&mut self, of_other: bool, per_second: u32) -> anyhow::Result<Value> {
        let informer = if of_other {
            self.other.as_ref().context("the second informer is not started")?
        } else {
            &self.informer
        };
        self.readers = Some(Readers::start(informer.lister(), per_second));
        Ok(json!({}))
    }

    /// Adds a handler that never returns from its first call.
    fn stall(&self) -> Value {
        self.informer.add_handler(HandlerFuncs::new().on_add(|_, _| {
            loop {
                std::thread::park();
            }
        }));
        json!({})
    }

    fn stats(&self) -> Value {
        let stats = self.informer.pack_stats();
        json!({"cached_bytes": self.informer.cached_bytes(), "raw_bytes": stats.raw_bytes, "packed_bytes": stats.packed_bytes,
            "dictionaries": stats.dictionaries, "objects": stats.objects})
    }
}
