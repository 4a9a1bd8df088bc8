//! Resources of this process: tasks, open files and sockets, memory, CPU time.

use anyhow::Context;

/// Tasks and open files of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    pub(crate) tasks: usize,
    pub(crate) files: usize,
}

impl ResourceUse {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        // One of them is the directory being read.
        let files = std::fs::read_dir("/proc/self/fd")
            .context("cannot read /proc; this program needs Linux")?
            .count()
            - 1;
        Ok(Self { tasks, files })
    }

    /// Returns whether it has no more tasks and files than before.
    pub(crate) fn is_at_most(self, before: Self) -> bool {
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

/// Peak resident memory of another process, in bytes.
pub(crate) fn peak_of(id: u32) -> anyhow::Result<u64> {
    status(&id.to_string(), "VmHWM:")
}

/// Peak resident memory of this process since the last reset, in bytes.
pub(crate) fn peak() -> anyhow::Result<u64> {
    status("self", "VmHWM:")
}

pub(crate) fn reset_peak() -> anyhow::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("cannot read /proc; this program needs Linux")
}

/// CPU time of this process so far, in seconds.
pub(crate) fn cpu() -> anyhow::Result<f64> {
    /// Ticks per second of the CPU times in `/proc`: 100 on all architectures of Linux.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat =
        std::fs::read_to_string("/proc/self/stat").context("cannot read /proc; this program needs Linux")?;
    // The program name in parentheses may contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("cannot parse the CPU time in /proc/self/stat")?;
    Ok((user + system) / TICKS_PER_SECOND)
}

fn status(process: &str, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .context("cannot read /proc; this program needs Linux")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .with_context(|| format!("no {field} in /proc/{process}/status"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
