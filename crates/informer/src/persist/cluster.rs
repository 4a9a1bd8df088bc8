//! The cluster that a saved state belongs to.

use crate::{KubeSource, time};
use kube_informer_wire::{Kind, ListWatch, ObjectKey, Origin, Uid};
use ring::digest::{SHA256, digest};
use std::{fmt::Write, time::Duration};
use tokio::sync::OnceCell;

/// How long the uid of `kube-system` is waited for before a saved state is shown.
const LOOKUP: Duration = Duration::from_secs(1);

/// The cluster that a saved state belongs to.
pub(crate) enum Cluster {
    /// The user says which.
    Named(String),
    /// The one with this certificate authority. Its address may change.
    Authority { hash: String, kube_system: Box<KubeSystem> },
}

/// The uid of the namespace `kube-system`, which every cluster has: it distinguishes clusters with the same authority.
///
/// It may be unknown, because access is denied or the server is down. Then it is not compared: the server may be down for
/// long, and the cache is to be readable. The object with the highest version, which is read before a watch is resumed, shows
/// another cluster nevertheless.
pub(crate) struct KubeSystem {
    source: KubeSource,
    /// Set once it was read.
    uid: OnceCell<Uid>,
}

impl Cluster {
    pub(crate) fn authority(hash: String, client: kube::Client) -> Self {
        let namespaces = Origin::new(Kind::cluster("", "v1", "Namespace", "namespaces"));
        let source = KubeSource::new(client, namespaces, None);
        Self::Authority { hash, kube_system: Box::new(KubeSystem { source, uid: OnceCell::new() }) }
    }

    /// The text that is compared before a saved state is read.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Named(name) => format!("id:{name}"),
            Self::Authority { hash, .. } => format!("ca:{hash}"),
        }
    }

    /// The uid that is compared when a saved state is read, if it is known.
    pub(super) async fn kube_system(&self) -> Option<String> {
        let Self::Authority { kube_system, .. } = self else { return None };
        let KubeSystem { source, uid } = &**kube_system;
        let read = async || {
            let key = ObjectKey::cluster("kube-system");
            let found = time::timeout(LOOKUP, source.get(&key)).await;
            found.ok().and_then(Result::ok).flatten().map(|namespace| namespace.uid()).ok_or(())
        };
        uid.get_or_try_init(read).await.ok().map(ToString::to_string)
    }

    /// The same without a request.
    pub(super) fn known_kube_system(&self) -> Option<String> {
        match self {
            Self::Named(_) => None,
            Self::Authority { kube_system, .. } => kube_system.uid.get().map(ToString::to_string),
        }
    }
}

/// The hash of the certificate authority of a cluster, if the configuration has one.
pub(crate) fn authority_of(config: &kube::Config) -> Option<String> {
    let certificates = config.root_cert.as_ref().filter(|certificates| !certificates.is_empty())?;
    let mut hash = String::new();
    for byte in digest(&SHA256, &certificates.concat()).as_ref() {
        let _ = write!(hash, "{byte:02x}");
    }
    Some(hash)
}
