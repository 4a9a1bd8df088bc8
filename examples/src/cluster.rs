//! A cluster for the examples, so that they run anywhere.

use kube_embedded_apiserver::{ApiServer, StartError};

/// An embedded API server. In a program of your own there is nothing like it: write
/// `kube::Config::infer().await?` where the examples write `cluster.config()`.
#[derive(Debug)]
pub struct Cluster {
    server: ApiServer,
}

impl Cluster {
    /// A new, empty cluster.
    pub async fn start() -> Result<Self, StartError> {
        Ok(Self { server: ApiServer::start().await? })
    }

    /// How to reach it.
    ///
    /// # Panics
    /// Never: the address of an embedded server is always a valid one.
    pub fn config(&self) -> kube::Config {
        let mut config = kube::Config::new(self.server.url().parse().expect("an address"));
        "default".clone_into(&mut config.default_namespace);
        config
    }

    /// A client for changing things.
    pub fn client(&self) -> Result<kube::Client, kube::Error> {
        self.server.client()
    }
}
