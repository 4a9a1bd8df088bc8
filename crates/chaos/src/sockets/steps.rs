//! The steps of a world.

/// A disruption of a world. After each, the world settles and is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// Faults in connections; handlers and informers are removed and added.
    Storm,
    /// SIGSTOP for longer than the timeouts of clients, then SIGCONT.
    Pause,
    /// SIGKILL, then restart with an empty store.
    Kill,
    /// SIGTERM, then start of a server with other data on the same port.
    Replace,
    /// SIGKILL, then restart on the same etcd.
    KillOverEtcd,
    /// SIGKILL of etcd while the server runs, then restart of etcd.
    KillEtcd,
    /// Compaction of etcd while the server is down.
    Compact,
}

use Step::{Compact, Kill, KillEtcd, KillOverEtcd, Pause, Replace, Storm};

impl Step {
    /// The number of steps of a world in a long run.
    pub(super) const COUNT: usize = 8;

    /// Returns whether it needs a server on etcd.
    pub(super) fn is_on_etcd(self) -> bool {
        matches!(self, KillOverEtcd | KillEtcd | Compact)
    }

    fn possible(on_etcd: bool) -> &'static [Self] {
        if on_etcd {
            &[Storm, Pause, KillOverEtcd, KillEtcd, Compact]
        } else {
            &[Storm, Storm, Pause, Kill, Replace]
        }
    }

    /// Each step once.
    pub(super) fn each(on_etcd: bool) -> Vec<Self> {
        if on_etcd { vec![KillOverEtcd, KillEtcd, Compact] } else { vec![Storm, Pause, Kill, Replace] }
    }

    /// Random steps.
    pub(super) fn random(on_etcd: bool, rng: &mut fastrand::Rng) -> Vec<Self> {
        let possible = Self::possible(on_etcd);
        (0..Self::COUNT).map(|_| possible[rng.usize(..possible.len())]).collect()
    }
}
