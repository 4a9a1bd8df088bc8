//! Where the objects of a served cluster are kept.

use crate::args::EtcdArguments;
use anyhow::bail;
use kube_embedded_apiserver::storage::Storage;
use std::sync::Arc;

/// `None` is memory of the server's own.
pub(super) async fn open(text: &str, etcd: &EtcdArguments) -> anyhow::Result<Option<Arc<dyn Storage>>> {
    match text.split_once('=') {
        None if text == "memory" => Ok(None),
        Some(("etcd", urls)) if !urls.is_empty() => connect(urls, etcd).await.map(Some),
        _ if text.starts_with("etcd") => {
            bail!("say where etcd is, such as --storage etcd=http://127.0.0.1:2379")
        }
        _ => bail!("there is no storage {text:?}; use --storage memory or --storage etcd=URL"),
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
        Err(error @ EtcdError::Occupied) => {
            bail!(
                "{error}\nadd --etcd-beside-kubernetes to share it; objects are kept under {}",
                arguments.etcd_prefix
            )
        }
        Err(EtcdError::Storage { endpoints, source }) => {
            bail!(
                "cannot use etcd at {endpoints}: {source}\ncheck that etcd runs there, and --etcd-ca, --etcd-cert and --etcd-key if it speaks TLS"
            )
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(feature = "etcd"))]
async fn connect(_: &str, _: &EtcdArguments) -> anyhow::Result<Arc<dyn Storage>> {
    bail!(
        "storage on etcd is not built into this program: build it with `cargo build --release -p kube-informer-cli --features etcd` (which \
         needs protoc; Debian: protobuf-compiler), or leave --storage out to keep objects in memory"
    )
}
