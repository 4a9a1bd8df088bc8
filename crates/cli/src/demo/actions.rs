//! Actions of the user: faults and scaling.

use super::journal::Journal;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube_embedded_apiserver::{Fault, FaultRule, Faults, Verb};
use serde_json::json;
use tokio::sync::watch;

/// An action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// End all watches, as a load balancer does: they resume at their resource version.
    CutWatches,
    /// Remove the event history while pods are deleted: informers relist, and handlers receive tombstones.
    ExpireHistory,
    /// Stall the auditor, or let it continue.
    StallHandler,
    /// Let the next writes fail, so that the work queue retries.
    FailWrites,
    /// Scale a deployment up or down.
    Scale(i32),
}

/// Pods that are deleted while the history expires.
const VANISHING: usize = 2;

/// Runs actions.
pub(crate) struct Actions {
    faults: Faults,
    client: kube::Client,
    journal: Journal,
    stalled: watch::Sender<bool>,
    rng: fastrand::Rng,
}

impl Actions {
    pub(crate) fn new(
        faults: Faults,
        client: kube::Client,
        journal: Journal,
        stalled: watch::Sender<bool>,
        seed: u64,
    ) -> Self {
        Self { faults, client, journal, stalled, rng: fastrand::Rng::with_seed(seed) }
    }

    /// Runs an action, and writes it to the journal.
    pub(crate) async fn run(&mut self, action: Action) {
        if let Err(error) = self.try_run(action).await {
            self.journal.write(format!("! {error:#}"));
        }
    }

    async fn try_run(&mut self, action: Action) -> anyhow::Result<()> {
        match action {
            Action::CutWatches => {
                self.journal.write("» all watches are cut: each resumes at its version");
                self.faults.cut_watches(None);
            }
            Action::ExpireHistory => self.expire().await?,
            Action::StallHandler => {
                let stalled = !*self.stalled.borrow();
                self.stalled.send_replace(stalled);
                self.journal.write(if stalled {
                    "» the auditor stalls: its events are coalesced"
                } else {
                    "» the auditor continues"
                });
            }
            Action::FailWrites => {
                self.journal.write("» the next 10 creates fail: the work queue retries");
                self.faults
                    .add(FaultRule::new(Fault::InternalError).verb(Verb::Create).resource("pods").times(10));
            }
            Action::Scale(by) => self.scale(by).await?,
        }
        Ok(())
    }

    /// While watches are stalled, deletes pods and removes the history; then the watches expire.
    async fn expire(&mut self) -> anyhow::Result<()> {
        self.journal.write("» the history expires while pods are deleted: relist and tombstones");
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
