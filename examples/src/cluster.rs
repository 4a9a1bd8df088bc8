//! A cluster for the examples, so that they run anywhere.

use kube_embedded_apiserver::{ApiServer, StartError};

/// An embedded API server. In your own program, use `kube::Config::infer().await?` instead of `cluster.config()`.
#[derive(Debug)]
pub struct Cluster {
    server: ApiServer,
}

impl Cluster {
    /// Starts an empty cluster.
    pub async fn start() -> Result<Self, StartError> {
        Ok(Self { server: ApiServer::start().await? })
    }

    /// The client configuration.
    ///
    /// # Panics
    /// Never: the URL of an embedded server is valid.
    pub fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.server.url().parse().expect("an address"));
        "default".clone_into(&mut config.default_namespace);
        config
    }

    /// A client for writes.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        self.server.client()
    }
}
