//! The parts of an informer that its tasks share.

use super::InformerBuilder;
use crate::{
    compaction::Upkeep,
    controller::Controller,
    delta_queue::DeltaQueue,
    disk::DiskUpkeep,
    fail_point::FailPoints,
    indexer::Indexer,
    persist::{Persistence, SharedParts},
    processor::Processor,
    refetch::Refetch,
    reflector::{Restore, Wiring},
    scope::{Partition, Partitions},
    status::InformerStatus,
    telemetry::Telemetry,
    transform::Transform,
    views::Views,
};
use kube_informer_wire::{ListWatch, Origin, Packer};
use std::sync::Arc;
use tokio::sync::watch;

/// The parts that reflectors, controller and upkeep of one informer share.
pub(super) struct Parts {
    pub(super) partitions: Partitions,
    pub(super) transform: Arc<Transform>,
    pub(super) packer: Arc<Packer>,
    pub(super) views: Arc<Views>,
    pub(super) telemetry: Arc<Telemetry>,
    origin: Arc<Origin>,
    queue: Arc<DeltaQueue>,
    indexer: Arc<Indexer>,
    refetch: Arc<Refetch>,
    fail_points: FailPoints,
    /// Whether operations that block run in the task that starts them.
    inline: bool,
}

impl Parts {
    pub(super) fn new(builder: &InformerBuilder) -> Self {
        let InformerBuilder { origin, name, scope, selection, .. } = builder;
        let partitions = Partitions::of_scope(scope);
        let hook = builder.hook.clone();
        Self {
            queue: Arc::new(DeltaQueue::new(partitions.clone(), builder.queue_bound)),
            indexer: Arc::new(Indexer::new(partitions.clone())),
            telemetry: Arc::new(Telemetry::new(name, origin.kind().clone(), scope, selection, hook)),
            packer: Arc::new(Packer::with_storage(builder.packing, builder.storage.clone())),
            transform: Arc::new(builder.transform.clone()),
            views: Arc::default(),
            refetch: Arc::new(Refetch::new(partitions.clone())),
            origin: Arc::clone(origin),
            fail_points: builder.fail_points.clone(),
            inline: builder.persistence.as_ref().is_some_and(Persistence::is_inline),
            partitions,
        }
    }

    /// The parts that are used to load and to save.
    pub(super) fn saved(&self) -> SharedParts {
        SharedParts {
            origin: Arc::clone(&self.origin),
            packer: Arc::clone(&self.packer),
            indexer: Arc::clone(&self.indexer),
            telemetry: Arc::clone(&self.telemetry),
        }
    }

    /// The connections of the reflector of one partition.
    pub(super) fn wiring(
        &self,
        partition: Partition,
        source: Arc<dyn ListWatch>,
        status: watch::Sender<InformerStatus>,
        restore: Option<Restore>,
    ) -> Wiring {
        Wiring {
            source,
            partition,
            namespace: self.partitions.namespace(partition).map(str::to_owned),
            queue: Arc::clone(&self.queue),
            indexer: Arc::clone(&self.indexer),
            transform: Arc::clone(&self.transform),
            packer: Arc::clone(&self.packer),
            views: Arc::clone(&self.views),
            refetch: Arc::clone(&self.refetch),
            telemetry: Arc::clone(&self.telemetry),
            status,
            restore,
            fail_points: self.fail_points.clone(),
        }
    }

    pub(super) fn upkeep(&self) -> Upkeep {
        Upkeep {
            packer: Arc::clone(&self.packer),
            views: Arc::clone(&self.views),
            indexer: Arc::clone(&self.indexer),
            disk: DiskUpkeep::new(&self.packer, &self.indexer, Arc::clone(&self.refetch), &self.telemetry),
            fail_points: self.fail_points.clone(),
            inline: self.inline,
        }
    }

    pub(super) fn controller(&self, processor: Processor) -> Controller {
        let (queue, indexer) = (Arc::clone(&self.queue), Arc::clone(&self.indexer));
        let (telemetry, packer) = (Arc::clone(&self.telemetry), Arc::clone(&self.packer));
        Controller::new(queue, indexer, processor, telemetry, packer)
            .views(Arc::clone(&self.views))
            .fail_points(self.fail_points.clone())
    }
}
