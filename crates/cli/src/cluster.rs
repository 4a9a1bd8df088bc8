//! Which cluster to talk to.

use crate::{
    exit::{Failure, told},
    seeding::seed_pods,
};
use kube::config::KubeConfigOptions;
use kube_embedded_apiserver::ApiServer;

/// A cluster, and the server it lives in if it is an embedded one.
pub(crate) struct Cluster {
    pub(crate) config: kube::Config,
    /// Ends with this value.
    embedded: Option<ApiServer>,
}

impl Cluster {
    /// A cluster in this process.
    pub(crate) async fn embedded(seeded_pods: usize) -> anyhow::Result<Self> {
        let server = ApiServer::start().await?;
        seed_pods(&server.local().client(), seeded_pods, 1).await?;
        let mut config = kube::Config::new(server.url().parse()?);
        "default".clone_into(&mut config.default_namespace);
        Ok(Self { config, embedded: Some(server) })
    }

    /// The cluster of the kubeconfig, or the one this process runs in.
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

    /// Ends the server, if there is one, in good order.
    pub(crate) async fn shutdown(self) {
        if let Some(server) = self.embedded {
            server.shutdown().await;
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        self.config.cluster_url.to_string()
    }
}

fn no_cluster(error: &anyhow::Error) -> anyhow::Error {
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    let why = if causes.is_empty() { error.to_string() } else { causes.join(": ") };
    told(
        Failure::Unreachable,
        format!(
            "no cluster to talk to: {why}\nSet KUBECONFIG or pass --context to name one, or try it without a cluster: --embedded --seed-pods 100"
        ),
    )
}

/// What to tell about a request that failed before anything was watched.
pub(crate) fn request_failed(error: kube::Error, url: &str) -> anyhow::Error {
    match &error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => told(
            Failure::Denied,
            format!(
                "the server at {url} refuses the caller: {} (check the user of the kubeconfig)",
                status.message
            ),
        ),
        kube::Error::Api(_) => {
            anyhow::Error::new(error).context(format!("the server at {url} did not say what it serves"))
        }
        _ => {
            let why = anyhow::Error::new(error);
            told(
                Failure::Unreachable,
                format!(
                    "cannot reach the server at {url}: {why:#}\nIs it running, and is this the right context? Without a cluster: --embedded"
                ),
            )
        }
    }
}
