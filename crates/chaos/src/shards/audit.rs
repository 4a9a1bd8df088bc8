//! The log of the server: every write of a replica and every change of a Lease, in the order of their resource versions.

use super::{
    replica::{LEASES, NAMESPACE, SHARDS},
    shard_of,
};
use crate::report::lock;
use anyhow::Context;
use futures_util::StreamExt;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ConfigMap},
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{WatchEvent, WatchParams},
};
use kube_informer::Uid;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// The log of the server. Dropping it ends the log.
pub(super) struct Audit {
    log: Arc<Mutex<Log>>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Log {
    /// By resource version.
    entries: BTreeMap<u64, Entry>,
    /// The holders of the shards now.
    holders: BTreeMap<u32, String>,
    /// The newest version of a config map.
    config_version: u64,
    failure: Option<String>,
}

enum Entry {
    /// A shard has a new holder; empty if it was released.
    Held { shard: u32, holder: String },
    /// A replica wrote an object of a shard.
    Written { shard: u32, object: String, replica: String },
}

/// The result of the audit of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    writes: usize,
    transitions: usize,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "writes={} transitions={}", self.writes, self.transitions)
    }
}

impl Audit {
    /// Starts the log with everything that happens from now on.
    pub(super) async fn start(client: &Client) -> anyhow::Result<Self> {
        let log = Arc::<Mutex<Log>>::default();
        let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
        let configs: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let version = configs.list(&Default::default()).await?.metadata.resource_version;
        let version = version.context("the server sent no version")?;
        let mut stamps = BTreeMap::new();
        let tasks = vec![
            tokio::spawn(follow(
                leases,
                version.clone(),
                "leases",
                Arc::clone(&log),
                |log, lease: Lease, at| {
                    log.leased(&lease, at);
                },
            )),
            tokio::spawn(follow(configs, version, "configmaps", Arc::clone(&log), move |log, config, at| {
                log.wrote(&config, at, &mut stamps);
            })),
        ];
        Ok(Self { log, tasks })
    }

    /// Number of writes of replicas so far.
    pub(super) fn writes(&self) -> usize {
        let log = lock(&self.log);
        log.entries.values().filter(|entry| matches!(entry, Entry::Written { .. })).count()
    }

    /// Waits until a replica holds no shard.
    pub(super) async fn holds_nothing(&self, replica: &str, within: Duration) -> anyhow::Result<()> {
        let what = format!("{replica} holds no shard");
        self.until(&what, within, |log| !log.holders.values().any(|holder| holder == replica)).await
    }

    /// Waits until these replicas hold all shards, and each of them one at least.
    pub(super) async fn all_hold(&self, replicas: &[&str]) -> anyhow::Result<()> {
        let replicas: BTreeSet<_> = replicas.iter().copied().collect();
        let all = |log: &Log| {
            let holders: BTreeSet<_> = log.holders.values().map(String::as_str).collect();
            log.holders.len() == SHARDS.get() as usize && holders == replicas
        };
        self.until("all replicas hold shards", Duration::from_secs(60), all).await
    }

    /// Waits until the log has everything up to this version of a config map.
    pub(super) async fn has_seen(&self, version: u64) -> anyhow::Result<()> {
        self.until("the log is complete", Duration::from_secs(10), |log| log.config_version >= version).await
    }

    async fn until(
        &self,
        what: &str,
        within: Duration,
        condition: impl Fn(&Log) -> bool,
    ) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            {
                let log = lock(&self.log);
                if let Some(failure) = &log.failure {
                    anyhow::bail!("{failure}");
                }
                if condition(&log) {
                    return Ok(());
                }
                anyhow::ensure!(began.elapsed() < within, "not within {within:?}: {what}: {:?}", log.holders);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Checks that each write of a replica was made while it held the shard of the object.
    pub(super) fn check(&self) -> anyhow::Result<Checked> {
        let log = lock(&self.log);
        let mut holders = BTreeMap::new();
        let mut checked = Checked { writes: 0, transitions: 0 };
        for (version, entry) in &log.entries {
            match entry {
                Entry::Held { shard, holder } => {
                    checked.transitions += 1;
                    holders.insert(*shard, holder.as_str());
                }
                Entry::Written { shard, object, replica } => {
                    checked.writes += 1;
                    let holder = holders.get(shard).copied().unwrap_or_default();
                    anyhow::ensure!(
                        holder == replica,
                        "{replica} wrote {object} of shard {shard} at version {version}, when {holder:?} held it"
                    );
                }
            }
        }
        anyhow::ensure!(checked.writes > 0, "no replica wrote anything");
        Ok(checked)
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Log {
    fn leased(&mut self, lease: &Lease, at: u64) {
        let shard =
            lease.name_any().strip_prefix(LEASES).and_then(|rest| rest.strip_prefix('-')?.parse().ok());
        let Some(shard) = shard else { return };
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        if self.holders.get(&shard) != Some(&holder) {
            self.holders.insert(shard, holder.clone());
            self.entries.insert(at, Entry::Held { shard, holder });
        }
    }

    fn wrote(&mut self, config: &ConfigMap, at: u64, stamps: &mut BTreeMap<String, String>) {
        self.config_version = at;
        let Some(stamp) = config.data.as_ref().and_then(|data| data.get("stamp")) else { return };
        let object = config.name_any();
        // The writer keeps the stamp.
        if stamps.insert(object.clone(), stamp.clone()).as_ref() == Some(stamp) {
            return;
        }
        let replica = stamp.split(' ').next().unwrap_or_default().to_owned();
        let shard = shard_of(Uid::from(config.uid().unwrap_or_default().as_str()));
        self.entries.insert(at, Entry::Written { shard, object, replica });
    }
}

/// Passes every change of a kind to the log.
async fn follow<K>(
    api: Api<K>,
    mut version: String,
    kind: &'static str,
    log: Arc<Mutex<Log>>,
    mut note: impl FnMut(&mut Log, K, u64),
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    loop {
        if let Err(error) = follow_once(&api, &mut version, &log, &mut note).await {
            lock(&log).failure = Some(format!("the log of {kind} is incomplete: {error:#}"));
            return;
        }
    }
}

async fn follow_once<K>(
    api: &Api<K>,
    version: &mut String,
    log: &Mutex<Log>,
    note: &mut impl FnMut(&mut Log, K, u64),
) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let mut events = api.watch(&WatchParams::default(), version).await?.boxed();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                *version = object.resource_version().context("an object has no version")?;
                let at = version.parse()?;
                let mut log = lock(log);
                note(&mut log, object, at);
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) => anyhow::bail!("{}", status.message),
        }
    }
    Ok(())
}
