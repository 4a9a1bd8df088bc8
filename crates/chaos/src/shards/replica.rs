//! One replica: the process, and the program that it runs.

use super::connect;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{InformerFactory, Object, Scope};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, LeaderElection, Manager, Sharding, WriteError,
};
use std::{
    num::NonZeroU32,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinHandle,
};

pub(super) const NAMESPACE: &str = "default";
/// The Leases are `shards-0` and so on.
pub(super) const LEASES: &str = "shards";
pub(super) const SHARDS: NonZeroU32 = NonZeroU32::new(8).unwrap();
pub(super) const OBJECTS: u32 = 100;
/// Duration of a lease: short, so that pauses are.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// The line that a replica prints for each write that was not sent, or conflicted.
const REJECTED: &str = "rejected";

/// A process that runs a replica. Dropping it kills the process.
pub(super) struct ReplicaProcess {
    name: String,
    child: Child,
    /// Counts the rejected writes until the process ends.
    rejected: JoinHandle<u64>,
}

impl ReplicaProcess {
    /// Starts this program as a replica.
    pub(super) fn start(address: &str, name: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["replica", "--address", address, "--identity", name]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a replica")?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let rejected = tokio::spawn(async move {
            let mut rejected = 0;
            while let Ok(Some(line)) = lines.next_line().await {
                rejected += u64::from(line == REJECTED);
            }
            rejected
        });
        Ok(Self { name: name.to_owned(), child, rejected })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a signal, given by its name.
    pub(super) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.child.id().with_context(|| format!("{} has exited", self.name))?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        anyhow::ensure!(sent.success(), "cannot send {name} to {}", self.name);
        Ok(())
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill a replica")
    }

    /// Stops it in order. Returns the number of writes that were not sent, or conflicted.
    pub(super) async fn stop(&mut self) -> anyhow::Result<u64> {
        self.signal("TERM").await?;
        let status = self.child.wait().await?;
        anyhow::ensure!(status.success(), "{} ended with {status}", self.name);
        Ok((&mut self.rejected).await?)
    }
}

/// Runs a replica until SIGTERM. This is the main function of the child process.
#[expect(clippy::print_stdout, reason = "the parent process counts the lines")]
pub async fn run_replica(address: &str, identity: &str) -> anyhow::Result<()> {
    let client = connect(address)?;
    let scope = Scope::namespace(NAMESPACE)?;
    let factory = InformerFactory::builder(client.clone()).scope(scope).build();
    let (name, writes) = (identity.to_owned(), Arc::new(AtomicU64::new(0)));
    let controller = Controller::new(&factory.of::<ConfigMap>(), client.clone())
        .concurrency(8)
        .write_timeout(Duration::from_secs(1))
        .run(move |config: Object<ConfigMap>, context: Context| {
            let stamp = format!("{name} {}", writes.fetch_add(1, Ordering::Relaxed));
            async move {
                let reconciled = reconcile(&config, &context, &stamp).await;
                if reconciled.as_ref().is_err_and(is_rejected) {
                    println!("{REJECTED}");
                }
                reconciled
            }
        });
    let election = LeaderElection::new(NAMESPACE, LEASES)
        .identity(identity)
        .lease_duration(LEASE)
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(500));
    let sharding = Sharding::new(election, SHARDS.get());
    Manager::new(&factory, client).add(controller).sharding(sharding).run().await?;
    Ok(())
}

/// Does what the object asks for. Each write has a stamp, which names the replica.
async fn reconcile(config: &Object<ConfigMap>, context: &Context, stamp: &str) -> Result<Action, BoxError> {
    let data = config.decode()?.data.clone().unwrap_or_default();
    if data.get("want") != data.get("done") {
        let want = data.get("want").cloned();
        let write = |config: &mut serde_json::Value| {
            config["data"]["done"] = want.into();
            config["data"]["stamp"] = stamp.into();
        };
        context.patch(config, write).await?;
    }
    Ok(Action::done())
}

fn is_rejected(error: &BoxError) -> bool {
    let error = error.downcast_ref::<WriteError>();
    error.is_some_and(|error| error.is_conflict() || matches!(error, WriteError::NotLeading { .. }))
}
