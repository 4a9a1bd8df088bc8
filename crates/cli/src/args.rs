//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use kube_informer::{FieldSelector, LabelSelector};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Watch a Kubernetes cluster through informers, or serve an embedded one
#[derive(Debug, Parser)]
#[command(name = "kube-informer", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Log to stderr: error, warn, info, debug, trace, or directives such as kube_informer=debug. The default is RUST_LOG
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  success, or ended by Ctrl-C
  1  failure
  2  invalid command line
  3  the server rejects the credentials or permissions (401, 403)
  4  the cluster cannot be reached, or no kubeconfig was found";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the embedded API server as a process, for kubectl, tests and other clients
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeOptions>),
    /// Watch objects: sync, then print one line per change with the fields that changed
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// Show the informer pipeline at work on a busy embedded cluster
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoOptions),
    /// Look into the directory of persisted caches
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  kube-informer completions bash > ~/.local/share/bash-completion/completions/kube-informer"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

const SERVE_EXAMPLES: &str = "\
Examples:
  kube-informer serve                                  an empty cluster on a free port
  kube-informer serve --kubeconfig-out dev.kubeconfig  then: KUBECONFIG=dev.kubeconfig kubectl get namespaces
  kube-informer serve --seed-pods 5000                 with nodes and pods to look at
  kube-informer serve --garbage-collection --finalize-pods   deletes cascade to dependents and remove pods
  kube-informer serve --fault-endpoints                then: curl -X POST 'http://127.0.0.1:PORT/faults/fail?code=429&times=3'

For the test suite of a program in another language:
  kube-informer serve --like-cluster --exit-with-parent --output json --fault-endpoints
  curl -X POST http://127.0.0.1:PORT/snapshots/start/restore   returns to the state at the start, between two tests

For other machines (a token gives full access to everything):
  head -c 24 /dev/urandom | base64 > tokens; chmod 600 tokens
  kube-informer serve --listen 0.0.0.0:6443 --tls-self-signed --token-file tokens --hostname ci.example --kubeconfig-out ci.kubeconfig

Storage in etcd (programs built with --features etcd), which several servers can share:
  kube-informer serve --storage etcd=http://127.0.0.1:2379";

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Address to listen on; port 0 chooses a free one. Addresses that other machines can reach require TLS and tokens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Host name of the server, for its URL and its self-signed certificate
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Write a kubeconfig to this file, which must not exist; only you can read it
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,
    /// Replace the file of --kubeconfig-out if it exists
    #[arg(long, requires = "kubeconfig_out")]
    pub(crate) kubeconfig_overwrite: bool,
    /// Format of the line that tells that the server is ready
    #[arg(short, long, value_enum, default_value_t = ReadyFormat::Text)]
    pub(crate) output: ReadyFormat,
    /// Stop when the process that started the server ends, or closes the pipe that is its standard input
    #[arg(long)]
    pub(crate) exit_with_parent: bool,
    /// Require a bearer token from this file (one per line). There are no roles: a token gives full access
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve HTTPS with this certificate (PEM, followed by its issuers)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_self_signed")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate authority for the kubeconfig (PEM). The default is the last certificate of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Serve HTTPS with a new self-signed certificate, which the kubeconfig contains
    #[arg(long)]
    pub(crate) tls_self_signed: bool,
    /// Accept client certificates of this certificate authority (PEM), in place of a token
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Storage of objects: memory, or etcd=URL[,URL...]
    #[arg(long, value_name = "STORAGE", default_value = "memory")]
    pub(crate) storage: String,
    /// Options of etcd storage
    #[command(flatten)]
    pub(crate) etcd: EtcdArguments,
    /// Behave like a whole cluster: --garbage-collection, --finalize-pods, and controllers that take a moment: a CRD is established,
    /// and a deleted namespace is removed, after the response
    #[arg(long)]
    pub(crate) like_cluster: bool,
    /// kube-controller-manager runs on this server: leave deleted namespaces and garbage collection to it
    #[arg(long, conflicts_with_all = ["like_cluster", "garbage_collection"])]
    pub(crate) controller_manager: bool,
    /// Delete dependents of deleted owners, and support --cascade
    #[arg(long)]
    pub(crate) garbage_collection: bool,
    /// Remove deleted pods immediately, because no kubelet stops them
    #[arg(long)]
    pub(crate) finalize_pods: bool,
    /// Admission plugins to enable in addition to the default ones, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Admission plugins to disable, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
    /// Leave the usage of resource quotas to the quota controller of kube-controller-manager
    #[arg(long)]
    pub(crate) no_quota_usage: bool,
    /// Let clients inject faults under /faults, and take and restore snapshots under /snapshots; only on loopback addresses
    #[arg(long)]
    pub(crate) fault_endpoints: bool,
    /// Limit of open connections; further ones wait
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) max_connections: usize,
    /// Limit of open watches; further ones get status 429
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_watches: usize,
    /// Create this many pods at the start, with nodes and namespaces
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed_pods: usize,
    /// Seed of generated objects, uids and names: the same seed gives the same cluster
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
}

