//! The task that saves what changes.
//!
//! It compares the store with the state that it saved last. Snapshots of the store share what has not changed, so that this
//! takes time in proportion to the changes; there is no backlog that a slow disk could fill, and changes that come while it
//! writes become one write.

use super::{
    PersistStatus,
    directory::{LogSpec, RestoreTarget},
    load::OpenedLog,
    options::Persistence,
    partition_log::{PartitionLog, StateToSave},
};
use crate::{
    controller::Controller,
    fail_point::{FailPoint, FailPoints},
    indexer::{Contents, ContentsChange, Snapshot},
    reflector::Backoff,
    scope::Partition,
    supervision::{Restarts, Supervision, TaskId},
    telemetry::Telemetry,
    time,
};
use futures_util::FutureExt;
use kube_informer_wire::{Origin, Packer, ResourceVersion};
use std::{io, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

/// The shortest time between two writes. Changes in between become one write.
const WRITE_EVERY: Duration = Duration::from_millis(100);
/// The shortest time between two writes of a version without a change.
const POSITION_EVERY: Duration = Duration::from_secs(5);
/// The longest time between two attempts while the disk fails, without the jitter that doubles it at most.
const MAX_RETRY: Duration = Duration::from_secs(60);
/// How long a stop waits for the last write.
const LAST_WRITE: Duration = Duration::from_secs(10);

/// Saves the partitions of one informer.
///
/// 1. A log is only ever at a version that the store had, with all changes before it: both come from one snapshot.
/// 2. A partition that may show another history than the server has is not saved until it is confirmed.
/// 3. A failure is reported and retried with backoff. The next attempt writes a whole new log.
pub(crate) struct Persister {
    persistence: Persistence,
    origin: Arc<Origin>,
    packer: Arc<Packer>,
    controller: Arc<Controller>,
    telemetry: Arc<Telemetry>,
    status: watch::Sender<PersistStatus>,
    slots: Vec<Slot>,
    rng: fastrand::Rng,
    fail_points: FailPoints,
}

/// The parts of a [`Persister`].
pub(crate) struct PersisterParts {
    pub(crate) persistence: Persistence,
    pub(crate) origin: Arc<Origin>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) controller: Arc<Controller>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) status: watch::Sender<PersistStatus>,
    /// The log of each partition.
    pub(crate) logs: Vec<(LogSpec, OpenedLog)>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) fail_points: FailPoints,
}

/// The log of one partition.
struct Slot {
    partition: Partition,
    spec: LogSpec,
    /// The log while it is being loaded.
    opening: Option<OpenedLog>,
    /// `None` while it is written to, and if it could not be opened.
    log: Option<Box<dyn PartitionLog>>,
    /// What the log has; `None` if that is unknown.
    saved: Option<Saved>,
    /// When the log was last written to.
    written: Option<Instant>,
    backoff: Backoff,
    /// No attempt before this time.
    retry: Option<Instant>,
}

struct Saved {
    contents: Arc<Contents>,
    version: Option<ResourceVersion>,
}

impl Saved {
    /// Whether a partition has changes that are not saved. All partitions are in one store: most changes are those of others.
    fn lacks(&self, contents: &Contents, partition: Partition) -> bool {
        !self.contents.is_same(contents)
            && self.contents.diff(contents).any(|change| {
                let (ContentsChange::Put(object) | ContentsChange::Removed(object)) = change;
                contents.partitions().contains(partition, object.key())
            })
    }
}

/// Whether the informer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Change,
    Stop,
}

impl Persister {
    pub(crate) fn new(parts: PersisterParts) -> Self {
        let PersisterParts { persistence, origin, packer, controller, telemetry, status, .. } = parts;
        let slot = |(partition, (spec, opening))| Slot {
            partition,
            spec,
            opening: Some(opening),
            log: None,
            saved: None,
            written: None,
            backoff: Backoff::default().range(Duration::from_secs(1), MAX_RETRY),
            retry: None,
        };
        let slots = parts.logs.into_iter().enumerate().map(slot).collect();
        let (rng, fail_points) = (parts.rng, parts.fail_points);
        Self { persistence, origin, packer, controller, telemetry, status, slots, rng, fail_points }
    }

    /// Runs until `stop`, and then saves the last state.
    pub(crate) async fn run(mut self, stop: CancellationToken, supervision: Arc<Supervision>) {
        let mut restarts = Restarts::new(2);
        loop {
            restarts.started();
            let drive = AssertUnwindSafe(self.drive(&stop, &supervision));
            let Err(panic) = drive.catch_unwind().await else { return };
            let Some(restart) = supervision.panicked(&TaskId::Persister, panic, &mut restarts) else {
                return;
            };
            supervision.wait(restart).await;
        }
    }

    async fn drive(&mut self, stop: &CancellationToken, supervision: &Supervision) {
        self.take_logs().await;
        loop {
            let indexer = Arc::clone(&self.controller.indexer);
            let mut published = std::pin::pin!(indexer.published());
            // Registered before the state is read, so that no publication in between is missed.
            published.as_mut().enable();
            let occasion = if stop.is_cancelled() { Occasion::Stop } else { Occasion::Change };
            let next = match occasion {
                Occasion::Change => self.save(occasion).await,
                Occasion::Stop => {
                    let _ = time::timeout(LAST_WRITE, self.save(occasion)).await;
                    return;
                }
            };
            supervision.recovered(&TaskId::Persister);
            tokio::select! {
                biased;
                () = stop.cancelled() => continue,
                () = published => {}
                () = time::sleep_until(next) => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = time::sleep(WRITE_EVERY) => {}
            }
        }
    }

