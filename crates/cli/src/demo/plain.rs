//! The demo as lines, for pipes and logs.

use super::{
    sample::{Observer, Sample},
    switches::{Switch, Switches},
};
use crate::watch::bytes;
use std::{
    io::{self, Write},
    time::Duration,
};

const EVERY: Duration = Duration::from_secs(1);
/// What happens by itself, since nobody presses keys: one of these every few lines.
const PROGRAMME: [Switch; 5] = [
    Switch::CutWatches,
    Switch::ExpireHistory,
    Switch::StallHandler,
    Switch::StallHandler,
    Switch::FailWrites,
];
const LINES_PER_ACT: usize = 3;

/// Prints a line a second, and what happened in between, until dropped; then a summary.
pub(crate) async fn show(observer: Observer, mut switches: Switches) -> anyhow::Result<()> {
    let mut plain = Plain { observer, told: 0 };
    let mut ticks = tokio::time::interval(EVERY);
    for line in 0.. {
        ticks.tick().await;
        plain.tell()?;
        if line % LINES_PER_ACT == LINES_PER_ACT - 1 {
            switches.turn(PROGRAMME[line / LINES_PER_ACT % PROGRAMME.len()]).await;
        }
    }
    Ok(())
}

struct Plain {
    observer: Observer,
    /// Journal lines told.
    told: usize,
}

impl Plain {
    fn tell(&mut self) -> io::Result<()> {
        let sample = self.observer.sample(0);
        let (news, told) = self.observer.journal.since(self.told);
        self.told = told;
        let mut out = io::stdout().lock();
        // Every single pod would be too much to read; what is out of the ordinary is not.
        for line in news.iter().filter(|line| line.starts_with(['»', '!']) || line.contains("tombstone")) {
            writeln!(out, "      {line}")?;
        }
        writeln!(out, "{}", line(&sample))?;
        out.flush()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // Nobody may be reading any more.
        let _ = io::stdout().lock().write_all(summary(&self.observer.sample(0)).as_bytes());
    }
}

fn line(sample: &Sample) -> String {
    let informers: Vec<String> = sample
        .informers
        .iter()
        .map(|row| format!("{} {} {} ({:.0}/s)", row.objects, row.kind, row.status, row.rate))
        .collect();
    let queue = sample.queues.first().cloned().unwrap_or_default();
    format!(
        "{:>4.0}s {} | queue {} waiting, {} retries",
        sample.seconds,
        informers.join(", "),
        queue.depth,
        queue.retries
    )
}

fn summary(sample: &Sample) -> String {
    let mut text = format!("\nafter {:.0}s on {}:\n", sample.seconds, sample.url);
    for row in &sample.informers {
        text += &format!(
            "  {:<12} {:>4} objects in {:>9}, {:>5} events, {} lists, {} watches\n",
            row.kind,
            row.objects,
            bytes(row.bytes),
            row.events,
            row.lists,
            row.watches
        );
    }
    for row in &sample.queues {
        text += &format!("  queue {:<12} {:>5} keys, {} retries\n", row.name, row.adds, row.retries);
    }
    let coalesced: u64 = sample.handlers.iter().map(|row| row.coalesced).sum();
    text + &format!("  {} handlers, {coalesced} events absorbed into net effects\n", sample.handlers.len())
}
