//! An informer whose cache is saved, in a process that is killed.

use crate::{
    args::SavedOptions,
    protocol::{commands, number, respond},
};
use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Deleted, EventHandler, InformerBuilder, InformerFactory, Object, PersistOptions, PersistStatus,
    ResourceVersion, SharedInformer, informer_client,
};
use kube_informer_wire::sync::lock;
use serde_json::{Value, json};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(600);
/// How often the cache is looked at.
const TICK: Duration = Duration::from_micros(200);

/// Runs the commands from standard input.
pub(crate) async fn run(options: SavedOptions) -> anyhow::Result<()> {
    let mut process = Saved { options, informer: None, trace: Trace::default(), requests: Arc::default() };
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        respond(process.execute(&words).await)?;
    }
    Ok(())
}

struct Saved {
    options: SavedOptions,
    informer: Option<SharedInformer<Pod>>,
    trace: Trace,
    requests: Arc<Requests>,
}

/// Requests that the informer has sent.
#[derive(Default)]
struct Requests {
    lists: AtomicU64,
    version_queries: AtomicU64,
}

impl Saved {
    async fn execute(&mut self, words: &[String]) -> anyhow::Result<Value> {
        match words.first().map(String::as_str) {
            Some("start") => self.start().await,
            Some("saved") => self.wait_until_saved(number(words, 1)?).await,
            Some("await") => self.wait_until_received(number(words, 1)?).await,
            Some("state") => Ok(json!({ "state": lock(&self.trace.0).state })),
            Some("reset") => {
                lock(&self.trace.0).changes.clear();
                Ok(json!({}))
            }
            Some("trace") => {
                let trace = lock(&self.trace.0);
                Ok(json!({"initial": trace.initial, "changes": trace.changes}))
            }
            other => bail!("unknown command {other:?}"),
        }
    }

    /// Starts the informer, and measures from before it is built.
    async fn start(&mut self) -> anyhow::Result<Value> {
        let start = Instant::now();
        let informer = self.build()?;
        informer.index_field("spec.nodeName")?;
        informer.add_handler(self.trace.clone());
        informer.start();
        let lister = informer.lister();
        while lister.is_empty() && start.elapsed() < TIMEOUT {
            sleep(TICK).await;
        }
        let readable = start.elapsed();
        informer.synced(TIMEOUT).await?;
        let synced = start.elapsed();
        self.informer = Some(informer);
        let (lists, queries) = (&self.requests.lists, &self.requests.version_queries);
        Ok(json!({
            "readable_ms": readable.as_secs_f64() * 1e3,
            "synced_ms": synced.as_secs_f64() * 1e3,
            "lists": lists.load(Relaxed),
            "version_queries": queries.load(Relaxed),
        }))
    }

    fn build(&self) -> anyhow::Result<SharedInformer<Pod>> {
        let client = informer_client(kube::Config::new(self.options.server.parse()?))?;
        let requests = Arc::clone(&self.requests);
        let mut factory =
            InformerFactory::builder(client).configure(move |builder| count(builder, &requests));
        if let Some(directory) = &self.options.directory {
            factory = factory.persist(PersistOptions::new(directory).cluster_id("bench"))?;
        }
        Ok(factory.build().of::<Pod>())
    }

    async fn wait_until_saved(&self, version: u64) -> anyhow::Result<Value> {
        let informer = self.informer.as_ref().context("not started")?;
        let start = Instant::now();
        loop {
            match informer.persist_status() {
                PersistStatus::Saving { version: Some(saved) } if saved >= ResourceVersion::from(version) => {
                    return Ok(json!({}));
                }
                status if start.elapsed() > TIMEOUT => bail!("version {version} is not saved: {status}"),
                _ => sleep(Duration::from_millis(1)).await,
            }
        }
    }

    async fn wait_until_received(&self, version: u64) -> anyhow::Result<Value> {
        let start = Instant::now();
        while lock(&self.trace.0).newest < version {
            if start.elapsed() > TIMEOUT {
                bail!("version {version} did not arrive");
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(json!({}))
    }
}

/// Counts the requests for lists and for the version of the server.
fn count(builder: InformerBuilder, requests: &Arc<Requests>) -> InformerBuilder {
    let (listed, streamed) = (Arc::clone(requests), Arc::clone(requests));
    let builder = builder.tweak_list(move |options| {
        let counter = if options.limit == Some(1) { &listed.version_queries } else { &listed.lists };
        counter.fetch_add(1, Relaxed);
    });
    builder.tweak_watch(move |options| {
        streamed.lists.fetch_add(u64::from(options.send_initial_events.is_some()), Relaxed);
    })
}

/// What a handler received.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    /// The sum of the hashes of all objects that it knows: the same for the same states of the same objects.
    state: u64,
    /// The same of the initial objects alone.
    initial: u64,
    /// Every change after the initial list.
    changes: Vec<String>,
    /// The highest version.
    newest: u64,
}

impl Recorded {
    fn receive(&mut self, old: Option<&Object<Pod>>, new: Option<&Object<Pod>>) {
        let digest = |object: &Object<Pod>| {
            let mut hasher = DefaultHasher::new();
            (object.key().as_str(), object.resource_version().to_string()).hash(&mut hasher);
            hasher.finish()
        };
        self.state = self.state.wrapping_sub(old.map_or(0, digest)).wrapping_add(new.map_or(0, digest));
        let version = |object: &Object<Pod>| object.resource_version().number().unwrap_or(0);
        self.newest = self.newest.max(old.map_or(0, version)).max(new.map_or(0, version));
    }

    fn change(&mut self, kind: &str, object: &Object<Pod>) {
        self.changes.push(format!("{kind} {}@{}", object.key(), object.resource_version()));
    }
}

impl EventHandler<Pod> for Trace {
    fn on_add(&mut self, object: &Object<Pod>, initial: bool) {
        let mut recorded = lock(&self.0);
        recorded.receive(None, Some(object));
        if initial {
            recorded.initial = recorded.state;
        } else {
            recorded.change("add", object);
        }
    }

    fn on_update(&mut self, old: &Object<Pod>, new: &Object<Pod>) {
        let mut recorded = lock(&self.0);
        recorded.receive(Some(old), Some(new));
        recorded.change("update", new);
    }

    fn on_delete(&mut self, deleted: &Deleted<Pod>) {
        let mut recorded = lock(&self.0);
        recorded.receive(Some(deleted.object()), None);
        recorded.change("delete", deleted.object());
    }
}
