//! Where and how caches are saved.

use super::{cluster::Cluster, directory::Directory, names::Names};
use kube_informer_persist::{CacheDir, Disk, EncryptionKey, OpenError};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

/// How old a saved state may be to be resumed at its version, unless configured.
const RESUME_WITHIN: Duration = Duration::from_secs(600);

/// Where and how the caches of informers are saved, so that the next process starts with them instead of listing everything.
///
/// 1. The directory is created with mode 0700, its files with 0600. One process at a time uses it; a second one is refused
///    ([`PersistError::Open`]).
/// 2. It holds the objects as they are cached, that is, after the transform, and not encrypted unless [`key`](Self::key) is set.
///    Secrets are saved only with a key.
/// 3. A saved state is used only if it belongs to the same cluster, resource, namespaces, selectors and transform, and for built-in
///    resources to the same table of types. Otherwise, or if it is damaged, it is discarded, and the informer starts as usual. If
///    only the packed content of some objects is damaged, these objects are fetched again.
///    Informers that differ only in the transform, the set of namespaces, or in how objects are stored, have numbered files. If all
///    of them are built before one is started, each continues the files that belong to it, in whatever order they are built.
/// 4. It is on disk shortly after it is in the cache, and survives the end of the process, also by a signal. After a loss of
///    power an older state may come back, which is then brought up to date.
/// 5. A disk that fails or is full is reported ([`PersistStatus`](crate::PersistStatus)), and affects nothing but the next start.
///
/// Before a watch is resumed, the object with the highest version is requested: an informer that may list and watch, but not
/// get, lists instead. When a restored cache counts as synced is documented at
/// [`InformerStatus::Restored`](crate::InformerStatus::Restored).
///
/// Persist if a restart must be fast, or if listing is expensive: large collections, many informers, many replicas. Do not
/// persist small collections, or where the disk outlives the secrecy of its content.
///
/// ```no_run
/// use kube_informer::{InformerFactory, PersistOptions};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = kube::Config::infer().await?;
/// let factory = InformerFactory::builder_from_config(config)?.persist("/var/cache/my-operator")?.build();
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until an informer or a factory is built with them"]
pub struct PersistOptions {
    open: Open,
    cluster_id: Option<String>,
    key: Option<EncryptionKey>,
    resume_within: Duration,
    trust_restored: bool,
    clock: Clock,
    inline: bool,
}

type Open = Arc<dyn Fn() -> Result<Arc<dyn Directory>, OpenError> + Send + Sync>;
pub(super) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

impl PersistOptions {
    /// Caches in a directory, which is created if it is missing.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self::opening(move || CacheDir::open(&directory).map(|opened| Arc::new(opened) as Arc<dyn Directory>))
    }

    /// For tests: caches on another disk than that of the operating system.
    #[doc(hidden)]
    pub fn on(disk: impl Disk + Clone) -> Self {
        Self::opening(move || CacheDir::on(disk.clone()).map(|opened| Arc::new(opened) as Arc<dyn Directory>))
    }

    fn opening(open: impl Fn() -> Result<Arc<dyn Directory>, OpenError> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            cluster_id: None,
            key: None,
            resume_within: RESUME_WITHIN,
            trust_restored: false,
            clock: Arc::new(SystemTime::now),
            inline: false,
        }
    }

    /// Names the cluster. Required unless the factory knows the certificate authority of the cluster
    /// ([`InformerFactory::builder_from_config`](crate::InformerFactory::builder_from_config)); otherwise its hash is used,
    /// and the uid of the namespace `kube-system` if that can be read. Two clusters must never have the same name.
    pub fn cluster_id(mut self, id: impl Into<String>) -> Self {
        self.cluster_id = Some(id.into());
        self
    }

    /// Encrypts everything that is saved, and allows Secrets to be saved. Keep the key elsewhere than the directory.
    pub fn key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(EncryptionKey::new(key));
        self
    }

    /// A state that was saved longer ago is compared with a list instead of being resumed by a watch; ten minutes by default. A
    /// cluster that was restored from a backup since then, and has passed the saved version, cannot be distinguished from one
    /// that was not.
    pub fn resume_within(mut self, age: Duration) -> Self {
        self.resume_within = age;
        self
    }

    /// Lets informers count as synced as soon as their state is restored, before it is known whether that is the state of the
    /// server. For programs that prefer speed and tolerate a stale cache.
    pub fn trust_restored(mut self) -> Self {
        self.trust_restored = true;
        self
    }

    /// For tests: the wall clock.
    #[doc(hidden)]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// For simulations: disk operations run on the thread of the informer, in the same order every time.
    #[doc(hidden)]
    pub fn inline(mut self) -> Self {
        self.inline = true;
        self
    }

    /// Opens the directory. `known` is the cluster, unless the options name it.
    pub(crate) fn open(self, known: Option<Cluster>) -> Result<Persistence, PersistError> {
        let cluster = match (self.cluster_id, known) {
            (Some(id), _) => Cluster::Named(id),
            (None, Some(known)) => known,
            (None, None) => return Err(PersistError::UnknownCluster),
        };
        Ok(Persistence {
            directory: (self.open)()?,
            cluster: Arc::new(cluster),
            key: self.key,
            resume_within: self.resume_within,
            trust_restored: self.trust_restored,
            clock: self.clock,
            names: Arc::default(),
            inline: self.inline,
        })
    }
}

impl From<&str> for PersistOptions {
    fn from(directory: &str) -> Self {
        Self::new(directory)
    }
}

impl From<&Path> for PersistOptions {
    fn from(directory: &Path) -> Self {
        Self::new(directory)
    }
}

impl From<PathBuf> for PersistOptions {
    fn from(directory: PathBuf) -> Self {
        Self::new(directory)
    }
}

impl fmt::Debug for PersistOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistOptions")
            .field("cluster_id", &self.cluster_id)
            .field("key", &self.key)
            .field("resume_within", &self.resume_within)
            .field("trust_restored", &self.trust_restored)
            .finish_non_exhaustive()
    }
}

/// Caches cannot be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PersistError {
    /// It is unknown to which cluster the caches belong.
    #[error(
        "caches can be saved only for a known cluster; build the factory with InformerFactory::builder_from_config, from a \
         configuration with a certificate authority, or set PersistOptions::cluster_id"
    )]
    UnknownCluster,
    /// The directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// An open directory, and how it is used.
#[derive(Clone)]
pub(crate) struct Persistence {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) key: Option<EncryptionKey>,
    pub(super) resume_within: Duration,
    pub(super) trust_restored: bool,
    pub(super) clock: Clock,
    /// The logs of the directory that informers of this process use.
    pub(super) names: Arc<Names>,
    inline: bool,
}

impl Persistence {
    /// Whether operations that block run in the task that starts them, as simulations need it.
    pub(crate) fn is_inline(&self) -> bool {
        self.inline
    }

    /// Runs an operation that blocks on the disk. `None` if it panicked, or if the runtime is shut down.
    pub(super) async fn blocking<R: Send + 'static>(
        &self,
        operation: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        match self.inline {
            true => Some(operation()),
            false => tokio::task::spawn_blocking(operation).await.ok(),
        }
    }
}
