//! Loading the saved state of a partition when its informer starts.

use super::{
    directory::{LogSpec, Opened, RestoreTarget, SavedState},
    options::Persistence,
    partition_log::PartitionLog,
};
use crate::{
    delta_fifo::SyncedBy,
    indexer::Indexer,
    reflector::{Loaded, Restore},
    telemetry::Telemetry,
};
use futures_util::FutureExt;
use kube_informer_wire::{Origin, Packer};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;

/// The parts that load the saved state of a partition.
pub(crate) struct Loading {
    pub(crate) persistence: Persistence,
    pub(crate) spec: LogSpec,
    pub(crate) namespace: Option<String>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// The log of a partition, once it is opened.
pub(crate) type OpenedLog = oneshot::Receiver<Box<dyn PartitionLog>>;

impl Loading {
    /// A future that loads the state, and the log that it opens.
    pub(crate) fn begin(self) -> (Restore, OpenedLog) {
        let (opened, receiver) = oneshot::channel();
        (self.load(opened).boxed(), receiver)
    }

    async fn load(self, opened: oneshot::Sender<Box<dyn PartitionLog>>) -> Option<Loaded> {
        let Self { persistence, spec, namespace, packer, origin, indexer, telemetry } = self;
        let kube_system = persistence.cluster.kube_system().await;
        // Indexes that were added before the start are filled from saved fields.
        let paths = indexer.snapshot().field_paths();
        let restoring = packer.restoring();
        let target = RestoreTarget { packer, origin, paths, namespace, kube_system };
        let directory = Arc::clone(&persistence.directory);
        let Opened { log, state, discarded } =
            match persistence.blocking(move || directory.open(&spec, &target)).await {
                Some(Ok(opened)) => opened,
                Some(Err(error)) => {
                    telemetry.not_restored(&error.to_string());
                    return None;
                }
                None => {
                    telemetry.not_restored("loading it panicked");
                    return None;
                }
            };
        // It has no receiver if the informer is stopped meanwhile.
        let _ = opened.send(log);
        if let Some(why) = discarded {
            telemetry.not_restored(&why);
        }
        let SavedState { objects, version, saved_at } = state?;
        let age = (persistence.clock)().duration_since(saved_at);
        // A state from the future was saved with another clock: how old it is, is unknown.
        let is_recent = age.as_ref().is_ok_and(|age| *age <= persistence.resume_within);
        let age = age.unwrap_or(Duration::ZERO);
        let synced_by = if persistence.trust_restored { SyncedBy::Trust } else { SyncedBy::Proof };
        Some(Loaded { objects, version, age, is_recent, synced_by, restoring })
    }
}