/// Format of the line that announces that the server is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadyFormat {
    /// Sentences
    Text,
    /// One line with a JSON object: url, pid, kubeconfig, certificateAuthority, token
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct EtcdArguments {
    /// Prefix of all keys in etcd. Servers with the same prefix are one cluster
    #[arg(long, value_name = "PREFIX", default_value = "/kube-informer")]
    pub(crate) etcd_prefix: String,
    /// Certificate authority of etcd (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    pub(crate) etcd_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,
    /// Use etcd even if it contains the data of a Kubernetes cluster
    #[arg(long)]
    pub(crate) etcd_beside_kubernetes: bool,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  kube-informer watch pods -n shop -l app=cart         changes in one namespace
  kube-informer watch deploy nodes                     several kinds, by short name
  kube-informer watch deployments.apps -o json         every event as one line of JSON
  kube-informer watch pods -A --once --index spec.nodeName   number of pods per node, then exit
  kube-informer watch pods --embedded --seed-pods 500  no cluster needed";

#[derive(Debug, Args)]
pub(crate) struct WatchOptions {
    /// Kinds, named as in kubectl: pods, pod, po, deploy, deployments.apps, certificates.v1.cert-manager.io
    #[arg(required = true, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kinds: Vec<String>,
    /// Namespace; can be repeated. The default is that of the kubeconfig
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Vec<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels, such as app=cart,tier!=test
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<LabelSelector>,
    /// Only objects with these fields, such as spec.nodeName=node-1
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<FieldSelector>,
    /// Count objects by a field, such as spec.nodeName; can be repeated
    #[arg(long, value_name = "FIELD")]
    pub(crate) index: Vec<String>,
    /// Print every object again at this interval, such as 5m
    #[arg(long, value_name = "PERIOD", value_parser = duration)]
    pub(crate) resync: Option<Duration>,
    /// Output format of events
    #[arg(short, long, value_enum, default_value_t = Output::Changes)]
    pub(crate) output: Output,
    /// Sync, print a summary and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Time limit of the initial sync
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) sync_timeout: Duration,
    /// Show values of secrets, and the annotation of kubectl apply
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Watch a new embedded server instead of a cluster
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Create this many pods on the embedded server
    #[arg(long, value_name = "N", default_value_t = 0, requires = "embedded")]
    pub(crate) seed_pods: usize,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "embedded")]
    pub(crate) context: Option<String>,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  kube-informer demo                    live view, with keys that inject faults
  kube-informer demo --plain --for 20s  plain lines, then a summary";

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Print lines instead of a live view; the default if the output is not a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// Stop after this time, such as 20s
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) length: Option<Duration>,
    /// Seed of the random changes
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print what is in a directory of persisted caches, also while a process uses it. Nothing is changed
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectOptions),
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  kube-informer cache inspect /var/cache/my-operator                  which objects are saved, up to which version
  kube-informer cache inspect /var/cache/my-operator --verify         read all contents; exit code 1 if something is damaged
  kube-informer cache inspect /var/cache/my-operator --export > objects.json   all objects as JSON lines, except for Secrets";

#[derive(Debug, Args)]
pub(crate) struct InspectOptions {
    /// The directory that a program persists its caches in
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = InspectFormat::Table)]
    pub(crate) output: InspectFormat,
    /// Read every content and compare its checksum
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print the objects as JSON lines instead. Secrets are left out
    #[arg(long, conflicts_with_all = ["output", "verify"])]
    pub(crate) export: bool,
    /// File with the key of encrypted caches: 32 bytes, or 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// Output format of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    /// A table for people
    Table,
    /// One JSON object
    Json,
}

/// Output format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One line with the fields that changed
    Changes,
    /// One JSON object per line: type and object
    Json,
    /// YAML documents; control characters are shown as escape sequences
    Yaml,
    /// One line with the name
    Name,
}

/// Parses a number and a unit of time.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let time =
        number.parse::<f64>().ok().and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    time.ok_or_else(|| "write a number and a unit, such as 500ms, 20s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        for bad in ["", "s", "-3s", "3d", "1e9h", "NaN"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
