//! A controller of kube-runtime, with its defaults.

use crate::{
    commands,
    event_calls::{EventCalls, unix_nanos},
    trim,
};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{Controller, controller::Action, watcher},
};
use serde_json::json;
use std::{convert::Infallible, io::Write, sync::Arc};

/// Runs the commands from standard input.
pub async fn run(client: Client) -> anyhow::Result<()> {
    let calls = Arc::new(EventCalls::default());
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let response = match words.as_slice() {
            ["start"] => {
                tokio::spawn(control(client.clone(), Arc::clone(&calls)));
                json!({})
            }
            ["settle"] => {
                trim();
                json!({})
            }
            ["reset"] => calls.reset(),
            ["await-count", count] => {
                calls.wait_for_count(count.parse()?).await;
                json!({})
            }
            ["await", version] => calls.wait_for_version(version.parse()?).await,
            ["latency"] => calls.latency(),
            _ => json!({"error": format!("unknown command {line:?}")}),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{response}")?;
        out.flush()?;
    }
    std::process::exit(0)
}

async fn control(client: Client, calls: Arc<EventCalls>) {
    let reconcile = |pod: Arc<Pod>, calls: Arc<EventCalls>| async move {
        calls.record(&pod.metadata, unix_nanos());
        Ok::<_, Infallible>(Action::await_change())
    };
    let on_error = |_: Arc<Pod>, error: &Infallible, _: Arc<EventCalls>| match *error {};
    Controller::new(Api::<Pod>::all(client), watcher::Config::default())
        .run(reconcile, on_error, calls)
        .for_each(|_| std::future::ready(()))
        .await;
}
