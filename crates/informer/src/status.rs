//! What an informer is doing, for people and for health endpoints.

use kube_informer_wire::ResourceVersion;
use std::{fmt, time::Duration};
use tokio::time::Instant;

/// What an informer, or one namespace of it, is doing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InformerStatus {
    /// Not started, or nothing has come back yet.
    Starting,
    /// The first list is coming in.
    Syncing {
        /// Objects so far.
        so_far: u64,
        /// Objects in all, when the server says.
        of: Option<u64>,
    },
    /// The cache follows the server.
    Live {
        /// The version it shows.
        version: Option<ResourceVersion>,
        /// When the server was heard of last.
        heard: Instant,
    },
    /// Something failed and will be tried again. A cache that was live still shows what it had.
    Retrying {
        /// Since when.
        since: Instant,
        /// What failed.
        why: String,
        /// When it is tried next; `None` is never.
        next: Option<Instant>,
    },
    /// The server refuses the caller (401, 403); tried again calmly.
    Denied {
        /// Since when.
        since: Instant,
        /// What the server said.
        why: String,
        /// When it is tried next; `None` is never.
        next: Option<Instant>,
    },
    /// The server does not know the kind (404); tried again calmly.
    Absent {
        /// Since when.
        since: Instant,
        /// What the server said.
        why: String,
        /// When it is tried next; `None` is never.
        next: Option<Instant>,
    },
    /// A task of the informer panicked or was aborted. A cache that was live still shows what it had.
    Failed {
        /// Since when.
        since: Instant,
        /// Which task, and how it failed.
        why: String,
        /// When the task is restarted; `None` if it is not, because the runtime it ran on was shut down.
        next: Option<Instant>,
    },
    /// Stopped for good.
    Stopped,
}

impl InformerStatus {
    /// Whether the cache follows the server.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live { .. })
    }

    /// Whether a task of the informer panicked or was aborted, and has not recovered.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// How long ago the server was heard of, while live.
    pub fn age(&self) -> Option<Duration> {
        match self {
            Self::Live { heard, .. } => Some(heard.elapsed()),
            _ => None,
        }
    }

    /// Since when it has been failing.
    pub fn failing_since(&self) -> Option<Instant> {
        match self {
            Self::Retrying { since, .. }
            | Self::Denied { since, .. }
            | Self::Absent { since, .. }
            | Self::Failed { since, .. } => Some(*since),
            _ => None,
        }
    }

    /// A word for metrics and comparisons; two statuses with the same word differ only in detail.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Syncing { .. } => "syncing",
            Self::Live { .. } => "live",
            Self::Retrying { .. } => "retrying",
            Self::Denied { .. } => "denied",
            Self::Absent { .. } => "absent",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether it says the same as another one, the time of the last sign of life aside.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == other || self.is_live() && other.is_live()
    }

    /// The one of several statuses to show for all of them; `None` of none.
    pub(crate) fn of_all(statuses: impl Iterator<Item = Self>) -> Option<Self> {
        statuses.max_by_key(Self::rank)
    }

    /// How much a status needs attention.
    fn rank(&self) -> u8 {
        match self {
            Self::Live { .. } => 0,
            Self::Syncing { .. } => 1,
            Self::Starting => 2,
            Self::Retrying { .. } => 3,
            Self::Absent { .. } => 4,
            Self::Denied { .. } => 5,
            Self::Failed { .. } => 6,
            Self::Stopped => 7,
        }
    }
}

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failing = |f: &mut fmt::Formatter<'_>, since: &Instant, why: &str, next: &Option<Instant>| {
            write!(f, "{} for {:.0?}, ", self.word(), since.elapsed())?;
            match next.map(|next| next.saturating_duration_since(Instant::now())) {
                Some(next) => write!(f, "next try in {next:.0?}: {why}"),
                None => write!(f, "no further try: {why}"),
            }
        };
        match self {
            Self::Starting | Self::Stopped => f.write_str(self.word()),
            Self::Syncing { so_far, of: Some(of) } => write!(f, "syncing, {so_far} of {of}"),
            Self::Syncing { so_far, of: None } => write!(f, "syncing, {so_far} so far"),
            Self::Live { version: Some(version), heard } => {
                write!(f, "live at version {version}, heard {:.0?} ago", heard.elapsed())
            }
            Self::Live { version: None, heard } => write!(f, "live, heard {:.0?} ago", heard.elapsed()),
            Self::Retrying { since, why, next }
            | Self::Denied { since, why, next }
            | Self::Absent { since, why, next }
            | Self::Failed { since, why, next } => failing(f, since, why, next),
        }
    }
}
