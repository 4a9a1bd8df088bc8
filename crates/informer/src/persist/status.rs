//! Whether a cache is being saved.

use kube_informer_wire::ResourceVersion;
use std::fmt;
use tokio::time::Instant;

/// Whether the cache of an informer is being saved. A failure affects nothing but the next start.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum PersistStatus {
    /// The informer was built without [`PersistOptions`](crate::PersistOptions).
    #[default]
    Off,
    /// The informer is not saved, although it was built with options for it.
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// Changes are saved as they arrive.
    Saving {
        /// The resource version that was saved last; `None` if there is none yet, or if the informer covers several namespaces.
        version: Option<ResourceVersion>,
    },
    /// The last attempt to save failed. What was saved before stays as it was.
    Failing {
        /// Since when.
        since: Instant,
        /// The failure.
        why: String,
    },
}

impl fmt::Display for PersistStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Refused { why } => write!(f, "refused: {why}"),
            Self::Saving { version: Some(version) } => write!(f, "saved at version {version}"),
            Self::Saving { version: None } => f.write_str("saving"),
            Self::Failing { since, why } => write!(f, "failing for {:.0?}: {why}", since.elapsed()),
        }
    }
}
