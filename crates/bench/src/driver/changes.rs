//! Changes of objects while informers watch them.

use super::{Driver, concurrently, send};
use crate::protocol::{SENT_AT, unix_nanos};
use anyhow::Context;
use http::Request;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// Number of small objects that `churn` changes.
const CHURNED: usize = 1000;

impl Driver {
    /// Forces all informers to relist after a share of the pods has changed; at least one, so that the end of the relist can
    /// be detected.
    pub(super) async fn relist(&mut self, percent: f64) -> anyhow::Result<Value> {
        let faults = self.embedded()?.faults();
        faults.stall_watches(Some("pods"), true);
        let count = ((self.pods.len() as f64 * percent / 100.0) as usize).max(1);
        let version = self.change_pods(count).await?;
        faults.compact().await?;
        faults.forget_window(Some("pods")).await?;
        faults.stall_watches(Some("pods"), false);
        Ok(json!({"changed": count, "version": version, "released_at": unix_nanos()}))
    }

    /// Changes the status of pods, and deletes one.
    pub(super) async fn change(&mut self, count: usize) -> anyhow::Result<Value> {
        let changed = self.change_pods(count).await?;
        let (namespace, name) = self.pods.pop().context("the server has no pods; seed it first")?;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0");
        let deleted = self.send(Request::delete(path), Vec::new()).await?;
        let deleted =
            deleted["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        // A change of another pod afterwards, because the version in the response may be that before the delete.
        let last = self.change_pods(1).await?;
        Ok(json!({"changed": count, "version": last.max(changed).max(deleted.unwrap_or(0))}))
    }

    /// Changes the status of pods like kubelets, and returns the last version.
    pub(super) async fn change_pods(&mut self, count: usize) -> anyhow::Result<u64> {
        let changes = self.changes + 1..=self.changes + count as u64;
        self.changes += count as u64;
        let patches = changes.map(|change| {
            let ready = if change.is_multiple_of(2) { "True" } else { "False" };
            let patch = json!({"status": {"conditions": [{"type": "Ready", "status": ready,
                "lastTransitionTime": format!("2026-02-01T{:02}:{:02}:{:02}Z", change / 3600 % 24, change / 60 % 60, change % 60)}]}});
            self.pod_of(change).map(|(namespace, name)| {
                let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status?fieldManager=kubelet");
                (self.client.clone(), path, patch)
            })
        });
        let patches: Vec<_> = patches.collect::<anyhow::Result<_>>()?;
        let versions = concurrently(patches, |(client, path, patch)| patch_pod(client, path, patch)).await?;
        Ok(versions.into_iter().max().unwrap_or(0))
    }

    /// The pod of a change. The step is coprime with every likely number of pods, so all pods are visited.
    fn pod_of(&self, change: u64) -> anyhow::Result<&(String, String)> {
        let at = (change as usize).wrapping_mul(7919) % self.pods.len().max(1);
        self.pods.get(at).context("the server has no pods; seed it first")
    }

    /// Writes changes at a fixed rate; each contains the time of the write.
    pub(super) async fn rate(&mut self, per_second: u64, seconds: u64) -> anyhow::Result<Value> {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second.max(1) as u32);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut newest, count) = (0, per_second * seconds);
        for _ in 0..count {
            ticks.tick().await;
            self.changes += 1;
            let patch = json!({"metadata": {"labels": {SENT_AT: unix_nanos().to_string()}}});
            let (namespace, name) = self.pod_of(self.changes)?;
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}?fieldManager=bench");
            newest = patch_pod(self.client.clone(), path, patch).await?;
        }
        Ok(json!({"changed": count, "version": newest}))
    }

    /// Changes small objects as fast as the server allows.
    pub(super) async fn churn(&mut self, count: usize) -> anyhow::Result<Value> {
        let path = "/api/v1/namespaces/bench-churn/configmaps";
        let body = |i: usize, value: usize| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("churn-{i:04}")},
                "data": {"value": value.to_string(), "text": "x".repeat(200)}})
        };
        let (mut newest, start) = (0, Instant::now());
        for number in 0..count.max(CHURNED) {
            let i = number % CHURNED;
            let json = body(i, number).to_string().into_bytes();
            let request = match number < CHURNED && !self.churn_created {
                true => Request::post(path),
                false => Request::put(format!("{path}/churn-{i:04}")),
            };
            newest = version(&self.send(request, json).await?)?;
        }
        self.churn_created = true;
        Ok(json!({"changed": count, "version": newest, "wall_s": start.elapsed().as_secs_f64()}))
    }
}

async fn patch_pod(client: kube::Client, path: String, patch: Value) -> anyhow::Result<u64> {
    let request = Request::patch(path).header("content-type", "application/strategic-merge-patch+json");
    version(&send(client, request, patch.to_string().into_bytes()).await?)
}

fn version(object: &Value) -> anyhow::Result<u64> {
    let version =
        object["metadata"]["resourceVersion"].as_str().context("an object without a resource version")?;
    Ok(version.parse()?)
}
