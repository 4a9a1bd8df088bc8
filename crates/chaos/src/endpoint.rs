//! The endpoint of a server: plain HTTP/1.1, or HTTP/2 over TLS.

use anyhow::Context;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The address of a server or of a proxy in front of it, and the certificate to trust.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    /// The certificate to trust. `None` is plain HTTP.
    root_certificate: Option<Arc<[u8]>>,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self { address, root_certificate: None }
    }
}

impl Endpoint {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server behind another address.
    pub(crate) fn with_address(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// The config of a client.
    pub(crate) fn config(&self) -> anyhow::Result<kube::Config> {
        let scheme = if self.root_certificate.is_some() { "https" } else { "http" };
        let mut config = kube::Config::new(format!("{scheme}://{}", self.address).parse()?);
        config.root_cert = self.root_certificate.as_ref().map(|der| vec![der.to_vec()]);
        Ok(config)
    }
}

/// A self-signed certificate for loopback and its key, in files. It stays the same when the server is replaced.
pub(crate) struct TlsIdentity {
    directory: tempfile::TempDir,
    certificate: Arc<[u8]>,
}

impl TlsIdentity {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        let directory = tempfile::tempdir().context("cannot create a directory for a certificate")?;
        std::fs::write(directory.path().join("cert.pem"), generated.cert.pem())?;
        std::fs::write(directory.path().join("key.pem"), generated.signing_key.serialize_pem())?;
        Ok(Self { directory, certificate: generated.cert.der().to_vec().into() })
    }

    pub(crate) fn certificate_file(&self) -> PathBuf {
        self.path("cert.pem")
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.path("key.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.directory.path(), name)
    }

    /// The endpoint of a server with this certificate.
    pub(crate) fn endpoint(&self, address: SocketAddr) -> Endpoint {
        Endpoint { address, root_certificate: Some(Arc::clone(&self.certificate)) }
    }
}
