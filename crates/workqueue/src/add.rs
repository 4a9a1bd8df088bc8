//! How a key is added.

use std::time::Duration;

use crate::priority::Priority;

/// How [`WorkQueue::add_with`](crate::WorkQueue::add_with) adds a key; starts as a plain add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AddOptions {
    pub(crate) priority: Priority,
    pub(crate) after: Option<Duration>,
    pub(crate) rate_limited: bool,
}

impl AddOptions {
    /// At once, with the default priority.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this priority.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Not before `delay` has passed.
    pub fn after(self, delay: Duration) -> Self {
        Self { after: Some(delay), ..self }
    }

    /// Not before the rate limiter allows it; together with [`after`](Self::after) the longer delay counts.
    pub fn rate_limited(self) -> Self {
        Self { rate_limited: true, ..self }
    }
}

impl From<Priority> for AddOptions {
    fn from(priority: Priority) -> Self {
        Self::new().priority(priority)
    }
}
