//! The demo as lines, for pipes and logs.

use super::{
    actions::{Action, Actions},
    sample::{Observer, Sample},
};
use crate::table::bytes;
use std::{
    io::{self, Write},
    time::Duration,
};

const EVERY: Duration = Duration::from_secs(1);
/// Actions that are carried out in turn, because there are no keys to press.
const SCRIPT: [Action; 5] = [
    Action::CutWatches,
    Action::ExpireHistory,
    Action::StallHandler,
    Action::StallHandler,
    Action::FailWrites,
];
const LINES_PER_ACTION: usize = 3;

/// Prints a line every second, with notable events, until dropped; then a summary.
pub(crate) async fn show(observer: Observer, mut actions: Actions) -> anyhow::Result<()> {
    let mut plain = Plain { observer, printed: 0 };
    let mut ticks = tokio::time::interval(EVERY);
    for line in 0.. {
        ticks.tick().await;
        plain.print()?;
        if line % LINES_PER_ACTION == LINES_PER_ACTION - 1 {
            actions.run(SCRIPT[line / LINES_PER_ACTION % SCRIPT.len()]).await;
        }
    }
    Ok(())
}

struct Plain {
    observer: Observer,
    /// Number of journal lines seen.
    printed: usize,
}

impl Plain {
    fn print(&mut self) -> io::Result<()> {
        let sample = self.observer.sample(0);
        let (news, printed) = self.observer.journal.since(self.printed);
        self.printed = printed;
        let mut out = io::stdout().lock();
        // Every pod would be too much to read.
        for line in news.iter().filter(|line| line.starts_with(['»', '!']) || line.contains("tombstone")) {
            writeln!(out, "      {line}")?;
        }
        writeln!(out, "{}", line(&sample))?;
        out.flush()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // The reader may have closed the pipe.
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
        "{:>4.0}s {} | queue {} ready, {} retries",
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
    text + &format!("  {} handlers, {coalesced} events coalesced\n", sample.handlers.len())
}
