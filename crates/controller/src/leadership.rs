//! Whether this process holds a lease now.

use crate::clock::BootClock;
use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// This process does not hold the lease, or not for long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold its lease, or it expires within {margin:?}")]
#[non_exhaustive]
pub struct NotLeading {
    /// How long the lease had to be valid.
    pub margin: Duration,
}

/// A lease as its holder sees it. Cloning is a reference count.
///
/// The lease is valid from the moment at which its last renewal was *sent*, for its duration. Others count from the moment at
/// which they see the renewal, which is later, so they do not take it before it has ended here. The clock also counts the time
/// in which the machine is suspended.
#[derive(Clone)]
pub struct Leadership(Arc<Lease>);

struct Lease {
    clock: BootClock,
    /// In nanoseconds of the clock; zero if the lease is not held.
    valid_until: AtomicU64,
}

impl Leadership {
    /// A lease that is not held.
    pub(crate) fn none(clock: BootClock) -> Self {
        Self(Arc::new(Lease { clock, valid_until: AtomicU64::new(0) }))
    }

    /// The lease was renewed until this time of the clock.
    pub(crate) fn set_valid_until(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.valid_until.store(nanos, Ordering::SeqCst);
    }

    /// The lease is not held any more.
    pub(crate) fn end(&self) {
        self.0.valid_until.store(0, Ordering::SeqCst);
    }

    /// Checks that the lease is held, and for at least `margin` from now.
    pub fn check(&self, margin: Duration) -> Result<(), NotLeading> {
        let until = Duration::from_nanos(self.0.valid_until.load(Ordering::SeqCst));
        match self.0.clock.now().saturating_add(margin) < until {
            true => Ok(()),
            false => Err(NotLeading { margin }),
        }
    }

    /// Whether the lease is held.
    pub fn is_leading(&self) -> bool {
        self.check(Duration::ZERO).is_ok()
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leadership({})", if self.is_leading() { "leading" } else { "not leading" })
    }
}

/// The lease that the writes of a controller need; none by default.
#[derive(Debug, Default)]
pub(crate) struct LeaseGate(OnceLock<Leadership>);

impl LeaseGate {
    /// Writes need this lease from now on. A second lease is ignored.
    pub(crate) fn set(&self, leadership: Leadership) {
        let _ = self.0.set(leadership);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Checks that a write may be sent whose request takes up to `margin`.
    pub(crate) fn check(&self, margin: Duration) -> Result<(), NotLeading> {
        self.0.get().map_or(Ok(()), |leadership| leadership.check(margin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_must_be_valid_for_longer_than_the_margin() {
        let now = Arc::new(AtomicU64::new(100));
        let time = Arc::clone(&now);
        let clock = BootClock::new(move || Duration::from_secs(time.load(Ordering::SeqCst)));
        let (leadership, gate) = (Leadership::none(clock), LeaseGate::default());
        assert!(gate.check(Duration::MAX).is_ok(), "no lease is needed");
        gate.set(leadership.clone());
        assert!(gate.check(Duration::ZERO).is_err());
        leadership.set_valid_until(Duration::from_secs(115));
        assert!(gate.check(Duration::from_secs(14)).is_ok());
        assert!(gate.check(Duration::from_secs(15)).is_err(), "a request of 15 s may end after the lease");
        // The machine was suspended.
        now.store(116, Ordering::SeqCst);
        assert!(gate.check(Duration::ZERO).is_err() && !leadership.is_leading());
        leadership.set_valid_until(Duration::from_secs(130));
        assert!(leadership.is_leading());
        leadership.end();
        assert!(!leadership.is_leading());
    }
}
