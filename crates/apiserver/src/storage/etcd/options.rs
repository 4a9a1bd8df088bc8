//! How to reach etcd.

use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use thiserror::Error;

use crate::storage::StorageError;

/// How often a connection nobody uses is asked whether it is alive, and how long it may take to answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// Which etcd to use and how.
#[derive(Clone)]
pub struct EtcdOptions {
    pub(super) endpoints: Vec<String>,
    pub(super) prefix: String,
    authority: Option<String>,
    identity: Option<(String, String)>,
    user: Option<(String, String)>,
    pub(super) beside_kubernetes: bool,
    pub(super) compaction: Option<Duration>,
    pub(super) timeout: Duration,
}

/// Why etcd cannot be used.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// The address cannot be one.
    #[error("etcd cannot be reached with these options: {0}")]
    Options(String),
    /// The prefix would mix our keys with others'.
    #[error(
        "the etcd prefix {0:?} cannot be used: it must begin with a slash, end without one, and not be /registry"
    )]
    Prefix(String),
    /// The etcd belongs to a Kubernetes cluster.
    #[error(
        "this etcd holds the data of a Kubernetes cluster (/registry/): use an etcd of your own, or say that it is meant to be shared"
    )]
    Occupied,
    /// It does not answer.
    #[error("cannot use etcd at {endpoints}: {source}")]
    Storage {
        /// Where it should be.
        endpoints: String,
        /// What went wrong.
        source: StorageError,
    },
}

impl EtcdOptions {
    /// The etcd at these URLs, several for a cluster; `http://` or `https://`.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/kube-informer".to_owned(),
            authority: None,
            identity: None,
            user: None,
            beside_kubernetes: false,
            compaction: Some(Duration::from_secs(300)),
            timeout: Duration::from_secs(10),
        }
    }

    /// Where in etcd everything is kept; `/kube-informer` by default. Servers with the same prefix are one cluster.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Trusts certificates signed by this authority, as PEM.
    pub fn authority(mut self, pem: impl Into<String>) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// Shows this certificate, with its key, as PEM.
    pub fn identity(mut self, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Logs in as this user.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Whether an etcd that holds the data of a Kubernetes cluster may be used. It is refused by default.
    pub fn beside_kubernetes(mut self, yes: bool) -> Self {
        self.beside_kubernetes = yes;
        self
    }

    /// How often history is compacted: what is older than one such period, and at most two, is forgotten, by everybody who uses this
    /// etcd. Five minutes by default, as in kube-apiserver; `None` leaves it to etcd.
    pub fn compaction(mut self, period: Option<Duration>) -> Self {
        self.compaction = period;
        self
    }

    /// How long one request to etcd may take; 10 seconds by default.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    pub(super) fn check(&self) -> Result<(), EtcdError> {
        let prefix = &self.prefix;
        let registry = prefix == "/registry" || prefix.starts_with("/registry/");
        if !prefix.starts_with('/') || prefix.ends_with('/') || registry {
            return Err(EtcdError::Prefix(prefix.clone()));
        }
        Ok(())
    }

    pub(super) async fn client(&self) -> Result<Client, EtcdError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.timeout)
            .with_keep_alive(KEEP_ALIVE.0, KEEP_ALIVE.1)
            .with_keep_alive_while_idle(true)
            .with_require_leader(true);
        if let Some((name, password)) = &self.user {
            options = options.with_user(name, password);
        }
        if self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            options = options.with_tls(self.tls());
        }
        Client::connect(&self.endpoints, Some(options))
            .await
            .map_err(|error| EtcdError::Options(error.to_string()))
    }

    fn tls(&self) -> TlsOptions {
        let mut tls = TlsOptions::new();
        if let Some(pem) = &self.authority {
            tls = tls.ca_certificate(Certificate::from_pem(pem));
        }
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        tls
    }
}

impl std::fmt::Debug for EtcdOptions {
    /// Without keys and passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EtcdOptions({} under {})", self.endpoints.join(","), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_mix_with_others_are_refused() {
        let check = |prefix: &str| EtcdOptions::new(["http://127.0.0.1:2379"]).prefix(prefix).check();
        for good in ["/kube-informer", "/a/b", "/registry2"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "x", "/x/", "/registry", "/registry/x"] {
            assert!(matches!(check(bad), Err(EtcdError::Prefix(_))), "{bad}");
        }
    }
}
