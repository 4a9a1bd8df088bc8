//! The task that keeps the packed content of cached objects small, and fills in views.
//!
//! A task of its own, and not a duty of the controller between two batches: packing objects again takes far longer than
//! applying a batch, and garbage also appears without a batch, when a reader drops an old snapshot.

use crate::{
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
/// Packed bytes that one step of repacking looks at: a few objects, or less than a millisecond.
const REPACK_STEP: usize = 2 << 10;
/// Repacking pauses after each step for this many times as long as the step took: it uses a tenth of a processor at most.
const REPACK_PAUSE: u32 = 9;
/// Repacking starts when few objects arrived for this long, and not while a list is read.
const QUIET: Duration = Duration::from_secs(10);
/// The part of all packed bytes that may arrive in that time, in percent.
const QUIET_PERCENT: usize = 5;

/// What the task works on.
pub(crate) struct Upkeep {
    pub(crate) packer: Arc<Packer>,
    pub(crate) views: Arc<Views>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) fail_points: FailPoints,
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
        let Self { packer, views, .. } = self;
        loop {
            self.work().await;
            supervision.recovered(&TaskId::Compaction);
            packer.compaction_due_or(|| packer.is_repacking_due() || views.is_filling_due()).await;
            if packer.is_repacking_due() {
                self.quiet().await;
                self.repack().await;
            }
        }
    }

    /// Does what readers may wait for: fills in views, and removes garbage until there is little of it.
    async fn work(&self) {
        self.views.fill(&self.indexer).await;
        while self.packer.compact(COMPACT_STEP) {
            self.fail_points.at(FailPoint::Compacting);
            yield_now().await;
        }
    }

    /// Waits until few objects arrive. Works meanwhile.
    async fn quiet(&self) {
        let packer = &self.packer;
        loop {
            let before = packer.loose_bytes();
            let end = time::after(Instant::now(), QUIET);
            loop {
                tokio::select! {
                    biased;
                    () = time::sleep_until(end) => break,
                    () = packer.compaction_due_or(|| self.views.is_filling_due()) => self.work().await,
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
        self.packer.begin_repacking();
        loop {
            let start = Instant::now();
            if !self.packer.repack(REPACK_STEP) {
                return;
            }
            let pause = start.elapsed().saturating_mul(REPACK_PAUSE);
            self.work().await;
            if pause.is_zero() {
                // The clock stands still, in tests.
                yield_now().await;
            } else {
                time::sleep(pause).await;
            }
        }
    }
}
