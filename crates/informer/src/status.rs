//! The status of an informer.

use kube_informer_wire::ResourceVersion;
use std::{fmt, time::Duration};
use tokio::time::Instant;

/// The status of an informer, or of one namespace of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum InformerStatus {
    /// Not started, or no response has arrived yet.
    Starting,
    /// The initial list is being received.
    Syncing {
        /// Objects so far.
        so_far: u64,
        /// Objects in all, if the server says so.
        of: Option<u64>,
    },
    /// The cache shows the state that an earlier process saved, and it is not known yet whether that is the state of the
    /// server. Reads are served, and handlers are called. It ends when the cache has reached a version that the server called
    /// current after this process started: from then on the cache is synced, and live.
    Restored {
        /// The resource version that was saved.
        version: ResourceVersion,
        /// How old the saved state was when it was restored.
        age: Duration,
    },
    /// The cache is up to date with the server.
    Live {
        /// The resource version it shows.
        version: Option<ResourceVersion>,
        /// When the server last sent something.
        last_contact: Instant,
    },
    /// A request failed and is retried. A cache that was live still shows its last state.
    Retrying {
        /// Since when.
        since: Instant,
        /// The failure.
        why: String,
        /// When it is retried; `None` is never.
        next: Option<Instant>,
    },
    /// The server denies access (401, 403). Retried with backoff.
    Denied {
        /// Since when.
        since: Instant,
        /// The response of the server.
        why: String,
        /// When it is retried; `None` is never.
        next: Option<Instant>,
    },
    /// The server does not have the resource (404). Retried with backoff.
    Absent {
        /// Since when.
        since: Instant,
        /// The response of the server.
        why: String,
        /// When it is retried; `None` is never.
        next: Option<Instant>,
    },
    /// A task of the informer panicked or was aborted. A cache that was live still shows its last state.
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
    /// Whether the cache is up to date with the server.
    pub fn is_live(&self) -> bool {
        matches!(self, Self::Live { .. })
    }

    /// Whether a task of the informer panicked or was aborted, and has not recovered.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// How long ago the server last sent something, while live.
    pub fn age(&self) -> Option<Duration> {
        match self {
            Self::Live { last_contact, .. } => Some(last_contact.elapsed()),
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

    /// The name of the variant in lower case, for logs and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Syncing { .. } => "syncing",
            Self::Restored { .. } => "restored",
            Self::Live { .. } => "live",
            Self::Retrying { .. } => "retrying",
            Self::Denied { .. } => "denied",
            Self::Absent { .. } => "absent",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Whether two statuses are equal, apart from version and last contact while live.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == other || self.is_live() && other.is_live()
    }

    /// The most urgent one of several statuses; `None` of none.
    pub(crate) fn of_all(statuses: impl Iterator<Item = Self>) -> Option<Self> {
        statuses.max_by_key(Self::rank)
    }

    /// How urgent a status is.
    fn rank(&self) -> u8 {
        match self {
            Self::Live { .. } => 0,
            Self::Restored { .. } => 1,
            Self::Syncing { .. } => 2,
            Self::Starting => 3,
            Self::Retrying { .. } => 4,
            Self::Absent { .. } => 5,
            Self::Denied { .. } => 6,
            Self::Failed { .. } => 7,
            Self::Stopped => 8,
        }
    }
}

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failing = |f: &mut fmt::Formatter<'_>, since: &Instant, why: &str, next: &Option<Instant>| {
            write!(f, "{} for {:.0?}, ", self.word(), since.elapsed())?;
            match next.map(|next| next.saturating_duration_since(Instant::now())) {
                Some(next) => write!(f, "next retry in {next:.0?}: {why}"),
                None => write!(f, "no further retry: {why}"),
            }
        };
        match self {
            Self::Starting | Self::Stopped => f.write_str(self.word()),
            Self::Syncing { so_far, of: Some(of) } => write!(f, "syncing, {so_far} of {of}"),
            Self::Syncing { so_far, of: None } => write!(f, "syncing, {so_far} so far"),
            Self::Restored { version, age } => {
                write!(f, "restored at version {version}, saved {age:.0?} before")
            }
            Self::Live { version: Some(version), last_contact } => {
                write!(f, "live at version {version}, last contact {:.0?} ago", last_contact.elapsed())
            }
            Self::Live { version: None, last_contact } => {
                write!(f, "live, last contact {:.0?} ago", last_contact.elapsed())
            }
            Self::Retrying { since, why, next }
            | Self::Denied { since, why, next }
            | Self::Absent { since, why, next }
            | Self::Failed { since, why, next } => failing(f, since, why, next),
        }
    }
}
