//! The handle of an added handler.

use crate::{
    controller::Controller,
    listener::{Listener, SyncState},
    processor::ListenerId,
};
use std::{fmt, sync::Arc};
use tokio::sync::watch;

/// A handler that has been added to an informer.
///
/// Dropping it leaves the handler in place; [`scoped`](Self::scoped) makes a guard that does not.
pub struct Registration {
    pub(crate) controller: Arc<Controller>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) id: ListenerId,
}

/// How far behind a handler is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerLoad {
    /// Events waiting; a replay of the whole cache counts as one.
    pub waiting: usize,
    /// Events that were coalesced because the handler was too slow.
    pub coalesced: u64,
}

/// One handler of an informer, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerInfo {
    /// Its name, as in metrics.
    pub name: String,
    /// Whether it has received every object that existed before it was added.
    pub synced: bool,
    /// How far behind it is.
    pub load: HandlerLoad,
}

impl HandlerInfo {
    pub(crate) fn of(listener: &Listener) -> Self {
        let synced = *listener.synced().borrow() == SyncState::Done;
        Self { name: listener.name().to_string(), synced, load: HandlerLoad::of(listener) }
    }
}

impl HandlerLoad {
    fn of(listener: &Listener) -> Self {
        let (waiting, coalesced) = listener.load();
        Self { waiting, coalesced }
    }
}

/// The handler ended before it was synced: the informer stopped, or the handler was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler ended before it was synced: the informer stopped, or the handler was removed")]
pub struct HandlerEnded;

impl Registration {
    /// Resolves when the handler has received every object that existed before it was added, and has returned from
    /// the last of those calls.
    pub async fn synced(&self) -> Result<(), HandlerEnded> {
        let mut synced = self.listener.synced();
        let reached = synced.wait_for(|sync| *sync != SyncState::Pending).await.map(|sync| *sync);
        match reached {
            Ok(SyncState::Done) => Ok(()),
            _ => Err(HandlerEnded),
        }
    }

    /// Whether the handler has received every object that existed before it was added.
    pub fn is_synced(&self) -> bool {
        *self.listener.synced().borrow() == SyncState::Done
    }

    /// How far behind the handler is.
    pub fn load(&self) -> HandlerLoad {
        HandlerLoad::of(&self.listener)
    }

    /// Ends the handler: what waits for it is dropped, and the handler is no longer running, nor will it be,
    /// when this resolves.
    pub async fn remove(self) {
        let mut ended = self.leave();
        // The listener never goes before it says that it ended, so there is nothing to handle here.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Ends the handler when the returned guard is dropped, without waiting for a call that is running.
    pub fn scoped(self) -> ScopedRegistration {
        ScopedRegistration(self)
    }

    pub(crate) fn leave(&self) -> watch::Receiver<bool> {
        self.controller.between_batches().leave(self.id);
        self.listener.close(false);
        self.listener.has_ended()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({})", self.listener.name())
    }
}

/// A [`Registration`] that ends with its scope.
#[derive(Debug)]
#[must_use = "dropping it removes the handler"]
pub struct ScopedRegistration(Registration);

impl Drop for ScopedRegistration {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl std::ops::Deref for ScopedRegistration {
    type Target = Registration;

    fn deref(&self) -> &Registration {
        &self.0
    }
}
