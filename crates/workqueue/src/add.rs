//! Options of an add.

use std::time::Duration;

use crate::priority::Priority;

/// Options of [`WorkQueue::add_with`](crate::WorkQueue::add_with). The default is a plain add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AddOptions {
    pub(crate) priority: Priority,
    pub(crate) after: Option<Duration>,
    pub(crate) rate_limited: bool,
}

impl AddOptions {
    /// A plain add: at once, with the default priority.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the priority.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Delays the key.
    pub fn after(self, delay: Duration) -> Self {
        Self { after: Some(delay), ..self }
    }

    /// Counts a failure of the key, and delays it as the rate limiter says. Together with [`after`](Self::after) the
    /// longer delay counts.
    pub fn rate_limited(self) -> Self {
        Self { rate_limited: true, ..self }
    }
}

impl From<Priority> for AddOptions {
    fn from(priority: Priority) -> Self {
        Self::new().priority(priority)
    }
}
