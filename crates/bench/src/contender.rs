//! This library as a contender.

mod handler_calls;
mod program;
mod readers;
mod reads;
mod reconciler;
mod trim;

use crate::{
    args::ContenderOptions,
    driver::config,
    protocol::{commands, number, respond},
};
use anyhow::{Context, bail};
use handler_calls::HandlerCalls;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    HandlerFuncs, Index, InformerBuilder, InformerFactory, Kind, Packing, Scope, SharedInformer, Storage,
    Transform, informer_client,
};
use readers::Readers;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Time limit of a sync, of a million objects as well: `bench scale` generates a thousand of them a second.
const SYNCED_WITHIN: Duration = Duration::from_secs(3600);

/// Time limit of packing everything again, which uses a tenth of a processor.
const SETTLED_WITHIN: Duration = Duration::from_secs(3600);

/// Number of objects from which on repacking makes a difference.
const MANY: usize = 100;
/// Time without a change after which nothing more is to be done in the background: repacking starts ten seconds after the
/// last large change, or ten seconds later if that was still going on then.
const QUIET: Duration = Duration::from_secs(22);

pub(crate) struct Contender {
    options: ContenderOptions,
    informer: SharedInformer<Pod>,
    by_node: Index<String>,
    calls: Arc<HandlerCalls>,
    /// A second informer of the same objects, and readers of one of the two.
    other: Option<SharedInformer<Pod>>,
    readers: Option<Readers>,
}

/// Runs the commands from standard input.
pub(crate) async fn run(options: ContenderOptions) -> anyhow::Result<()> {
    match options.variant.as_str() {
        "controller" | "drop-in" => return reconciler::run(options).await,
        "reflector" => return program::run(options).await,
        _ => {}
    }
    let informer = informer(&options).await?;
    let by_node = informer.index_field("spec.nodeName")?;
    let calls = Arc::new(HandlerCalls::default());
    informer.add_handler(HandlerCalls::handler(&calls));
    let mut contender = Contender { options, informer, by_node, calls, other: None, readers: None };
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        respond(contender.execute(&words).await)?;
    }
    Ok(())
}

async fn informer(options: &ContenderOptions) -> anyhow::Result<SharedInformer<Pod>> {
    let packing = match options.variant.as_str() {
        "packed" | "json" | "tuned" => Packing::Packed,
        "raw" => Packing::Raw,
        "decoded" => Packing::Decoded,
        other => bail!("unknown variant {other:?}"),
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
    let storage = if options.disk { Storage::disk() } else { Storage::Memory };
    let client = informer_client(config(Some(&options.server), options.kubeconfig.as_deref()).await?)?;
    let factory = InformerFactory::builder(client)
        .configure(move |builder: InformerBuilder| builder.packing(packing).storage(storage.clone()))
        .build();
    let scope = options.namespace.as_deref().map_or(Ok(Scope::all()), Scope::namespace)?;
    // The type is Pod for every kind, because only pods are decoded.
    let (json, tuned) = (options.variant == "json", options.variant == "tuned");
    let transform = if tuned { Transform::drop_managed_fields() } else { Transform::new() };
    Ok(factory.of_kind(kind, |defaults| defaults.scope(scope).json_only(json).transform(transform)))
}

impl Contender {
    async fn execute(&mut self, words: &[String]) -> anyhow::Result<Value> {
        match words.first().map(String::as_str) {
            Some("start") => self.start().await,
            Some("settle") => {
                self.settle().await;
                // As for kube-rs: memory that the allocator keeps is not memory that the informer uses.
                trim::trim();
                Ok(json!({}))
            }
            Some("reset") => Ok(self.calls.reset()),
            Some("await") => self.calls.wait_for_version(number(words, 1)?, TIMEOUT).await,
            Some("latency") => Ok(self.calls.latency()),
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
            Some("stop-readers") => {
                self.readers = None;
                Ok(json!({}))
            }
            Some("stall") => Ok(self.stall()),
            Some("stats") => Ok(self.stats()),
            Some("memory") => Ok(self.memory()),
            other => bail!("unknown command {other:?}"),
        }
    }

    async fn start(&self) -> anyhow::Result<Value> {
        let start = Instant::now();
        self.informer.start();
        self.informer.synced(SYNCED_WITHIN).await?;
        let objects = self.informer.lister().len();
        self.calls.wait_for_count(objects as u64, TIMEOUT).await?;
        Ok(json!({"objects": objects, "wall_s": start.elapsed().as_secs_f64()}))
    }

    /// Waits until compaction and repacking have nothing more to do. Of a few objects the difference is too small to wait for.
    async fn settle(&self) {
        let objects = self.informer.lister().len();
        if objects < MANY {
            return;
        }
        let objects = u32::try_from(objects).unwrap_or(u32::MAX);
        let (mut before, mut unchanged) = (0, Duration::ZERO);
        let start = Instant::now();
        while unchanged < QUIET && start.elapsed() < SETTLED_WITHIN {
            // The report walks all objects.
            let pause = Duration::from_micros(20).saturating_mul(objects).max(Duration::from_secs(1));
            tokio::time::sleep(pause).await;
            let now = self.informer.memory().total();
            unchanged = if now == before { unchanged + pause } else { Duration::ZERO };
            before = now;
        }
    }

    async fn start_other(&mut self) -> anyhow::Result<Value> {
        let other = informer(&self.options).await?;
        other.index_field("spec.nodeName")?;
        other.start();
        other.synced(TIMEOUT).await?;
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

    fn memory(&self) -> Value {
        let memory = self.informer.memory();
        json!({"total": memory.total(), "records": memory.records, "keys": memory.keys, "labels": memory.labels,
            "owners": memory.owners, "fields": memory.fields, "trees": memory.trees, "content": memory.content,
            "garbage": memory.garbage, "unused": memory.unused, "tables": memory.tables, "cached": memory.cached,
            "dictionaries": memory.dictionaries, "disk": memory.disk()})
    }

    fn stats(&self) -> Value {
        let stats = self.informer.pack_stats();
        json!({"cached_bytes": self.informer.cached_bytes(), "raw_bytes": stats.raw_bytes, "packed_bytes": stats.packed_bytes,
            "dictionaries": stats.dictionaries, "objects": stats.objects})
    }
}
