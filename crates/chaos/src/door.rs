//! How to reach a server: over plain HTTP/1.1, or over TLS, where HTTP/2 is spoken.

use anyhow::Context;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where a server, or a proxy before it, is found and what is to be trusted there.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    address: SocketAddr,
    /// The certificate to trust; none is plain HTTP.
    authority: Option<Arc<[u8]>>,
}

impl From<SocketAddr> for Door {
    fn from(address: SocketAddr) -> Self {
        Self { address, authority: None }
    }
}

impl Door {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same server through another address.
    pub(crate) fn through(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// How clients reach it.
    pub(crate) fn config(&self) -> anyhow::Result<kube::Config> {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        let mut config = kube::Config::new(format!("{scheme}://{}", self.address).parse()?);
        config.root_cert = self.authority.as_ref().map(|der| vec![der.to_vec()]);
        Ok(config)
    }
}

/// A certificate and its key, in files, for a server on this machine. It stays the same when the server is replaced.
pub(crate) struct Identity {
    folder: tempfile::TempDir,
    authority: Arc<[u8]>,
}

impl Identity {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        let folder = tempfile::tempdir().context("cannot make a folder for a certificate")?;
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem())?;
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem())?;
        Ok(Self { folder, authority: made.cert.der().to_vec().into() })
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.path("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.path("key.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.folder.path(), name)
    }

    /// The door of a server that has it.
    pub(crate) fn door(&self, address: SocketAddr) -> Door {
        Door { address, authority: Some(Arc::clone(&self.authority)) }
    }
}
