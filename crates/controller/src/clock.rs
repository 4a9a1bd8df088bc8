//! Clocks.

use k8s_openapi::jiff::Timestamp;
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// Time since some moment, which also passes while the machine is suspended: leases expire on it.
///
/// The clocks of `std` and tokio do not count that time on every system, so a lease that expired during a suspension would look
/// valid afterwards.
#[derive(Clone)]
pub(crate) struct BootClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl BootClock {
    pub(crate) fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    pub(crate) fn now(&self) -> Duration {
        (self.0)()
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::new(since_boot)
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootClock")
    }
}

fn since_boot() -> Duration {
    // On Apple systems the monotonic clock counts the time of a suspension.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let id = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(id);
    let (seconds, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The time of day, for timestamps in objects. No decision depends on it.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    pub(crate) fn new(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::try_from((self.0)()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_does_not_go_back() {
        let clock = BootClock::default();
        let (first, second) = (clock.now(), clock.now());
        assert!(first > Duration::ZERO && second >= first);
    }
}
