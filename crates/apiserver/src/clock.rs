//! The time of day, for timestamps in objects.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// A source of the time of day; clones share it. Deadlines and timers use `tokio::time` instead.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn new(source: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        Timestamp::try_from((self.0)()).unwrap_or_default().as_second()
    }

    /// The current time as an RFC 3339 timestamp in seconds.
    pub(crate) fn timestamp(&self) -> String {
        self.timestamp_in(0)
    }

    /// The time `seconds` from now in that format; negative counts as zero.
    pub(crate) fn timestamp_in(&self, seconds: i64) -> String {
        let then = (self.0)() + Duration::from_secs(seconds.max(0).unsigned_abs());
        let then = Timestamp::try_from(then).unwrap_or_default();
        then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}
