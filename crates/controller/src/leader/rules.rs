//! The decisions of a leader election, without requests and without a clock.

use k8s_openapi::{
    api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};
use std::time::Duration;

/// A lease as one process knows it.
///
/// Times are of the local boot clock. The times in the Lease are for people: they are written and never compared.
#[derive(Debug)]
pub(super) struct Rules {
    identity: String,
    lease_seconds: i32,
    /// The Lease as it was last read or written.
    observed: Option<LeaseSpec>,
    /// When `observed` was found to be different from what was known before.
    observed_at: Duration,
}

/// The next step after the Lease was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Next {
    /// The Lease does not exist.
    Create(LeaseSpec),
    /// The lease is free, expired, or held by this process.
    Update(LeaseSpec),
    /// Another process holds the lease.
    Held(String),
}

impl Rules {
    pub(super) fn new(identity: String, lease_seconds: i32) -> Self {
        Self { identity, lease_seconds, observed: None, observed_at: Duration::ZERO }
    }

    /// The last known holder; empty if there is none.
    pub(super) fn holder(&self) -> &str {
        self.observed.as_ref().map_or("", holder)
    }

    /// Whether the Lease names this process, as far as is known.
    pub(super) fn is_holder(&self) -> bool {
        self.holder() == self.identity
    }

    /// Whether a Lease names this process.
    pub(super) fn is_held_here(&self, found: &LeaseSpec) -> bool {
        holder(found) == self.identity
    }

    /// The Lease was found at this time. It is valid from the moment at which it was first found like this.
    pub(super) fn observe(&mut self, found: &LeaseSpec, now: Duration) {
        if self.observed.as_ref() != Some(found) {
            (self.observed, self.observed_at) = (Some(found.clone()), now);
        }
    }

    /// Whether the last known lease has not expired.
    fn is_valid(&self, now: Duration) -> bool {
        let seconds = self.observed.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        self.observed_at.saturating_add(duration) > now
    }

    /// The renewal of a lease that this process holds, for an update without reading it first; `None` if it has to be read.
    pub(super) fn renewal(&self, now: Duration, time: Timestamp) -> Option<LeaseSpec> {
        let observed = self.observed.as_ref()?;
        (self.is_holder() && self.is_valid(now)).then(|| self.held(observed, time))
    }

    /// Decides after the Lease was read.
    pub(super) fn read(&mut self, found: Option<&LeaseSpec>, now: Duration, time: Timestamp) -> Next {
        let Some(found) = found else { return Next::Create(self.fresh(time, 0)) };
        self.observe(found, now);
        if self.is_holder() {
            return Next::Update(self.held(found, time));
        }
        if !holder(found).is_empty() && self.is_valid(now) {
            return Next::Held(holder(found).to_owned());
        }
        let transitions = found.lease_transitions.unwrap_or(0).saturating_add(1);
        let mut spec = found.clone();
        let taken = self.fresh(time, transitions);
        spec.holder_identity = taken.holder_identity;
        spec.lease_duration_seconds = taken.lease_duration_seconds;
        spec.acquire_time = taken.acquire_time;
        spec.renew_time = taken.renew_time;
        spec.lease_transitions = taken.lease_transitions;
        Next::Update(spec)
    }

    /// The Lease was written; `sent` is the time before the request.
    pub(super) fn written(&mut self, spec: LeaseSpec, sent: Duration) {
        (self.observed, self.observed_at) = (Some(spec), sent);
    }

    /// The Lease after a release by its holder; `None` if this process does not hold it.
    pub(super) fn released(&self, found: &LeaseSpec, time: Timestamp) -> Option<LeaseSpec> {
        self.is_held_here(found).then(|| LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(MicroTime(time)),
            renew_time: Some(MicroTime(time)),
            ..found.clone()
        })
    }

    /// A lease that this process acquires.
    fn fresh(&self, time: Timestamp, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.lease_seconds),
            acquire_time: Some(MicroTime(time)),
            renew_time: Some(MicroTime(time)),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// A lease that this process holds and renews.
    fn held(&self, known: &LeaseSpec, time: Timestamp) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.lease_seconds),
            renew_time: Some(MicroTime(later(time, known.renew_time.as_ref()))),
            ..known.clone()
        }
    }
}

/// A time that is later than the last one as it is written, in microseconds. Others see a renewal only if the Lease differs from what
/// they saw before, also if the clock stands still or was set back.
fn later(time: Timestamp, last: Option<&MicroTime>) -> Timestamp {
    match last {
        Some(MicroTime(last)) if last.as_microsecond() >= time.as_microsecond() => {
            last.checked_add(Duration::from_micros(1)).unwrap_or(time)
        }
        _ => time,
    }
}

