//! The part of an informer that saves it, while the informer is built.

use super::{
    PersistStatus,
    belongs_to::{Refused, Subject},
    directory::LogSpec,
    load::{Loading, OpenedLog},
    options::Persistence,
    persister::{Persister, PersisterParts},
};
use crate::{
    controller::Controller,
    fail_point::FailPoints,
    indexer::Indexer,
    reflector::Restore,
    scope::{Partition, Partitions},
    telemetry::Telemetry,
};
use kube_informer_wire::{Origin, Packer};
use std::sync::Arc;
use tokio::sync::watch;

/// The logs of the partitions of an informer.
pub(crate) struct Setup {
    persistence: Persistence,
    specs: Vec<LogSpec>,
    /// Logs that are being opened, in the order of the partitions.
    opening: Vec<OpenedLog>,
    parts: SharedParts,
}

/// The parts of an informer that are used to load and to save.
#[derive(Clone)]
pub(crate) struct SharedParts {
    pub(crate) origin: Arc<Origin>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl Setup {
    pub(crate) fn new(
        persistence: Persistence,
        subject: &Subject<'_>,
        partitions: &Partitions,
        parts: SharedParts,
    ) -> Result<Self, Refused> {
        let namespaces = partitions.all().map(|partition| partitions.namespace(partition));
        let specs =
            namespaces.map(|namespace| subject.log(&persistence, namespace)).collect::<Result<_, _>>()?;
        Ok(Self { persistence, specs, opening: Vec::new(), parts })
    }

    /// Loads the saved state of a partition. To be called for all of them, in order.
    pub(crate) fn load(&mut self, partition: Partition, namespace: Option<&str>) -> Restore {
        let SharedParts { origin, packer, indexer, telemetry } = self.parts.clone();
        let (persistence, spec) = (self.persistence.clone(), self.specs[partition].clone());
        let namespace = namespace.map(str::to_owned);
        let loading = Loading { persistence, spec, namespace, packer, origin, indexer, telemetry };
        let (restore, opened) = loading.begin();
        self.opening.push(opened);
        restore
    }

    /// The task that saves the informer.
    pub(crate) fn persister(
        self,
        controller: Arc<Controller>,
        status: watch::Sender<PersistStatus>,
        rng: fastrand::Rng,
        fail_points: FailPoints,
    ) -> Persister {
        let SharedParts { origin, packer, telemetry, .. } = self.parts;
        let logs = self.specs.into_iter().zip(self.opening).collect();
        let persistence = self.persistence;
        status.send_replace(PersistStatus::Saving { version: None });
        Persister::new(PersisterParts {
            persistence,
            origin,
            packer,
            controller,
            telemetry,
            status,
            logs,
            rng,
            fail_points,
        })
    }
}
