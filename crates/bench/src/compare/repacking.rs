//! The writer while its content is packed again.

use super::{
    number,
    stages::{Measurement, RATE, ROUNDS},
};
use crate::{process::Process, results::median};
use anyhow::ensure;
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// Time limit for the begin of repacking, which is ten to twenty seconds after the sync.
const BEGINS_WITHIN: Duration = Duration::from_secs(120);
/// The content has shrunk by this part: far more than that is repacked, and far more than updates add.
const SHRUNK: f64 = 0.001;

impl Measurement<'_> {
    /// The latency of the same writes to two informers: one that is settled, and one that is packing all content again.
    pub(super) fn repacking(&mut self, settled: &mut Process) -> anyhow::Result<()> {
        let mut repacking = self.start("pods", None)?;
        repacking.request("start")?;
        let mut content = await_shrinking(&mut repacking)?;
        let (mut p99_repacking, mut p99_settled) = (Vec::new(), Vec::new());
        while p99_repacking.len() < ROUNDS.0 {
            for process in [&mut *settled, &mut repacking] {
                process.request("reset")?;
            }
            let written = self.driver.request(&format!("rate {} {}", RATE.0, ROUNDS.1))?;
            let p99 = |process: &mut Process| {
                process.request(&format!("await {}", written["version"]))?;
                number(&process.request("latency")?, "p99_us")
            };
            let round = (p99(&mut repacking)?, p99(settled)?);
            let before = content;
            content = content_of(&mut repacking)?;
            if content > before * (1.0 - SHRUNK) {
                // Repacking ended during this round.
                break;
            }
            p99_repacking.push(round.0);
            p99_settled.push(round.1);
        }
        ensure!(!p99_repacking.is_empty(), "repacking took less than a round of {} seconds", ROUNDS.1);
        self.figures.put("repacking_rounds", p99_repacking.len());
        let (repacking, settled) = (median(p99_repacking), median(p99_settled));
        self.figures.put("writer_p99_us_repacking", repacking);
        self.figures.put("writer_p99_us_settled", settled);
        self.figures.put("repacking_p99_ratio", repacking / settled);
        Ok(())
    }
}

/// Waits until content shrinks. Returns its bytes.
fn await_shrinking(process: &mut Process) -> anyhow::Result<f64> {
    let (start, full) = (Instant::now(), content_of(process)?);
    loop {
        let content = content_of(process)?;
        if content < full * (1.0 - SHRUNK) {
            return Ok(content);
        }
        ensure!(start.elapsed() < BEGINS_WITHIN, "repacking does not begin");
        sleep(Duration::from_secs(1));
    }
}

fn content_of(process: &mut Process) -> anyhow::Result<f64> {
    number(&process.request("memory")?, "content")
}
