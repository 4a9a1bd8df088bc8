//! The driver: starts or uses a server, seeds it and changes its objects.

mod changes;
pub(crate) mod levels;
mod namespaces;
mod replay;
mod seeding;

use crate::{
    args::DriverOptions,
    protocol::{commands, number, respond},
};
use anyhow::{Context, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::watch_cache::CacheOptions;
use serde_json::{Value, json};
use std::{collections::VecDeque, path::Path};

/// Number of concurrent writes.
const WRITERS: usize = 4;

/// The server, and the state of its objects.
pub(crate) struct Driver {
    /// `None` if another server is used.
    embedded: Option<ApiServer>,
    client: kube::Client,
    url: String,
    seed: u64,
    /// Namespace and name of each pod.
    pods: Vec<(String, String)>,
    /// Number of changes so far, which makes each change different.
    changes: u64,
    /// Whether the objects of `churn` exist.
    churn_created: bool,
    replay: Option<replay::Replay>,
}

/// Runs the commands from standard input.
pub(crate) async fn run(options: DriverOptions) -> anyhow::Result<()> {
    let mut driver = Driver::start(options).await?;
    let mut commands = commands();
    while let Some(words) = commands.recv().await {
        respond(driver.execute(&words).await)?;
    }
    Ok(())
}

impl Driver {
    async fn start(options: DriverOptions) -> anyhow::Result<Self> {
        let (embedded, client, url) = match (options.server, options.kubeconfig) {
            (server @ Some(_), kubeconfig) | (server, kubeconfig @ Some(_)) => {
                let config = config(server.as_deref(), kubeconfig.as_deref()).await?;
                let url = config.cluster_url.to_string();
                (None, kube::Client::try_from(config)?, url)
            }
            (None, None) => {
                // A burst is written while watches are stalled: the window must hold all of it.
                let mut cache = CacheOptions::default();
                cache.window_min = 102_400;
                let server = ApiServer::builder().seed(options.seed).cache_options(cache).start().await?;
                let (client, url) = (server.local().client(), server.url());
                (Some(server), client, url)
            }
        };
        Ok(Self {
            embedded,
            client,
            url,
            seed: options.seed,
            pods: Vec::new(),
            changes: 0,
            churn_created: false,
            replay: None,
        })
    }

    async fn execute(&mut self, words: &[String]) -> anyhow::Result<Value> {
        match words.first().map(String::as_str) {
            Some("url") => Ok(json!({ "url": self.url })),
            Some("seed") => {
                let corpus = words.get(1).context("the name of a corpus is missing")?.clone();
                self.seed_pods(&corpus, number(words, 2)?).await
            }
            Some("seed-kind") => {
                let kind = words.get(1).context("the name of a kind is missing")?.clone();
                self.seed_kind(&kind, number(words, 2)?).await
            }
            Some("relist") => self.relist(number(words, 1)?).await,
            Some("change") => self.change(number(words, 1)?).await,
            Some("record") => self.record(number(words, 1)?).await,
            Some("hold") => self.replay(false),
            Some("release") => self.replay(true),
            Some("rate") => self.rate(number(words, 1)?, number(words, 2)?).await,
            Some("churn") => self.churn(number(words, 1)?).await,
            Some("compressibility") => {
                let path = words.get(1).context("a path is missing")?.clone();
                self.compressibility(&path).await
            }
            Some("protobuf") => Ok(json!({ "protobuf": self.supports_protobuf().await? })),
            other => bail!("unknown command {other:?}"),
        }
    }

    fn embedded(&self) -> anyhow::Result<&ApiServer> {
        self.embedded.as_ref().context("this command needs the embedded server")
    }

    /// Whether the server returns protobuf, and not JSON instead.
    async fn supports_protobuf(&self) -> anyhow::Result<bool> {
        let request = http::Request::get("/api/v1/namespaces")
            .header("accept", "application/vnd.kubernetes.protobuf,application/json");
        let response = self.client.send(request.body(kube::client::Body::empty())?).await?;
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        Ok(content_type.is_some_and(|value| value.starts_with("application/vnd.kubernetes.protobuf")))
    }

    /// Sends a request and returns the response.
    async fn send(&self, request: http::request::Builder, body: Vec<u8>) -> anyhow::Result<Value> {
        send(self.client.clone(), request, body).await
    }
}

async fn send(client: kube::Client, request: http::request::Builder, body: Vec<u8>) -> anyhow::Result<Value> {
    Ok(client.request(request.body(body)?).await?)
}

/// Calls a function with all items, several concurrently; results are in the order of the items.
async fn concurrently<T, R, F>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> F,
) -> anyhow::Result<Vec<R>>
where
    F: Future<Output = anyhow::Result<R>> + Send + 'static,
    R: Send + 'static,
{
    let (mut items, mut running, mut done) = (items.into_iter(), VecDeque::new(), Vec::new());
    loop {
        running.extend(items.by_ref().take(WRITERS - running.len()).map(|item| tokio::spawn(work(item))));
        let Some(first) = running.pop_front() else { return Ok(done) };
        done.push(first.await??);
    }
}

/// The configuration of a client: from a kubeconfig, at another URL if one is given.
pub(crate) async fn config(server: Option<&str>, kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
    let Some(kubeconfig) = kubeconfig else {
        return Ok(kube::Config::new(server.context("no server")?.parse()?));
    };
    let read = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read the kubeconfig {}", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    if let Some(server) = server {
        config.cluster_url = server.parse()?;
    }
    Ok(config)
}
