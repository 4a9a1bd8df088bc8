//! The task that keeps the packed content of cached objects small, and fills in views.
//!
//! A task of its own, and not a duty of the controller between two batches: packing objects again takes far longer than
//! applying a batch, and garbage also appears without a batch, when a reader drops an old snapshot.

use crate::{
    disk::{self, DiskUpkeep},
    fail_point::{FailPoint, FailPoints},
    indexer::Indexer,
    supervision::{Restarts, Supervision, TaskId},
    time,
    views::Views,
};
use futures_util::FutureExt;
use kube_informer_wire::Packer;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{task::yield_now, time::Instant};

/// Packed bytes that one step of compaction looks at before other tasks of the thread run: some microseconds.
const COMPACT_STEP: usize = 16 << 10;
/// The same if content may have to be read from a file: in a thread for blocking work.
const DISK_STEP: usize = 256 << 10;
/// How long repacking pauses if content cannot be written to disk.
const CONGESTED: Duration = Duration::from_secs(1);
/// Packed bytes that one step of repacking looks at: a few objects, or less than a millisecond.
const REPACK_STEP: usize = 2 << 10;
/// Repacking pauses after each step for this many times as long as the step took: it uses a tenth of a processor at most.
const REPACK_PAUSE: u32 = 9;
/// Repacking starts when few objects arrived for this long: usually not while a list is read.
const QUIET: Duration = Duration::from_secs(10);
/// The part of all packed bytes that may arrive in that time, in percent.
const QUIET_PERCENT: usize = 5;
/// Repacking starts after that time passed this often, even if many objects arrive.
const PATIENCE: u32 = 12;

/// The parts that the task works on.
pub(crate) struct Upkeep {
    pub(crate) packer: Arc<Packer>,
    pub(crate) views: Arc<Views>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) disk: DiskUpkeep,
    pub(crate) fail_points: FailPoints,
    /// Whether operations that block run in this task, as simulations need it.
    pub(crate) inline: bool,
}

impl Upkeep {
    /// Runs until it is aborted, or panics while the informer is stopping.
    pub(crate) async fn run(self, supervision: Arc<Supervision>) {
        let mut restarts = Restarts::new(1);
        loop {
            restarts.started();
            let drive = AssertUnwindSafe(self.drive(&supervision));
            let Err(panic) = drive.catch_unwind().await else { return };
            let Some(restart) = supervision.panicked(&TaskId::Compaction, panic, &mut restarts) else {
                return;
            };
            supervision.wait(restart).await;
        }
    }

    async fn drive(&self, supervision: &Supervision) {
        let packer = &self.packer;
        loop {
            self.work().await;
            supervision.recovered(&TaskId::Compaction);
            self.work_due_or(|| packer.is_repacking_due()).await;
            if packer.is_repacking_due() {
                self.quiet().await;
                self.repack().await;
            }
        }
    }

    /// Resolves when [`work`](Self::work) has something to do, or `other` holds.
    async fn work_due_or(&self, other: impl Fn() -> bool) {
        let is_due = || self.is_filling_due() || self.disk.is_due() || other();
        tokio::select! {
            biased;
            () = self.packer.compaction_due_or(is_due) => {}
            () = time::sleep_until(self.disk.next_timer()) => {}
        }
    }

    /// Does what readers may wait for: moves restored content into memory, fills in views, writes to disk, and removes garbage
    /// until there is little of it.
    async fn work(&self) {
        self.fill_views().await;
        self.disk.work().await;
        while self.step(DISK_STEP, COMPACT_STEP, Packer::compact).await {
            self.fail_points.at(FailPoint::Compacting);
            self.disk.work().await;
            yield_now().await;
        }
        self.fill_views().await;
    }

    async fn fill_views(&self) {
        if self.is_filling_due() {
            self.views.fill(&self.indexer).await;
        }
    }

    /// Whether views are to be filled in, and can be now. Those of restored content are filled in when it is in memory: each
    /// would be read from its file otherwise, in a thread of the runtime.
    fn is_filling_due(&self) -> bool {
        self.views.is_filling_due() && (!self.packer.may_block() || self.packer.is_on_disk())
    }

    /// Does one step of compaction or repacking, of `blocking` or `quick` bytes. Returns whether more is to be done.
    async fn step(&self, blocking: usize, quick: usize, step: fn(&Packer, usize) -> bool) -> bool {
        if !self.packer.may_block() {
            return step(&self.packer, quick);
        }
        if self.inline {
            return step(&self.packer, blocking);
        }
        let packer = Arc::clone(&self.packer);
        disk::blocking(move || step(&packer, blocking)).await.unwrap_or_default()
    }

    /// Waits until few objects arrive, but not for ever. Works meanwhile.
    async fn quiet(&self) {
        let packer = &self.packer;
        for _ in 0..PATIENCE {
            let before = packer.loose_bytes();
            let end = time::after(Instant::now(), QUIET);
            loop {
                tokio::select! {
                    biased;
                    () = time::sleep_until(end) => break,
                    () = self.work_due_or(|| false) => self.work().await,
                }
            }
            let arrived = packer.loose_bytes().saturating_sub(before);
            if arrived <= packer.live_bytes() / 100 * QUIET_PERCENT {
                return;
            }
        }
    }

    /// Packs everything again, in a small part of the time. Works meanwhile.
    async fn repack(&self) {
        if self.packer.is_retraining_due() {
            let packer = Arc::clone(&self.packer);
            disk::blocking(move || packer.retrain()).await;
        }
        self.packer.begin_repacking();
        loop {
            let start = Instant::now();
            if !self.step(REPACK_STEP, REPACK_STEP, Packer::repack).await {
                return;
            }
            let pause = start.elapsed().saturating_mul(REPACK_PAUSE);
            self.work().await;
            if self.packer.is_congested() {
                time::sleep(CONGESTED).await;
            } else if pause.is_zero() {
                // The clock stands still, in tests.
                yield_now().await;
            } else {
                time::sleep(pause).await;
            }
        }
    }
}
