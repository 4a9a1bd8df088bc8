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
    status("VmRSS:")
}

/// The most resident memory of this process so far, in bytes.
pub(crate) fn peak() -> anyhow::Result<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("this needs Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
