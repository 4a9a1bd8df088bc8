//! Read, change, write, and again when somebody else was faster.

use std::sync::Arc;

use super::document::Document;
use super::stored::Stored;
use super::{Storage, StorageError};

/// What to do with the object just read.
#[derive(Debug)]
pub enum Update {
    /// Store this in its place. If it equals what is stored nothing is written.
    Write(Document),
    /// Leave it as it is.
    Unchanged,
    /// Remove it.
    Delete,
}

/// What became of it.
#[derive(Debug, Clone)]
pub enum Updated {
    /// A new version.
    Written(Arc<Stored>),
    /// Nothing was written; this is the stored version.
    Unchanged(Arc<Stored>),
    /// Removed; this is its last content at the revision of the removal.
    Deleted(Arc<Stored>),
}

/// Why an update did not happen.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The caller's function refused the object as it is stored.
    #[error(transparent)]
    Refused(E),
    /// The store refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Updated {
    /// The version to answer with.
    pub fn stored(&self) -> &Arc<Stored> {
        match self {
            Self::Written(stored) | Self::Unchanged(stored) | Self::Deleted(stored) => stored,
        }
    }
}

/// Applies `change` to the newest version of an object until the result is stored without a race.
///
/// 1. `change` sees the version that is compared on write; preconditions belong inside it.
/// 2. A `suggestion` (from a cache) saves the first read. If `change` refuses it, or finds nothing to change, the object is read and
///    `change` asked again: a stale cache never decides.
/// 3. A result equal to what is stored takes no revision and causes no event.
///
/// # Cancel safety
/// Dropped before it returns, either the write has happened or it has not; nothing is half done.
pub async fn guaranteed_update<E>(
    storage: &dyn Storage,
    key: &str,
    suggestion: Option<Arc<Stored>>,
    mut change: impl FnMut(&Arc<Stored>) -> Result<Update, E>,
) -> Result<Updated, UpdateError<E>> {
    let mut fresh = suggestion.is_none();
    let mut stored = match suggestion {
        Some(stored) => stored,
        None => read(storage, key).await?,
    };
    loop {
        let outcome = match change(&stored) {
            Ok(Update::Write(document)) if document != stored.document => {
                storage.update(key, stored.revision, document).await.map(Updated::Written)
            }
            Ok(Update::Delete) => storage.delete(key, stored.revision).await.map(Updated::Deleted),
            Ok(Update::Write(_) | Update::Unchanged) if fresh => return Ok(Updated::Unchanged(stored)),
            Err(refused) if fresh => return Err(UpdateError::Refused(refused)),
            Ok(_) | Err(_) => Err(StorageError::Conflict(read(storage, key).await?)),
        };
        match outcome {
            Ok(updated) => return Ok(updated),
            Err(StorageError::Conflict(current)) => (stored, fresh) = (current, true),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn read(storage: &dyn Storage, key: &str) -> Result<Arc<Stored>, StorageError> {
    storage.get(key).await?.ok_or(StorageError::NotFound)
}
