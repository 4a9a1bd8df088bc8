//! Options of the etcd backend.

use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
use thiserror::Error;

use crate::storage::StorageError;

/// Interval and timeout of the keep-alive pings.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));

/// The etcd to use, and the credentials and limits to use it with.
#[derive(Clone)]
#[must_use = "pass the options to EtcdStorage::connect"]
pub struct EtcdOptions {
    pub(super) endpoints: Vec<String>,
    pub(super) prefix: String,
    ca_certificate: Option<String>,
    client_certificate: Option<(String, String)>,
    user: Option<(String, String)>,
    pub(super) share_with_kubernetes: bool,
    pub(super) compaction: Option<Duration>,
    pub(super) timeout: Duration,
}

/// The error of connecting to etcd.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// An endpoint or a certificate is malformed, or the credentials are wrong.
    #[error("cannot connect to etcd with these options")]
    Options(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The prefix could mix our keys with those of others.
    #[error("invalid etcd prefix {0:?}: it must begin with a slash, not end with one, and not be /registry")]
    Prefix(String),
    /// The etcd has the data of a Kubernetes cluster.
    #[error(
        "this etcd has the data of a Kubernetes cluster (/registry/): use another etcd, or allow sharing it with Kubernetes"
    )]
    Occupied,
    /// A request failed.
    #[error("cannot use etcd at {endpoints}")]
    Storage {
        /// The endpoints of the etcd.
        endpoints: String,
        /// The cause.
        source: StorageError,
    },
}

impl EtcdOptions {
    /// Returns options for the etcd at these URLs (`http://` or `https://`), several for a cluster.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/kube-informer".to_owned(),
            ca_certificate: None,
            client_certificate: None,
            user: None,
            share_with_kubernetes: false,
            compaction: Some(Duration::from_secs(300)),
            timeout: Duration::from_secs(10),
        }
    }

    /// Sets the prefix of all keys; `/kube-informer` by default. Servers with the same prefix share their objects.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the CA certificate to trust, as PEM.
    pub fn ca_certificate(mut self, pem: impl Into<String>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }

    /// Sets the client certificate and its key, as PEM.
    pub fn client_certificate(mut self, certificate: impl Into<String>, key: impl Into<String>) -> Self {
        self.client_certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Authenticates as this user.
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// Sets whether an etcd with the data of a Kubernetes cluster may be used; false by default.
    pub fn share_with_kubernetes(mut self, yes: bool) -> Self {
        self.share_with_kubernetes = yes;
        self
    }

    /// Sets the period of compaction, which affects all users of this etcd. Versions are kept for at least one period and at most two.
    /// Five minutes by default, as in kube-apiserver; `None` leaves compaction to etcd.
    pub fn compaction(mut self, period: Option<Duration>) -> Self {
        self.compaction = period;
        self
    }

    /// Sets the timeout of a request to etcd; 10 seconds by default.
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
            .map_err(|error| EtcdError::Options(error.into()))
    }

    fn tls(&self) -> TlsOptions {
        let mut tls = TlsOptions::new();
        if let Some(pem) = &self.ca_certificate {
            tls = tls.ca_certificate(Certificate::from_pem(pem));
        }
        if let Some((certificate, key)) = &self.client_certificate {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        tls
    }
}

impl std::fmt::Debug for EtcdOptions {
    /// Shows no keys and passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EtcdOptions({} under {})", self.endpoints.join(","), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_prefixes_are_rejected() {
        let check = |prefix: &str| EtcdOptions::new(["http://127.0.0.1:2379"]).prefix(prefix).check();
        for good in ["/kube-informer", "/a/b", "/registry2"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "x", "/x/", "/registry", "/registry/x"] {
            assert!(matches!(check(bad), Err(EtcdError::Prefix(_))), "{bad}");
        }
    }
}
