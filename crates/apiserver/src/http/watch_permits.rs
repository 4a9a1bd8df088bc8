//! Permits of watches, which limit how many are open.

use std::sync::Arc;

use http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The server or the connection has no permit left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many watches on this {0}: close some, or raise the limit of the server")]
pub(crate) struct TooManyWatches(&'static str);

/// The watches that a server may still open.
#[derive(Debug)]
pub(crate) struct WatchPermits(Arc<Semaphore>);

/// The watches that a connection may still open. An extension of each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionWatches(Arc<Semaphore>);

impl ConnectionWatches {
    pub(crate) fn new(limit: usize) -> Self {
        Self(semaphore(limit))
    }
}

/// Held by a watch as long as it is open: a permit of the server, and one of its connection if it has one.
#[derive(Debug)]
pub(crate) struct WatchPermit {
    _server: OwnedSemaphorePermit,
    _connection: Option<OwnedSemaphorePermit>,
}

impl WatchPermits {
    pub(crate) fn new(limit: usize) -> Self {
        Self(semaphore(limit))
    }

    /// A permit for the watch of a request with these extensions.
    pub(crate) fn acquire(&self, extensions: &Extensions) -> Result<WatchPermit, TooManyWatches> {
        let connection = extensions.get::<ConnectionWatches>();
        let connection = connection.map(|watches| acquire(&watches.0, "connection")).transpose()?;
        Ok(WatchPermit { _server: acquire(&self.0, "server")?, _connection: connection })
    }
}

fn semaphore(limit: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))
}

fn acquire(permits: &Arc<Semaphore>, owner: &'static str) -> Result<OwnedSemaphorePermit, TooManyWatches> {
    Arc::clone(permits).try_acquire_owned().map_err(|_| TooManyWatches(owner))
}
