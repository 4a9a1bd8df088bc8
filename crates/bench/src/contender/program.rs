//! A program of kube-rs on the drop-in for `kube_runtime`.

use kube_informer_controller::kube_runtime as runtime;
#[path = "../../peers/pod_reflector.rs"]
mod pod_reflector;

use super::trim;
use crate::{
    args::ContenderOptions,
    driver::config,
    protocol::{commands, respond},
};
use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Runs the commands from standard input.
pub(super) async fn run(options: ContenderOptions) -> anyhow::Result<()> {
    let config = config(Some(&options.server), options.kubeconfig.as_deref()).await?;
    let client = kube::Client::try_from(config)?;
    let mut store = None;
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let response = match words.as_slice() {
            ["start"] => {
                let reader = pod_reflector::follow(client.clone()).await?;
                let objects = reader.len();
                store = Some(reader);
                Ok(json!({"objects": objects}))
            }
            words => execute(store.as_ref(), words),
        };
        respond(response)?;
    }
    Ok(())
}

fn execute(
    store: Option<&runtime::reflector::Store<k8s_openapi::api::core::v1::Pod>>,
    words: &[&str],
) -> anyhow::Result<Value> {
    match words {
        ["settle"] => trim::trim(),
        ["read", how] => return Ok(pod_reflector::read(store.context("not started")?, how)),
        other => bail!("unknown command {other:?}"),
    }
    Ok(json!({}))
}
