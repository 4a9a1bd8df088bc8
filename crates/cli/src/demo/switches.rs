//! What a person can do to the demo.

use super::journal::Journal;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube_embedded_apiserver::{Fault, FaultRule, Faults, Verb};
use serde_json::json;
use tokio::sync::watch;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    /// End all watches, as a load balancer does: they go on where they were.
    CutWatches,
    /// Forget the past while pods vanish: watches must list again, and find tombstones.
    ExpireHistory,
    /// Stall one handler, or let it go on.
    StallHandler,
    /// Let the next writes fail: the work queue retries.
    FailWrites,
    /// Ask for more or fewer pods of a deployment.
    Scale(i32),
}

/// Pods that vanish unseen when the history expires.
const VANISHING: usize = 2;

/// Carries out what was asked for.
pub(crate) struct Switches {
    faults: Faults,
    client: kube::Client,
    journal: Journal,
    stalled: watch::Sender<bool>,
    rng: fastrand::Rng,
}

impl Switches {
    pub(crate) fn new(
        faults: Faults,
        client: kube::Client,
        journal: Journal,
        stalled: watch::Sender<bool>,
        seed: u64,
    ) -> Self {
        Self { faults, client, journal, stalled, rng: fastrand::Rng::with_seed(seed) }
    }

    /// Does one thing, and writes it down.
    pub(crate) async fn turn(&mut self, switch: Switch) {
        if let Err(error) = self.attempt(switch).await {
            self.journal.write(format!("! {error:#}"));
        }
    }

    async fn attempt(&mut self, switch: Switch) -> anyhow::Result<()> {
        match switch {
            Switch::CutWatches => {
                self.journal.write("» all watches are cut: each goes on where it was");
                self.faults.cut_watches(None);
            }
            Switch::ExpireHistory => self.expire().await?,
            Switch::StallHandler => {
                let stalled = !*self.stalled.borrow();
                self.stalled.send_replace(stalled);
                self.journal.write(if stalled {
                    "» the auditor stalls: its events pile up"
                } else {
                    "» the auditor goes on"
                });
            }
            Switch::FailWrites => {
                self.journal.write("» the next 10 creations fail: the work queue retries");
                self.faults
                    .add(FaultRule::new(Fault::InternalError).verb(Verb::Create).resource("pods").times(10));
            }
            Switch::Scale(by) => self.scale(by).await?,
        }
        Ok(())
    }

    /// While the watches stand still pods vanish and the past is forgotten; then they end.
    async fn expire(&mut self) -> anyhow::Result<()> {
        self.journal.write("» the history expires while pods vanish: list again, find tombstones");
        self.faults.stall_watches(Some("pods"), true);
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let mut victims = pods.list(&ListParams::default()).await?.items;
        self.rng.shuffle(&mut victims);
        for name in victims.iter().filter_map(|pod| pod.metadata.name.as_deref()).take(VANISHING) {
            pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
        }
        self.faults.compact().await?;
        self.faults.forget_window(None).await?;
        self.faults.stall_watches(Some("pods"), false);
        Ok(())
    }

    async fn scale(&mut self, by: i32) -> anyhow::Result<()> {
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let all = deployments.list(&ListParams::default()).await?.items;
        let Some(chosen) = all.get(self.rng.usize(..all.len().max(1))) else { return Ok(()) };
        let name = chosen.metadata.name.clone().unwrap_or_default();
        let before = chosen.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
        let replicas = (before + by).clamp(0, 30);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        deployments.patch(&name, &PatchParams::default(), &patch).await?;
        self.journal.write(format!("» {name} is scaled from {before} to {replicas}"));
        Ok(())
    }
}
