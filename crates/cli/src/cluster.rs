//! The cluster that a command uses.

use crate::{
    exit::{self, Failure},
    seeding::{Owners, seed_pods},
};
use kube::config::KubeConfigOptions;
use kube_embedded_apiserver::ApiServer;

/// A cluster, with its server if it is embedded.
pub(crate) struct Cluster {
    pub(crate) config: kube::Config,
    /// Stops when dropped.
    embedded: Option<ApiServer>,
}

impl Cluster {
    /// Starts a cluster in this process.
    pub(crate) async fn embedded(seeded_pods: usize) -> anyhow::Result<Self> {
        let server = ApiServer::start().await?;
        seed_pods(&server.local().client(), seeded_pods, 1, Owners::Named).await?;
        let mut config = kube::Config::new(server.url().parse()?);
        "default".clone_into(&mut config.default_namespace);
        Ok(Self { config, embedded: Some(server) })
    }

    /// The cluster of the kubeconfig, or the cluster in which this process runs.
    pub(crate) async fn configured(context: Option<String>) -> anyhow::Result<Self> {
        let config = match context {
            None => kube::Config::infer().await.map_err(anyhow::Error::new),
            Some(_) => {
                let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
                kube::Config::from_kubeconfig(&options).await.map_err(anyhow::Error::new)
            }
        };
        let config = config.map_err(|error| no_cluster(&error))?;
        Ok(Self { config, embedded: None })
    }

    /// The embedded server, if there is one.
    pub(crate) fn server(&self) -> Option<&ApiServer> {
        self.embedded.as_ref()
    }

    /// Stops the embedded server, if there is one.
    pub(crate) async fn shutdown(self) {
        if let Some(server) = self.embedded {
            server.shutdown().await;
        }
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        self.config.cluster_url.to_string().trim_end_matches('/').to_owned()
    }
}

fn no_cluster(error: &anyhow::Error) -> anyhow::Error {
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    let why = if causes.is_empty() { error.to_string() } else { causes.join(": ") };
    exit::error(
        Failure::Unreachable,
        format!("no cluster is configured: {why}"),
        "set KUBECONFIG or pass --context, or try it without a cluster: --embedded --seed-pods 100",
    )
}

/// The error of a request that failed before the watch started.
pub(crate) fn request_failed(error: kube::Error, url: &str) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => exit::error(
            Failure::Denied,
            format!("the server at {url} rejects the credentials: {}", status.message),
            "check the user of the kubeconfig",
        ),
        kube::Error::Api(_) => {
            anyhow::Error::new(error).context(format!("cannot list the resources of the server at {url}"))
        }
        _ => {
            let why = anyhow::Error::new(error);
            exit::error(
                Failure::Unreachable,
                format!("cannot reach the server at {url}: {why:#}"),
                "check that it is running and that the context is right, or try it without a cluster: --embedded",
            )
        }
    }
}
