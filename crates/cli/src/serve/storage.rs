//! Storage of the served cluster.

use crate::args::EtcdArguments;
#[cfg(feature = "etcd")]
use crate::exit::{self, Failure};
use anyhow::bail;
use kube_embedded_apiserver::storage::Storage;
use std::sync::Arc;

/// Opens the storage. `None` means the server's in-memory storage.
pub(super) async fn open(storage: &str, etcd: &EtcdArguments) -> anyhow::Result<Option<Arc<dyn Storage>>> {
    match storage.split_once('=') {
        None if storage == "memory" => Ok(None),
        Some(("etcd", urls)) if !urls.is_empty() => connect(urls, etcd).await.map(Some),
        _ if storage.starts_with("etcd") => {
            bail!("--storage etcd needs a URL, such as --storage etcd=http://127.0.0.1:2379")
        }
        _ => bail!("unknown storage {storage:?}; use --storage memory or --storage etcd=URL"),
    }
}

#[cfg(feature = "etcd")]
async fn connect(urls: &str, arguments: &EtcdArguments) -> anyhow::Result<Arc<dyn Storage>> {
    use kube_embedded_apiserver::storage::{EtcdError, EtcdOptions, EtcdStorage};

    let mut options = EtcdOptions::new(urls.split(','))
        .prefix(&arguments.etcd_prefix)
        .share_with_kubernetes(arguments.etcd_beside_kubernetes);
    if let Some(path) = &arguments.etcd_ca {
        options = options.ca_certificate(super::read(path)?);
    }
    if let (Some(certificate), Some(key)) = (&arguments.etcd_cert, &arguments.etcd_key) {
        options = options.client_certificate(super::read(certificate)?, super::read(key)?);
    }
    match EtcdStorage::connect(options).await {
        Ok(storage) => Ok(Arc::new(storage)),
        Err(error @ EtcdError::Occupied) => Err(exit::error(
            Failure::Other,
            error.to_string(),
            format!(
                "add --etcd-beside-kubernetes to share it; objects are stored under {}",
                arguments.etcd_prefix
            ),
        )),
        Err(EtcdError::Storage { endpoints, source }) => Err(exit::error(
            Failure::Other,
            format!("cannot use etcd at {endpoints}: {source}"),
            "check that etcd runs there, and --etcd-ca, --etcd-cert and --etcd-key if it uses TLS",
        )),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(feature = "etcd"))]
async fn connect(_: &str, _: &EtcdArguments) -> anyhow::Result<Arc<dyn Storage>> {
    bail!(
        "this program is built without etcd storage: build it with `cargo build --release -p kube-informer-cli --features etcd` (which \
         needs protoc; Debian: protobuf-compiler), or leave out --storage to store objects in memory"
    )
}
