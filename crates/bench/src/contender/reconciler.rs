//! A controller of this project as a contender: the framework, or its drop-in for kube-rs.

use super::{HandlerCalls, TIMEOUT, trim};
use crate::{
    args::ContenderOptions,
    driver::config,
    protocol::{commands, number, respond},
};
use anyhow::{Context, bail};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{InformerFactory, Object, informer_client};
use kube_informer_controller::{
    Action, BoxError, Controller,
    kube_runtime::{self, watcher},
};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};

/// Runs the commands from standard input.
pub(super) async fn run(options: ContenderOptions) -> anyhow::Result<()> {
    let client = informer_client(config(Some(&options.server), options.kubeconfig.as_deref()).await?)?;
    let calls = Arc::new(HandlerCalls::default());
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        let response = match words.first().map(String::as_str) {
            Some("start") => {
                match options.variant.as_str() {
                    "drop-in" => tokio::spawn(drop_in(client.clone(), Arc::clone(&calls))),
                    _ => tokio::spawn(framework(client.clone(), Arc::clone(&calls))),
                };
                Ok(json!({}))
            }
            _ => execute(&calls, &words).await,
        };
        respond(response)?;
    }
    Ok(())
}

async fn execute(calls: &HandlerCalls, words: &[String]) -> anyhow::Result<Value> {
    match words.first().context("no command")?.as_str() {
        "settle" => trim::trim(),
        "reset" => return Ok(calls.reset()),
        "await-count" => calls.wait_for_count(number(words, 1)?, TIMEOUT).await?,
        "await" => return calls.wait_for_version(number(words, 1)?, TIMEOUT).await,
        "latency" => return Ok(calls.latency()),
        other => bail!("unknown command {other:?}"),
    }
    Ok(json!({}))
}

async fn framework(client: kube::Client, calls: Arc<HandlerCalls>) {
    let pods = InformerFactory::new(client.clone()).of::<Pod>();
    let reconcile = move |pod: Object<Pod>, _| {
        calls.record(&pod);
        async { Ok::<_, BoxError>(Action::done()) }
    };
    let ended = Controller::new(&pods, client).run(reconcile).until(std::future::pending::<()>()).await;
    eprintln!("the controller ended: {ended:?}");
}

/// As a program of kube-rs does it, which gets decoded objects.
async fn drop_in(client: kube::Client, calls: Arc<HandlerCalls>) {
    let reconcile = |pod: Arc<Pod>, calls: Arc<HandlerCalls>| async move {
        calls.record_decoded(&pod.metadata);
        Ok::<_, Infallible>(kube_runtime::controller::Action::await_change())
    };
    let on_error = |_: Arc<Pod>, error: &Infallible, _: Arc<HandlerCalls>| match *error {};
    kube_runtime::Controller::new(kube::Api::<Pod>::all(client), watcher::Config::default())
        .run(reconcile, on_error, calls)
        .for_each(|_| std::future::ready(()))
        .await;
}
