//! Watches on the log of changes.

use std::sync::{Arc, Weak};

use futures_util::stream;

use super::Shared;
use crate::storage::{Change, ChangeStream, StorageError};

/// The most changes copied per acquisition of the lock, so that a watch from an old revision does not block writers.
const BATCH: usize = 256;

/// The position of a watch in the log.
struct Cursor {
    shared: Weak<Shared>,
    published: tokio::sync::watch::Receiver<u64>,
    prefix: String,
    /// Every change up to this revision has been read.
    seen: u64,
    batch: std::vec::IntoIter<Arc<Change>>,
    ended: bool,
}

pub(super) fn open(shared: &Arc<Shared>, prefix: &str, after: u64) -> Result<ChangeStream, StorageError> {
    // Copies nothing; fails if `after` is compacted.
    shared.lock().history.changes(after, 0)?;
    let cursor = Cursor {
        shared: Arc::downgrade(shared),
        published: shared.published.subscribe(),
        prefix: prefix.to_owned(),
        seen: after,
        batch: Vec::new().into_iter(),
        ended: false,
    };
    Ok(Box::pin(stream::unfold(cursor, |mut cursor| async move {
        let item = cursor.next().await?;
        Some((item, cursor))
    })))
}

impl Cursor {
    async fn next(&mut self) -> Option<Result<Arc<Change>, StorageError>> {
        while !self.ended {
            if let Some(change) = self.batch.find(|change| change.key().starts_with(&self.prefix)) {
                return Some(Ok(change));
            }
            self.published.mark_unchanged();
            match self.read() {
                Some(Ok(())) if self.batch.len() > 0 => {}
                Some(Ok(())) => self.ended = self.published.changed().await.is_err(),
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
        }
        None
    }

    /// Reads the next batch; `None` after the store was dropped.
    fn read(&mut self) -> Option<Result<(), StorageError>> {
        let changes = self.shared.upgrade()?.lock().history.changes(self.seen, BATCH);
        Some(changes.map(|changes| {
            self.seen = changes.last().map_or(self.seen, |change| change.revision);
            self.batch = changes.into_iter();
        }))
    }
}
