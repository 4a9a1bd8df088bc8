//! Changes in etcd, in order, through broken connections.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Event, EventType, WatchOptions, WatchResponse, WatchStream};
use tokio::time::Instant;

use super::connection::{Connection, revision_of};
use crate::storage::StorageError;
use crate::storage::stored::Change;

/// Pauses between attempts to reach etcd again: doubled from the first up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Reads changes under a prefix.
///
/// 1. Every change after the position it was given, once, in order; a broken connection is opened again at the position reached.
/// 2. It ends with an error when history is compacted beyond its position, or when another store is found in place of this one.
///
/// # Cancel safety
/// [`next`](Self::next) may be dropped at any time; nothing that was read is lost.
pub(super) struct Changes {
    connection: Connection,
    epoch: Vec<u8>,
    prefix: String,
    /// Everything up to this revision is behind us.
    seen: u64,
    stream: Option<WatchStream>,
    /// Not before this moment is etcd asked again.
    retry_at: Instant,
    pause: Duration,
    /// Whether somebody was told that the connection is broken: once, not at every attempt.
    complained: bool,
}

/// What came at once.
pub(super) struct Batch {
    pub(super) changes: Vec<Arc<Change>>,
    /// Everything up to this revision has come.
    pub(super) revision: u64,
}

impl Changes {
    /// Changes after a revision, under a storage prefix that ends in a slash.
    pub(super) fn new(connection: Connection, epoch: Vec<u8>, prefix: &str, after: u64) -> Self {
        Self {
            connection,
            epoch,
            prefix: prefix.to_owned(),
            seen: after,
            stream: None,
            retry_at: Instant::now(),
            pause: PAUSES.0,
            complained: false,
        }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// The next changes.
    pub(super) async fn next(&mut self) -> Result<Batch, StorageError> {
        loop {
            let Some(stream) = &mut self.stream else {
                tokio::time::sleep_until(self.retry_at).await;
                match self.open().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(Trouble::Final(error)) => return Err(error),
                    Err(Trouble::Passing(error)) => self.broken(&error),
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(answer)) if answer.compact_revision() > 0 => {
                    return Err(StorageError::Compacted { oldest: answer.compact_revision().unsigned_abs() });
                }
                Ok(Some(answer)) if answer.canceled() => self.broken(&answer.cancel_reason()),
                Ok(Some(answer)) => {
                    self.restored();
                    if let Some(batch) = self.batch(&answer)? {
                        self.seen = batch.revision;
                        return Ok(batch);
                    }
                }
                Ok(None) => self.broken(&"etcd ended the stream"),
                Err(error) => self.broken(&error),
            }
        }
    }

    async fn open(&self) -> Result<WatchStream, Trouble> {
        if self.complained {
            // Whoever answers after a pause may be somebody else.
            let found = self.connection.identify().await.map_err(Trouble::Passing)?;
            if found.epoch != self.epoch || found.revision < self.seen {
                return Err(Trouble::Final(StorageError::Internal("etcd has lost its data".to_owned())));
            }
        }
        let keys = &self.connection.keys;
        let options = WatchOptions::new()
            .with_range(keys.end(&self.prefix))
            .with_start_revision(self.seen as i64 + 1)
            .with_prev_key();
        self.connection.open_watch(keys.full(&self.prefix).into(), options).await.map_err(Trouble::Passing)
    }

    fn broken(&mut self, cause: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.complained, true) {
            tracing::warn!(%cause, "the connection to etcd broke; trying again");
        }
        self.stream = None;
        self.retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    fn restored(&mut self) {
        if std::mem::replace(&mut self.complained, false) {
            tracing::info!("the connection to etcd is back");
        }
        self.pause = PAUSES.0;
    }

    /// `None` if the answer has no events.
    fn batch(&self, answer: &WatchResponse) -> Result<Option<Batch>, StorageError> {
        let mut changes = Vec::new();
        let mut revision = None;
        for event in answer.events() {
            let Some(pair) = event.kv() else { continue };
            revision = Some(revision_of(pair));
            if self.connection.keys.short(pair.key()).is_some() {
                changes.extend(self.change(event)?.map(Arc::new));
            }
        }
        Ok(revision.map(|revision| Batch { changes, revision }))
    }

    /// `None` if neither version is an object.
    fn change(&self, event: &Event) -> Result<Option<Change>, StorageError> {
        let Some(pair) = event.kv() else { return Ok(None) };
        let created = event.event_type() == EventType::Put && pair.create_revision() == pair.mod_revision();
        if event.prev_kv().is_none() && !created {
            // The version before is compacted already: whoever needs it must begin anew.
            return Err(StorageError::Compacted { oldest: revision_of(pair) });
        }
        let previous = event.prev_kv().and_then(|pair| self.connection.stored(pair));
        let current = (event.event_type() == EventType::Put).then(|| self.connection.stored(pair)).flatten();
        let known = previous.is_some() || current.is_some();
        Ok(known.then(|| Change { revision: revision_of(pair), previous, current }))
    }
}

/// Why a watch could not be opened.
enum Trouble {
    /// It may work later.
    Passing(StorageError),
    Final(StorageError),
}
