//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Watch a Kubernetes cluster through informers, or serve one of your own.
#[derive(Debug, Parser)]
#[command(name = "kube-informer", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// What to log, to stderr: error, warn, info, debug, trace, or directives such as kube_informer=debug. RUST_LOG is used if this is not given.
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, or ended by Ctrl-C
  1  failed; the message says what to do next
  2  the command line was not understood
  3  the server refuses the caller (401, 403)
  4  the cluster cannot be reached, or there is no kubeconfig";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the embedded API server as a process, for kubectl, tests and anything else that speaks Kubernetes
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeOptions),
    /// Follow objects: sync, then one line for every change, with the fields that changed
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchOptions),
    /// An embedded cluster that never rests, and the informer pipeline that follows it, live
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoOptions),
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
  kube-informer serve --garbage-collection --finalize-pods   deletes reach dependents and running pods, as on a real cluster
  kube-informer serve --fault-endpoints                then: curl -X POST 'http://127.0.0.1:PORT/faults/fail?code=429&times=3'

For other machines (one token is full access to everything):
  head -c 24 /dev/urandom | base64 > tokens; chmod 600 tokens
  kube-informer serve --listen 0.0.0.0:6443 --tls-self-signed --token-file tokens --hostname ci.example --kubeconfig-out ci.kubeconfig

On etcd (in programs built with --features etcd), several servers over one store:
  kube-informer serve --storage etcd=http://127.0.0.1:2379";

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Where to listen; port 0 is any free one. Addresses that other machines can reach need TLS and tokens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// The name clients know the server by, for its URL and its own certificate
    #[arg(long, value_name = "NAME")]
    pub(crate) hostname: Option<String>,
    /// Write a kubeconfig to this new file, readable by you alone
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig_out: Option<PathBuf>,
    /// Let in only who has a token of this file, one a line. There are no roles: one token is full access
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Speak HTTPS with this certificate (PEM, issuers after it)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls_self_signed")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// What the kubeconfig tells clients to trust (PEM), if not what comes with the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Speak HTTPS with a certificate made now; the kubeconfig tells clients to trust it
    #[arg(long)]
    pub(crate) tls_self_signed: bool,
    /// Where objects are kept: memory, or etcd=URL[,URL...]
    #[arg(long, value_name = "STORAGE", default_value = "memory")]
    pub(crate) storage: String,
    /// How to reach and use etcd
    #[command(flatten)]
    pub(crate) etcd: EtcdArguments,
    /// Delete what belongs to deleted owners, and honour --cascade
    #[arg(long)]
    pub(crate) garbage_collection: bool,
    /// Remove deleted pods at once, for want of a kubelet that would stop them
    #[arg(long)]
    pub(crate) finalize_pods: bool,
    /// Let clients make the server fail, under /faults; only on loopback addresses
    #[arg(long)]
    pub(crate) fault_endpoints: bool,
    /// The most connections open at once; more wait
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) max_connections: usize,
    /// The most watches open at once; more are answered 429
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_watches: usize,
    /// Begin with so many generated pods, with nodes and namespaces
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed_pods: usize,
    /// The seed of generated objects, uids and names: the same seed gives the same cluster
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct EtcdArguments {
    /// Where in etcd objects are kept. Servers with the same prefix are one cluster
    #[arg(long, value_name = "PREFIX", default_value = "/kube-informer")]
    pub(crate) etcd_prefix: String,
    /// Trust etcd's certificate if it is signed by this authority (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// Show etcd this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    pub(crate) etcd_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    pub(crate) etcd_key: Option<PathBuf>,
    /// Use the etcd even if it holds the data of a Kubernetes cluster
    #[arg(long)]
    pub(crate) etcd_beside_kubernetes: bool,
}

const WATCH_EXAMPLES: &str = "\
Examples:
  kube-informer watch pods -n shop -l app=cart         one line for every change in one namespace
  kube-informer watch deploy nodes                     several kinds at once, by short name
  kube-informer watch deployments.apps -o json         every event as a line of JSON
  kube-informer watch pods -A --once --index spec.nodeName   how many pods on each node, then leave
  kube-informer watch pods --embedded --seed-pods 500  no cluster needed";

#[derive(Debug, Args)]
pub(crate) struct WatchOptions {
    /// Kinds as kubectl names them: pods, pod, po, deploy, deployments.apps, certificates.v1.cert-manager.io
    #[arg(required = true, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kinds: Vec<String>,
    /// A namespace; may be given several times. The default is that of the kubeconfig
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub(crate) namespace: Vec<String>,
    /// All namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects with these labels, such as app=cart,tier!=test
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Only objects with these fields, such as spec.nodeName=node-1
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
    /// Count objects by a field, such as spec.nodeName; may be given several times
    #[arg(long, value_name = "FIELD")]
    pub(crate) index: Vec<String>,
    /// Show every object again at this interval, such as 5m
    #[arg(long, value_name = "PERIOD", value_parser = duration)]
    pub(crate) resync: Option<Duration>,
    /// How events are shown
    #[arg(short, long, value_enum, default_value_t = Output::Changes)]
    pub(crate) output: Output,
    /// Sync, print a summary and leave
    #[arg(long)]
    pub(crate) once: bool,
    /// How long the first sync may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) sync_timeout: Duration,
    /// Show the values of secrets, and the annotation of kubectl apply
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Watch an embedded server instead of a cluster
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Generated pods on the embedded server
    #[arg(long, value_name = "N", default_value_t = 0, requires = "embedded")]
    pub(crate) seed_pods: usize,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME", conflicts_with = "embedded")]
    pub(crate) context: Option<String>,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  kube-informer demo                    live, with keys to make trouble
  kube-informer demo --plain --for 20s  lines, then a summary";

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Print lines instead of a live view; what happens when the output is not a terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// End by itself after this time, such as 20s
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) length: Option<Duration>,
    /// The seed of what happens
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// How events are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One line, with the fields that changed
    Changes,
    /// One JSON object a line: type and object
    Json,
    /// YAML documents
    Yaml,
    /// One line: sign and name
    Name,
}

/// A length of time: a number and a unit.
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
    fn the_command_line_is_consistent() {
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
