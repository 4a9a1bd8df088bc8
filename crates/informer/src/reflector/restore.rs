//! Starting with the state that an earlier process saved.

use super::{
    Failure, Input, Reflector,
    machine::{RestoredState, Witness},
    silent,
};
use crate::{
    delta::AnyObject,
    delta_fifo::{Position, SyncedBy},
    indexer::Indexer,
    scope::Partition,
    status::InformerStatus,
    telemetry::{InformerError, RelistReason},
    time,
};
use futures_util::future::BoxFuture;
use kube_informer_wire::{ObjectKey, ResourceVersion, Restoring};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Loads the state of a partition; `None` if there is none that can be used.
pub(crate) type Restore = BoxFuture<'static, Option<Loaded>>;

/// The state of a partition that an earlier process saved.
pub(crate) struct Loaded {
    /// No two have the same key, and all of them belong to the partition.
    pub(crate) objects: Vec<AnyObject>,
    /// The version that the objects show.
    pub(crate) version: ResourceVersion,
    /// How long ago it was saved.
    pub(crate) age: Duration,
    /// Whether it is recent enough to resume at its version.
    pub(crate) is_recent: bool,
    pub(crate) synced_by: SyncedBy,
    /// Dropped when the objects are shown.
    pub(crate) restoring: Restoring,
}

impl Reflector {
    /// Shows the saved state to readers and handlers. Returns with what the machine starts.
    pub(super) async fn restore(&mut self, restore: Restore) -> Input {
        let Some(loaded) = restore.await else { return Input::Start };
        let Loaded { objects, version, age, is_recent, synced_by, restoring } = loaded;
        let witness = newest(&objects);
        let position = Position { partition: self.partition, version: version.clone() };
        self.queue.restore(objects, position, synced_by);
        shown(Arc::clone(&self.indexer), self.partition).await;
        drop(restoring);
        self.views.fill_again();
        self.packer.wake();
        self.reason = Some(RelistReason::Restored);
        self.restored = Some((version.clone(), age));
        self.set_status(InformerStatus::Restored { version: version.clone(), age });
        Input::Restored(RestoredState { version, witness, is_recent, now: Instant::now() })
    }

    /// Requests one object.
    pub(super) async fn verify(&mut self, key: ObjectKey) -> Input {
        let deadline = self.deadlines.probe;
        let found = time::timeout(deadline, self.source.get(&key)).await;
        match found.unwrap_or_else(|_| Err(silent("response", deadline, &key.as_str().into()))) {
            Ok(found) => {
                let found = found.map(|object| (object.uid(), object.resource_version().clone()));
                Input::Verified { found, now: Instant::now() }
            }
            Err(error) => {
                let failure = Failure::of(&error);
                self.note_watch_failure(failure.class, &error);
                self.telemetry.failed(&InformerError::Get(error));
                Input::Failed(failure)
            }
        }
    }

    /// The restored state, with the changes since then that are queued, is that of the server.
    pub(super) fn proven(&mut self) {
        if let Some(version) = self.machine.position().cloned() {
            self.queue.confirm(Position { partition: self.partition, version });
        }
        if self.stream.is_some() || !self.health.is_watch_failing() {
            self.recovered(self.machine.position().cloned());
        }
    }
}

/// Resolves when the store shows the restored state.
async fn shown(indexer: Arc<Indexer>, partition: Partition) {
    loop {
        let mut published = std::pin::pin!(indexer.published());
        // Registered before the state is read, so that no publication in between is missed.
        published.as_mut().enable();
        if indexer.look(|snapshot| snapshot.is_partition_filled(partition)) {
            return;
        }
        published.await;
    }
}

/// The object with the highest version.
fn newest(objects: &[AnyObject]) -> Option<Witness> {
    let newest = objects.iter().max_by_key(|object| object.resource_version().number())?;
    let (key, uid) = (newest.key().clone(), newest.uid());
    Some(Witness { key, uid, version: newest.resource_version().clone() })
}
