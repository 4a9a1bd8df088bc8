//! What this process holds: tasks, files and sockets, memory, processor time.

use anyhow::Context;

/// Tasks and open files of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) tasks: usize,
    pub(crate) files: usize,
}

impl Held {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        // One of them is the folder that is being read.
        let files = std::fs::read_dir("/proc/self/fd").context("this needs Linux")?.count() - 1;
        Ok(Self { tasks, files })
    }

    /// Whether nothing has been added.
    pub(crate) fn is_within(self, before: Self) -> bool {
        self.tasks <= before.tasks && self.files <= before.files
    }
}

/// Resident memory of this process, in bytes.
pub(crate) fn rss() -> anyhow::Result<u64> {
    status("self", "VmRSS:")
}

/// Resident memory of another process, in bytes.
pub(crate) fn rss_of(id: u32) -> anyhow::Result<u64> {
    status(&id.to_string(), "VmRSS:")
}

/// The most resident memory of this process since the last reset, in bytes.
pub(crate) fn peak() -> anyhow::Result<u64> {
    status("self", "VmHWM:")
}

pub(crate) fn reset_peak() -> anyhow::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("this needs Linux")
}

/// Processor time of this process so far, in seconds.
pub(crate) fn cpu() -> anyhow::Result<f64> {
    /// Ticks of the processor time that the kernel reports, a second: 100 wherever Linux runs.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").context("this needs Linux")?;
    // The name of the program stands in brackets and may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("cannot read the processor time")?;
    Ok((user + system) / TICKS)
}

fn status(process: &str, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("this needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