/// The holder of a Lease; empty if there is none.
fn holder(spec: &LeaseSpec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Timestamp = Timestamp::UNIX_EPOCH;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn lease(holder: &str, seconds: i32, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(MicroTime(TIME)),
            renew_time: Some(MicroTime(time(renewed))),
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        }
    }

    fn rules() -> Rules {
        Rules::new("me".to_owned(), 15)
    }

    #[test]
    fn a_lease_that_does_not_exist_is_created() {
        let Next::Create(spec) = rules().read(None, secs(0), time(7)) else { panic!("not created") };
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
        assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
        assert_eq!(spec.acquire_time, Some(MicroTime(time(7))));
    }

    #[test]
    fn a_held_lease_is_taken_after_its_own_duration_without_a_change() {
        let mut rules = rules();
        let held = Next::Held("other".to_owned());
        // The holder asks for 20 s, although this process would for 15 s.
        assert_eq!(rules.read(Some(&lease("other", 20, 0)), secs(100), TIME), held);
        assert_eq!(rules.read(Some(&lease("other", 20, 0)), secs(119), TIME), held);
        // A renewal starts the time again.
        assert_eq!(rules.read(Some(&lease("other", 20, 1)), secs(119), TIME), held);
        assert_eq!(rules.read(Some(&lease("other", 20, 1)), secs(138), TIME), held);
        let Next::Update(spec) = rules.read(Some(&lease("other", 20, 1)), secs(139), time(9)) else {
            panic!("not taken")
        };
        assert_eq!(spec.holder_identity.as_deref(), Some("me"));
        assert_eq!(spec.lease_transitions, Some(4));
        assert_eq!(spec.acquire_time, Some(MicroTime(time(9))));
    }

    #[test]
    fn times_of_other_machines_are_not_compared() {
        for renewed in [-1_000_000_000, 0, 1_000_000_000] {
            let mut rules = rules();
            let found = lease("other", 15, renewed);
            assert_eq!(rules.read(Some(&found), secs(50), time(0)), Next::Held("other".to_owned()));
            assert!(matches!(rules.read(Some(&found), secs(65), time(0)), Next::Update(_)));
        }
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let Next::Update(spec) = rules().read(Some(&lease("", 1, 0)), secs(5), TIME) else {
            panic!("not taken")
        };
        assert_eq!(spec.lease_transitions, Some(4));
    }

    #[test]
    fn a_holder_renews_without_reading_while_its_lease_is_valid() {
        let mut rules = rules();
        assert_eq!(rules.renewal(secs(0), TIME), None, "nothing is known");
        rules.written(lease("me", 15, 0), secs(10));
        let renewal = rules.renewal(secs(24), time(5)).unwrap();
        assert_eq!(renewal, lease("me", 15, 5), "acquire time and transitions stay");
        assert_eq!(rules.renewal(secs(25), TIME), None, "it may have expired");
    }

    #[test]
    fn a_holder_that_reads_its_own_lease_keeps_it() {
        let mut rules = rules();
        let Next::Update(spec) = rules.read(Some(&lease("me", 15, 0)), secs(0), time(4)) else {
            panic!("not updated")
        };
        assert_eq!(spec, lease("me", 15, 4));
    }

    #[test]
    fn a_renewal_changes_the_lease_although_the_clock_stands_still() {
        let mut rules = rules();
        rules.written(lease("me", 15, 7), secs(10));
        let renewal = rules.renewal(secs(12), time(7)).unwrap();
        assert_ne!(renewal, lease("me", 15, 7));
        rules.written(renewal.clone(), secs(12));
        let second = rules.renewal(secs(14), time(7)).unwrap();
        assert!(second != renewal && second != lease("me", 15, 7), "never a value that others may have seen");
    }

    #[test]
    fn a_stolen_lease_is_not_taken_back() {
        let mut rules = rules();
        rules.written(lease("me", 15, 0), secs(10));
        assert_eq!(rules.read(Some(&lease("thief", 15, 0)), secs(11), TIME), Next::Held("thief".to_owned()));
        assert!(!rules.is_holder());
        assert_eq!(rules.renewal(secs(12), TIME), None);
        assert_eq!(rules.released(&lease("thief", 15, 0), TIME), None, "it is not ours to release");
    }

    #[test]
    fn a_release_leaves_a_free_lease() {
        let mut rules = rules();
        rules.written(lease("me", 15, 0), secs(10));
        let released = rules.released(&lease("me", 15, 0), time(8)).unwrap();
        assert_eq!(
            (released.holder_identity.as_deref(), released.lease_duration_seconds),
            (Some(""), Some(1))
        );
        assert_eq!((released.lease_transitions, released.renew_time), (Some(3), Some(MicroTime(time(8)))));
    }
}