    /// Waits until the saved state of each partition is loaded.
    async fn take_logs(&mut self) {
        for slot in &mut self.slots {
            if let Some(opening) = slot.opening.take() {
                slot.log = opening.await.ok();
            }
        }
    }

    /// Saves what has changed. Returns when to try again without a change.
    async fn save(&mut self, occasion: Occasion) -> Option<Instant> {
        let mut next = None;
        for at in 0..self.slots.len() {
            let due = self.save_partition(at, occasion).await;
            next = [next, due].into_iter().flatten().min();
        }
        next
    }

    async fn save_partition(&mut self, at: usize, occasion: Occasion) -> Option<Instant> {
        let snapshot = self.controller.indexer.snapshot();
        let slot = &mut self.slots[at];
        let version = snapshot.position(slot.partition)?.clone();
        if let Some(contents) = self.controller.take_restored(slot.partition) {
            slot.saved = Some(Saved { contents, version: None });
        }
        let contents = snapshot.contents();
        let has_changed = slot.saved.as_ref().is_none_or(|saved| saved.lacks(&contents, slot.partition));
        if let Some(saved) = slot.saved.as_mut().filter(|_| !has_changed) {
            // It may have the same objects of this partition, and others of another one.
            saved.contents = Arc::clone(&contents);
        }
        let has_advanced = slot.saved.as_ref().is_none_or(|saved| saved.version.as_ref() != Some(&version));
        if !has_changed && !has_advanced {
            return None;
        }
        let now = Instant::now();
        let pause = if has_changed { Duration::ZERO } else { POSITION_EVERY };
        let due = slot.written.and_then(|written| time::after(written, pause));
        let due = [due, slot.retry].into_iter().flatten().max().filter(|due| *due > now);
        if due.is_some() && occasion == Occasion::Change {
            return due;
        }
        if slot.log.is_none() && occasion == Occasion::Stop {
            // A log that could not be opened while there was time is not worth a delay now.
            return None;
        }
        drop(snapshot);
        self.fail_points.at(FailPoint::Saving);
        let state = self.state(at, contents, version);
        let saved = Saved { contents: Arc::clone(&state.contents), version: Some(state.version.clone()) };
        let written = self.write(at, state).await;
        self.written(at, written, saved)
    }

    fn state(&self, at: usize, contents: Arc<Contents>, version: ResourceVersion) -> StateToSave {
        StateToSave {
            partition: self.slots[at].partition,
            contents,
            version,
            saved_at: (self.persistence.clock)(),
            paths: self.controller.indexer.look(Snapshot::field_paths),
            packer: Arc::clone(&self.packer),
            kube_system: self.persistence.cluster.known_kube_system(),
        }
    }

    /// Writes a state to the log of a partition.
    async fn write(&mut self, at: usize, state: StateToSave) -> io::Result<()> {
        let target = RestoreTarget {
            // What a log has that could not be opened before is not used: these objects are not shown.
            packer: Arc::new(Packer::new(kube_informer_wire::Packing::Raw)),
            origin: Arc::clone(&self.origin),
            paths: Vec::new(),
            namespace: None,
            kube_system: None,
        };
        let slot = &mut self.slots[at];
        let before = slot.saved.take().map(|saved| saved.contents);
        let (log, spec) = (slot.log.take(), slot.spec.clone());
        let directory = Arc::clone(&self.persistence.directory);
        let write = move || {
            let (mut log, before) = match log {
                Some(log) => (log, before),
                None => (directory.open(&spec, &target)?.log, None),
            };
            let written = match &before {
                Some(before) => log.append(before, &state),
                None => log.rewrite(&state),
            };
            let written = match written {
                Ok(()) if log.is_rewrite_due() => log.rewrite(&state),
                written => written,
            };
            Ok((log, written))
        };
        let written: Option<io::Result<_>> = self.persistence.blocking(write).await;
        let (log, written) = written.unwrap_or_else(|| Err(io::Error::other("writing panicked")))?;
        self.slots[at].log = Some(log);
        written
    }

    /// Takes note of a write. Returns when to try again, if it failed.
    fn written(&mut self, at: usize, written: io::Result<()>, saved: Saved) -> Option<Instant> {
        let is_only = self.slots.len() == 1;
        let slot = &mut self.slots[at];
        slot.written = Some(Instant::now());
        match written {
            Ok(()) => {
                let version = saved.version.clone().filter(|_| is_only);
                (slot.saved, slot.retry) = (Some(saved), None);
                slot.backoff.rewind();
                self.telemetry.persisted();
                if self.slots.iter().all(|slot| slot.retry.is_none()) {
                    self.status.send_replace(PersistStatus::Saving { version });
                }
                None
            }
            Err(error) => {
                slot.retry = time::after(Instant::now(), slot.backoff.next(None, &mut self.rng));
                let retry = slot.retry;
                let why = error.to_string();
                self.status.send_modify(|status| {
                    let since = match status {
                        PersistStatus::Failing { since, .. } => *since,
                        _ => Instant::now(),
                    };
                    *status = PersistStatus::Failing { since, why: why.clone() };
                });
                self.telemetry.persist_failed(why);
                retry
            }
        }
    }
}
