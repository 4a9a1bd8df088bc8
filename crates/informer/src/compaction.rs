//! The task that keeps the packed content of cached objects small.
//!
//! A task of its own, and not a duty of the controller between two batches: packing objects again takes far longer than
//! applying a batch, and garbage also appears without a batch, when a reader drops an old snapshot.

use crate::{
    fail_point::{FailPoint, FailPoints},
    supervision::{Restarts, Supervision, TaskId},
    time,
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

/// Runs until it is aborted, or panics while the informer is stopping.
pub(crate) async fn run(packer: Arc<Packer>, supervision: Arc<Supervision>, fail_points: FailPoints) {
    let mut restarts = Restarts::new(1);
    loop {
        restarts.started();
        let drive = AssertUnwindSafe(drive(&packer, &supervision, &fail_points));
        let Err(panic) = drive.catch_unwind().await else { return };
        let Some(restart) = supervision.panicked(&TaskId::Compaction, panic, &mut restarts) else { return };
        supervision.wait(restart).await;
    }
}

async fn drive(packer: &Packer, supervision: &Supervision, fail_points: &FailPoints) {
    loop {
        compact(packer, fail_points).await;
        supervision.recovered(&TaskId::Compaction);
        packer.upkeep_due().await;
        if packer.is_repacking_due() {
            quiet(packer, fail_points).await;
            repack(packer, fail_points).await;
        }
    }
}

/// Removes garbage until there is little of it.
async fn compact(packer: &Packer, fail_points: &FailPoints) {
    while packer.compact(COMPACT_STEP) {
        fail_points.at(FailPoint::Compacting);
        yield_now().await;
    }
}

/// Waits until few objects arrive. Removes garbage meanwhile.
async fn quiet(packer: &Packer, fail_points: &FailPoints) {
    loop {
        let before = packer.loose_bytes();
        let end = time::after(Instant::now(), QUIET);
        loop {
            tokio::select! {
                biased;
                () = time::sleep_until(end) => break,
                () = packer.compaction_due() => compact(packer, fail_points).await,
            }
        }
        let arrived = packer.loose_bytes().saturating_sub(before);
        if arrived <= packer.live_bytes() / 100 * QUIET_PERCENT {
            return;
        }
    }
}

/// Packs everything again, in a small part of the time. Removes garbage meanwhile.
async fn repack(packer: &Packer, fail_points: &FailPoints) {
    packer.begin_repacking();
    loop {
        let start = Instant::now();
        if !packer.repack(REPACK_STEP) {
            return;
        }
        let pause = start.elapsed().saturating_mul(REPACK_PAUSE);
        compact(packer, fail_points).await;
        if pause.is_zero() {
            // The clock stands still, in tests.
            yield_now().await;
        } else {
            time::sleep(pause).await;
        }
    }
}
