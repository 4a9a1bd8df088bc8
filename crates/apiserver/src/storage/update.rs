//! Read, change and write an object, with retries after conflicts.

use std::sync::Arc;

use super::document::Document;
use super::stored::Stored;
use super::{Storage, StorageError};

/// The decision of a change function about the object it was called with.
#[derive(Debug)]
pub enum Update {
    /// Replace it with this document, unless both are equal.
    Write(Document),
    /// Leave it as it is.
    Unchanged,
    /// Remove it.
    Delete,
}

/// The result of an update.
#[derive(Debug, Clone)]
pub enum Updated {
    /// The new version.
    Written(Arc<Stored>),
    /// The stored version; nothing was written.
    Unchanged(Arc<Stored>),
    /// The last content at the revision of the delete.
    Deleted(Arc<Stored>),
}

/// The error of an update.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError<E> {
    /// The change function rejected the stored object.
    #[error(transparent)]
    Refused(E),
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Updated {
    /// Returns the resulting version.
    pub fn stored(&self) -> &Arc<Stored> {
        match self {
            Self::Written(stored) | Self::Unchanged(stored) | Self::Deleted(stored) => stored,
        }
    }
}

/// Applies `change` to the newest version of an object and writes the result, with retries after conflicts.
///
/// 1. The write succeeds only if the version that `change` was called with is still current; check preconditions in `change`.
/// 2. A `suggestion` (from a cache) saves the first read. If `change` rejects it or changes nothing, the object is read from the store
///    and `change` is called again, so that a stale cache never decides.
/// 3. A result equal to the stored document takes no revision and causes no event.
///
/// # Cancel safety
/// If the future is dropped, the write has either happened completely or not at all.
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
