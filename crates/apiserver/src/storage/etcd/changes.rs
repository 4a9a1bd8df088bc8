//! A watch of etcd that resumes after broken connections.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Event, EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::time::Instant;

use super::connection::{Connection, revision_of};
use crate::storage::StorageError;
use crate::storage::stored::Change;

/// The first and the longest delay before a reconnect; the delay doubles in between.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Reads changes under a prefix.
///
/// 1. Yields every change after the given revision, once, in order. After a broken connection it resumes at the last revision read.
/// 2. Ends with an error if the next change is compacted, or if etcd has lost its data.
///
/// # Cancel safety
/// [`next`](Self::next) may be dropped at any time without losing changes.
pub(super) struct Changes {
    connection: Connection,
    epoch: Vec<u8>,
    prefix: String,
    /// Every change up to this revision has been read.
    seen: u64,
    stream: Option<WatchStream>,
    /// The earliest time of the next reconnect.
    retry_at: Instant,
    backoff: Duration,
    /// Whether the connection is broken and that was logged, to log it once and not at every attempt.
    disconnected: bool,
}

/// The changes of one response.
pub(super) struct Batch {
    pub(super) changes: Vec<Arc<Change>>,
    /// The batch completes all changes up to this revision.
    pub(super) revision: u64,
}

impl Changes {
    /// Returns a reader of the changes after a revision, under a storage prefix that ends in a slash.
    pub(super) fn new(connection: Connection, epoch: Vec<u8>, prefix: &str, after: u64) -> Self {
        Self {
            connection,
            epoch,
            prefix: prefix.to_owned(),
            seen: after,
            stream: None,
            retry_at: Instant::now(),
            backoff: BACKOFF.0,
            disconnected: false,
        }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the next changes.
    pub(super) async fn next(&mut self) -> Result<Batch, StorageError> {
        loop {
            let Some(stream) = &mut self.stream else {
                tokio::time::sleep_until(self.retry_at).await;
                match self.open().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(OpenError::Permanent(error)) => return Err(error),
                    Err(OpenError::Transient(error)) => self.broken(&error),
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(response)) if response.compact_revision() > 0 => {
                    return Err(StorageError::Compacted {
                        oldest: response.compact_revision().unsigned_abs(),
                    });
                }
                Ok(Some(response)) if response.canceled() => self.broken(&response.cancel_reason()),
                Ok(Some(response)) => {
                    self.restored();
                    if let Some(batch) = self.batch(&response)? {
                        self.seen = batch.revision;
                        return Ok(batch);
                    }
                }
                Ok(None) => self.broken(&"etcd ended the stream"),
                Err(error) => self.broken(&error),
            }
        }
    }

    async fn open(&self) -> Result<WatchStream, OpenError> {
        if self.disconnected {
            // After a reconnect, the endpoint may serve another store.
            let found = self.connection.identify().await.map_err(OpenError::Transient)?;
            if found.epoch != self.epoch || found.revision < self.seen {
                return Err(OpenError::Permanent(StorageError::internal("etcd has lost its data")));
            }
        }
        let keys = &self.connection.keys;
        let options = WatchOptions::new()
            .with_range(keys.end(&self.prefix))
            .with_start_revision(self.seen as i64 + 1)
            .with_prev_key();
        self.connection
            .open_watch(keys.full(&self.prefix).into(), options)
            .await
            .map_err(OpenError::Transient)
    }

    fn broken(&mut self, cause: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.disconnected, true) {
            tracing::warn!(%cause, "the connection to etcd broke; reconnecting");
        }
        self.stream = None;
        self.retry_at = Instant::now() + self.backoff;
        self.backoff = (self.backoff * 2).min(BACKOFF.1);
    }

    fn restored(&mut self) {
        if std::mem::replace(&mut self.disconnected, false) {
            tracing::info!("reconnected to etcd");
        }
        self.backoff = BACKOFF.0;
    }

    /// Converts the events of a response; `None` if it has none.
    fn batch(&self, response: &WatchResponse) -> Result<Option<Batch>, StorageError> {
        let mut changes = Vec::new();
        let mut revision = None;
        for event in response.events() {
            let Some(pair) = event.kv() else { continue };
            revision = Some(revision_of(pair));
            if self.connection.keys.short(pair.key()).is_some() {
                changes.extend(self.change(event)?.map(Arc::new));
            }
        }
        Ok(revision.map(|revision| Batch { changes, revision }))
    }

    /// Converts an event; `None` if neither version is an object.
    fn change(&self, event: &Event) -> Result<Option<Change>, StorageError> {
        let Some(pair) = event.kv() else { return Ok(None) };
        let created = event.event_type() == EventType::Put && pair.create_revision() == pair.mod_revision();
        if event.prev_kv().is_none() && !created {
            // The previous version is already compacted, so the change is incomplete.
            return Err(StorageError::Compacted { oldest: revision_of(pair) });
        }
        let previous = event.prev_kv().and_then(|pair| self.connection.stored(pair));
        let current = (event.event_type() == EventType::Put).then(|| self.connection.stored(pair)).flatten();
        let known = previous.is_some() || current.is_some();
        Ok(known.then(|| Change { revision: revision_of(pair), previous, current }))
    }
}

/// The error of opening a watch.
enum OpenError {
    /// A retry may succeed.
    Transient(StorageError),
    Permanent(StorageError),
}
