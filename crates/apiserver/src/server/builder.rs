//! Choices before the start.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connections::{ConnectionLimits, serve};
use super::{ApiServer, LocalServer};
use crate::engine::{Clock, Engine, Ingredients};
use crate::storage::{MemoryStorage, Storage, StorageError};
use crate::watch_cache::CacheOptions;

/// The largest body that is read, as in the original.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// How a server is made. Every choice has a default.
pub struct Builder {
    storage: Option<Arc<dyn Storage>>,
    cache_options: CacheOptions,
    clock: Clock,
    seed: Option<u64>,
    empties_namespaces: bool,
    max_body: usize,
    port: u16,
    connections: ConnectionLimits,
}

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: choose another port, or 0 for any free one: {source}")]
    Listen {
        /// The address tried.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The store cannot be read.
    #[error("cannot read the store: {0}")]
    Storage(#[from] StorageError),
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            storage: None,
            cache_options: CacheOptions::default(),
            clock: Box::new(SystemTime::now),
            seed: None,
            empties_namespaces: true,
            max_body: MAX_BODY,
            port: 0,
            connections: ConnectionLimits::default(),
        }
    }
}

impl Builder {
    /// Keeps objects here instead of in memory of its own.
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sizes and periods of the watch caches.
    pub fn cache_options(mut self, options: CacheOptions) -> Self {
        self.cache_options = options;
        self
    }

    /// The time of day that objects show. Under a paused clock, derive it from [`tokio::time::Instant`].
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Box::new(now);
        self
    }

    /// Makes uids, generated names and watch lengths the same in every run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Whether deleted namespaces are emptied and removed, which elsewhere a controller does. On by default.
    pub fn empty_namespaces(mut self, yes: bool) -> Self {
        self.empties_namespaces = yes;
        self
    }

    /// The largest request body, in bytes; 3 MiB by default.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// The port to listen on; any free one by default.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How many connections are open at once; more wait to be accepted. 1,000 by default.
    pub fn max_connections(mut self, n: usize) -> Self {
        self.connections.count = n.max(1);
        self
    }

    /// How long a client may take to send the head of a request; then its connection is closed. 10 seconds by default.
    pub fn header_timeout(mut self, time: Duration) -> Self {
        self.connections.header_timeout = time;
        self
    }

    /// A server without sockets.
    pub async fn in_process(self) -> Result<LocalServer, StartError> {
        let (engine, ..) = self.engine().await?;
        Ok(LocalServer { engine })
    }

    /// A server on a port of the loopback interface.
    pub async fn start(self) -> Result<ApiServer, StartError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listen = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (engine, limits) = self.engine().await?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(serve(listener, Arc::clone(&engine), limits, stopped));
        Ok(ApiServer { local: LocalServer { engine }, address, listener: Some(task), stop })
    }

    async fn engine(self) -> Result<(Arc<Engine>, ConnectionLimits), StartError> {
        let seed = self.seed.unwrap_or_else(|| fastrand::Rng::new().u64(..));
        let engine = Engine::new(Ingredients {
            storage: self.storage.unwrap_or_else(|| Arc::new(MemoryStorage::new())),
            cache_options: CacheOptions { seed, ..self.cache_options },
            clock: self.clock,
            seed,
            empties_namespaces: self.empties_namespaces,
            max_body: self.max_body,
        })
        .await?;
        Ok((engine, self.connections))
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("port", &self.port).field("seed", &self.seed).finish_non_exhaustive()
    }
}
