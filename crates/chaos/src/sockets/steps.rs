//! What is done to a world.

/// One thing that is done to a world. After each, everything comes to rest and is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// Connections fare badly, handlers and informers come and go.
    Storm,
    /// SIGSTOP for longer than clients tolerate, then SIGCONT.
    Pause,
    /// SIGKILL; what comes back knows nothing.
    Kill,
    /// SIGTERM; what comes back, on the same port, serves another state.
    Replace,
    /// SIGKILL; what comes back goes on with the same etcd.
    KillOverEtcd,
    /// etcd is killed under the server, and comes back.
    KillEtcd,
    /// What etcd remembers of the past is dropped while the server is away.
    Compact,
}

use Step::{Compact, Kill, KillEtcd, KillOverEtcd, Pause, Replace, Storm};

impl Step {
    /// Steps of a world in a long run.
    pub(super) const LENGTH: usize = 8;

    /// Whether it needs a server on etcd.
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

    /// Steps at random.
    pub(super) fn draw(on_etcd: bool, rng: &mut fastrand::Rng) -> Vec<Self> {
        let possible = Self::possible(on_etcd);
        (0..Self::LENGTH).map(|_| possible[rng.usize(..possible.len())]).collect()
    }
}
