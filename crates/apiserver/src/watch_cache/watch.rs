//! WATCH: the starting point of a stream and its initial state.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::WatchCache;
use super::error::ReadError;
use super::filter::Filter;
use super::initial::InitialState;
use super::registration::Registration;
use super::request::{RevisionOption, WatchRequest};
use super::schedule::Schedule;
use super::stream::{CachedWatch, StorageWatch, WatchStream};
use crate::storage::{Range, StorageError};

impl WatchCache {
    /// Opens a watch.
    ///
    /// Errors that clients expect inside the stream (a resource version that is too old, or too new for an initial state) are items of
    /// the stream. An error returned here means that no watch was opened.
    pub async fn watch(&self, request: &WatchRequest) -> Result<WatchStream, ReadError> {
        let opened = if self.cached() { self.open(request).await } else { self.open_storage(request).await };
        match opened {
            Err(error @ ReadError::NotReady { .. }) => Err(error),
            Err(error) => Ok(WatchStream::failed(error)),
            Ok(stream) => Ok(stream),
        }
    }

    async fn open(&self, request: &WatchRequest) -> Result<WatchStream, ReadError> {
        self.check_ready()?;
        let needed = match request.revision {
            RevisionOption::Unset => self.storage.current_revision().await?,
            RevisionOption::Any => 0,
            RevisionOption::At(revision) => revision,
        };
        if request.initial_events {
            self.shared.wait_for_revision(needed).await?;
        }
        let filter = self.filter(&request.scope, &request.labels, &request.fields);
        let filter = Arc::new(filter.with_shards(&request.shards));
        let (mut state, revision) = self.shared.lock_at();
        state.check_ready()?;
        let duration = self.duration(request, &mut state.rng);
        let (after, position) = match request.revision {
            _ if request.initial_events => (revision, state.window.end()),
            RevisionOption::Any => (revision, state.window.end()),
            RevisionOption::Unset | RevisionOption::At(_) => {
                let oldest = state.window.oldest();
                let position = state.window.after(needed);
                (needed, position.ok_or(ReadError::WatchExpired { requested: needed, oldest })?)
            }
        };
        let initial = request.initial_events.then(|| InitialState::new(state.tree.clone(), &filter));
        let slot = state.watchers.add(&filter, position);
        drop(state);
        let end_mark = (request.initial_events && request.mark_initial_end).then_some(revision);
        let schedule = self.schedule(request, duration, true);
        let registration = Registration::new(Arc::clone(&self.shared), filter, slot);
        Ok(WatchStream::from_cache(CachedWatch::new(registration, after, initial, end_mark, schedule)))
    }

    /// Opens a watch of a resource without a cache, directly on the store.
    async fn open_storage(&self, request: &WatchRequest) -> Result<WatchStream, ReadError> {
        let filter = self.filter(&request.scope, &request.labels, &request.fields);
        let filter = Arc::new(filter.with_shards(&request.shards));
        if let (RevisionOption::At(requested), true) = (request.revision, request.initial_events) {
            self.check_storage_revision(requested).await?;
        }
        let (items, after) = match request.revision {
            _ if request.initial_events => self.read_state(&filter).await?,
            RevisionOption::At(revision) => (Vec::new(), revision),
            RevisionOption::Unset | RevisionOption::Any => {
                (Vec::new(), self.storage.current_revision().await?)
            }
        };
        let changes = self.storage.watch(filter.prefix(), after).await.map_err(storage_error)?;
        let end_mark = (request.initial_events && request.mark_initial_end).then_some(after);
        let (slot, duration) = {
            let mut state = self.shared.lock();
            (state.watchers.add(&filter, 0), self.duration(request, &mut state.rng))
        };
        let registration = Registration::new(Arc::clone(&self.shared), filter, slot);
        let schedule = self.schedule(request, duration, false);
        Ok(WatchStream::from_storage(StorageWatch::new(registration, changes, items, end_mark, schedule)))
    }

    async fn read_state(
        &self,
        filter: &Filter,
    ) -> Result<(Vec<Arc<crate::storage::Stored>>, u64), ReadError> {
        let (start, limit) = filter.single().map_or((None, 0), |key| (Some(key.to_owned()), 1));
        let everything = Range { prefix: filter.prefix().to_owned(), start, limit, at: None };
        let page = self.storage.list(&everything).await?;
        Ok((page.items.into_iter().filter(|stored| filter.selects(stored)).collect(), page.revision))
    }

    /// Returns the duration of the watch: its timeout, or a random one between half an hour and an hour.
    fn duration(&self, request: &WatchRequest, rng: &mut fastrand::Rng) -> Duration {
        request.timeout.unwrap_or_else(|| Duration::from_secs(1800).mul_f64(1.0 + rng.f64()))
    }

    fn schedule(&self, request: &WatchRequest, duration: Duration, periodic: bool) -> Schedule {
        let options = &self.shared.options;
        let bookmarks = request.allow_bookmarks && periodic;
        let period = bookmarks.then_some(options.bookmark_period);
        Schedule::new(Instant::now(), duration, period, options.bookmark_before_end)
    }
}

/// Converts an error of the store to the error of a watch.
pub(super) fn storage_error(error: StorageError) -> ReadError {
    match error {
        StorageError::Compacted { .. } => ReadError::StorageWatchExpired,
        other => other.into(),
    }
}
