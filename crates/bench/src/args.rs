//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Measures informers side by side: this library, kube-runtime and client-go.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure all contenders, print the ratios, write results.json and plots.
    Compare(CompareOptions),
    /// Measure size and time of packed pods at each level of compression.
    Levels(LevelOptions),
    /// Measure controllers: this project's, kube-rs's and controller-runtime's; write reconcile.json.
    Reconcile(ReconcileOptions),
    /// Copy the results of a run into the documents of this repository.
    Publish(PublishOptions),
    /// Measure a restart after `kill -9`, and write restart.json.
    Restart(RestartOptions),
    /// Measure the memory of one informer with very many objects, or with objects on disk.
    Scale(ScaleOptions),
    /// The driver of the server; reads commands from standard input.
    #[command(hide = true)]
    Driver(DriverOptions),
    /// This library as a contender; reads commands from standard input.
    #[command(hide = true)]
    Contender(ContenderOptions),
    /// An informer whose cache is saved; reads commands from standard input.
    #[command(hide = true)]
    Saved(SavedOptions),
    /// A server that generates the objects of a list while it sends them; reads commands from standard input.
    #[command(hide = true)]
    Generator(GeneratorOptions),
}

#[derive(Args)]
pub(crate) struct ScaleOptions {
    /// Number of objects.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) objects: usize,
    /// The resource: pods, configmaps, secrets (of 50 KB), events or widgets.
    #[arg(long, default_value = "pods")]
    pub(crate) kind: String,
    /// Pods that compress badly.
    #[arg(long)]
    pub(crate) stubborn: bool,
    /// Keep the content on disk.
    #[arg(long)]
    pub(crate) disk: bool,
    /// Measure a restart with a cache that is saved in this directory, instead of memory. Only for pods.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kind", "disk"])]
    pub(crate) restart: Option<PathBuf>,
    /// The file for the result, in JSON.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Seed of the generators.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args)]
pub(crate) struct GeneratorOptions {
    #[arg(long)]
    pub(crate) kind: String,
    #[arg(long)]
    pub(crate) objects: usize,
    #[arg(long)]
    pub(crate) stubborn: bool,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args)]
pub(crate) struct RestartOptions {
    /// Number of pods.
    #[arg(long, default_value_t = 150_000)]
    pub(crate) pods: usize,
    /// Number of changes while the process is down.
    #[arg(long, default_value_t = 200)]
    pub(crate) changes: usize,
    /// Directory of restart.json and of the saved cache.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Seed of the generators.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The peers that are started, too: client-go, kube-rs. kube-rs needs about 130 KB of memory for each pod.
    #[arg(long, value_delimiter = ',', default_value = "client-go,kube-rs")]
    pub(crate) peers: Vec<String>,
}

#[derive(Args)]
pub(crate) struct SavedOptions {
    /// The server.
    #[arg(long)]
    pub(crate) server: String,
    /// The directory of the saved cache; without one, nothing is saved.
    #[arg(long)]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CompareOptions {
    /// Number of pods.
    #[arg(long, default_value_t = 30_000)]
    pub(crate) pods: usize,
    /// Directory of results.json and the plots.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Use this server instead of the embedded one. It is seeded through its API, in separate namespaces that are not deleted.
    /// Stages that need fault injection (relists, bursts) are skipped.
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Credentials for the server, and its URL unless `--server` is given.
    #[arg(long)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Only these contenders, such as `kube-informer/packed,client-go`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Only these stages.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub(crate) stages: Vec<Stage>,
    /// Only these corpora.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub(crate) corpora: Vec<Corpus>,
    /// Number of objects of each other kind. The default is a share of the pods.
    #[arg(long)]
    pub(crate) objects: Option<usize>,
    /// Events in the burst.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) burst: usize,
    /// Number of events with a stalled handler. The default is a million, or 50,000 with another server.
    #[arg(long)]
    pub(crate) stall_events: Option<usize>,
    /// Seed of the generators.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Milliseconds after which a contender without work counts as idle.
    #[arg(long, default_value_t = 3000)]
    pub(crate) idle_ms: u64,
}

#[derive(Args)]
pub(crate) struct LevelOptions {
    /// Number of pods.
    #[arg(long, default_value_t = 1000)]
    pub(crate) pods: usize,
}

#[derive(Args)]
pub(crate) struct ReconcileOptions {
    /// Number of pods.
    #[arg(long, default_value_t = 30_000)]
    pub(crate) pods: usize,
    /// Changes in the burst.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) burst: usize,
    /// Directory of reconcile.json.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Only these contenders, such as `kube-informer/controller,kube-rs`.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Seed of the generators.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args)]
pub(crate) struct PublishOptions {
    /// The output directory of `compare`.
    #[arg(long)]
    pub(crate) from: PathBuf,
}

/// A stage of the measurement. The initial sync is always measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// Relists with 0 %, 1 % and 100 % changed.
    Relist,
    /// Watch events to a handler, at full speed.
    Events,
    /// Latency from a write to the handler, at a fixed rate.
    Latency,
    /// Get, list, by index, by selector.
    Reads,
    /// Decoding all objects once.
    Decode,
    /// The writer with concurrent readers.
    Readers,
    /// The writer while content is packed again.
    Repacking,
    /// A handler that never returns.
    Stall,
    /// Other kinds than pods.
    Kinds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Corpus {
    /// Realistic pods.
    Realistic,
    /// Pods that compress badly.
    Stubborn,
}

impl Corpus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Realistic => "realistic",
            Self::Stubborn => "stubborn",
        }
    }
}

#[derive(Args)]
pub(crate) struct DriverOptions {
    /// Drive this server instead of an embedded one.
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Credentials for the server, and its URL unless `--server` is given.
    #[arg(long)]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args)]
pub(crate) struct ContenderOptions {
    /// The server.
    #[arg(long)]
    pub(crate) server: String,
    /// Credentials for the server.
    #[arg(long)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The resource: pods, configmaps, secrets, events or widgets.
    #[arg(long, default_value = "pods")]
    pub(crate) kind: String,
    /// Only this namespace.
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// How objects are requested and stored: packed, json, tuned, raw or decoded. Or a controller: controller or drop-in.
    /// Or a program with a store: reflector.
    #[arg(long, default_value = "packed")]
    pub(crate) variant: String,
    /// Keep the content on disk.
    #[arg(long)]
    pub(crate) disk: bool,
}

impl CompareOptions {
    /// Whether the embedded server is used.
    pub(crate) fn is_embedded(&self) -> bool {
        self.server.is_none() && self.kubeconfig.is_none()
    }

    pub(crate) fn wants(&self, stage: Stage) -> bool {
        self.stages.is_empty() || self.stages.contains(&stage)
    }

    pub(crate) fn stall_events(&self) -> usize {
        self.stall_events.unwrap_or(if self.is_embedded() { 1_000_000 } else { 50_000 })
    }

    pub(crate) fn corpora(&self) -> Vec<Corpus> {
        let all = [Corpus::Realistic, Corpus::Stubborn];
        all.into_iter().filter(|corpus| self.corpora.is_empty() || self.corpora.contains(corpus)).collect()
    }
}
