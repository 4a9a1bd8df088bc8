//! Creates generated objects on an embedded server.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{Api, PostParams};
use kube_informer_workload::{App, Pods, node};
use serde_json::json;

/// Average number of pods on a node.
const PODS_PER_NODE: usize = 50;

/// The owners of generated pods, which do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    Named,
    /// For servers that collect garbage: they would delete pods of owners that do not exist.
    Omitted,
}

/// Creates pods with their nodes and namespaces. Shows a progress bar on a terminal.
pub(crate) async fn seed_pods(
    client: &kube::Client,
    count: usize,
    seed: u64,
    owners: Owners,
) -> anyhow::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in App::namespaces() {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        unless_exists(namespaces.create(&create, &namespace).await)
            .with_context(|| format!("cannot create namespace {name}"))?;
    }
    let node_count = count.div_ceil(PODS_PER_NODE);
    seed_nodes(client, node_count, seed).await?;
    let bar = ProgressBar::new(count as u64).with_style(style()).with_message("creating pods");
    for value in Pods::new(seed, node_count).take(count) {
        let mut pod: Pod = serde_json::from_value(value)?;
        if owners == Owners::Omitted {
            pod.metadata.owner_references = None;
        }
        let pods: Api<Pod> =
            Api::namespaced(client.clone(), pod.metadata.namespace.as_deref().unwrap_or("default"));
        bar.inc(1);
        let Some(mut made) =
            unless_exists(pods.create(&create, &pod).await).context("cannot create a generated pod")?
        else {
            continue;
        };
        made.status = pod.status;
        let name = made.metadata.name.clone().unwrap_or_default();
        pods.replace_status(&name, &create, &made)
            .await
            .context("cannot set the status of a generated pod")?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Creates nodes `node-0` and so on.
pub(crate) async fn seed_nodes(client: &kube::Client, count: usize, seed: u64) -> anyhow::Result<()> {
    let (nodes, create) = (Api::<Node>::all(client.clone()), PostParams::default());
    let mut rng = fastrand::Rng::with_seed(seed);
    for number in 0..count {
        let node: Node = serde_json::from_value(node(&mut rng, number))?;
        let made =
            unless_exists(nodes.create(&create, &node).await).context("cannot create a generated node")?;
        let Some(mut made) = made else { continue };
        made.status = node.status;
        let name = made.metadata.name.clone().unwrap_or_default();
        nodes
            .replace_status(&name, &create, &made)
            .await
            .context("cannot set the status of a generated node")?;
    }
    Ok(())
}

/// `None` if the object exists already, in storage that a server has used before.
fn unless_exists<T>(created: kube::Result<T>) -> kube::Result<Option<T>> {
    match created {
        Ok(made) => Ok(Some(made)),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(None),
        Err(error) => Err(error),
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} {per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
