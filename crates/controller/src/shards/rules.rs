//! The decisions on shards, without requests and without a clock: which Lease to take, to ask for, and to give away.

use std::{collections::BTreeMap, time::Duration};

/// A Lease of a shard, as one replica sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LeaseState {
    /// Empty if it is not held.
    pub(super) holder: String,
    /// The replica that asked for it; empty if none did.
    pub(super) preferred: String,
    /// How long it is valid after its last change.
    pub(super) duration: Duration,
    /// How long ago this replica saw its last change.
    pub(super) age: Duration,
}

impl LeaseState {
    fn is_held(&self) -> bool {
        !self.holder.is_empty() && self.age < self.duration
    }

    /// The replica that asked for the shard, otherwise the one that holds it.
    fn planned(&self) -> Option<&str> {
        let holder = Some(self.holder.as_str()).filter(|_| self.is_held());
        Some(self.preferred.as_str()).filter(|preferred| !preferred.is_empty()).or(holder)
    }
}

/// How long this replica has to wait before it may try to take a shard; zero if it may now.
///
/// A Lease that was released for another replica is left to that one for a lease duration, then it counts as dead.
pub(super) fn wait_to_take(lease: Option<&LeaseState>, me: &str, lease_duration: Duration) -> Duration {
    let Some(lease) = lease else { return Duration::ZERO };
    let reserved = match lease {
        LeaseState { holder, .. } if holder == me => Duration::ZERO,
        LeaseState { holder, preferred, .. } if holder.is_empty() => match preferred.as_str() {
            "" => Duration::ZERO,
            preferred if preferred == me => Duration::ZERO,
            _ => lease_duration,
        },
        _ => lease.duration,
    };
    reserved.saturating_sub(lease.age)
}

/// The shard that this replica should ask for: one of a replica that has at least two more.
///
/// Shards that were asked for count as those of the replica that asked, so that several requests at once do not ask for too many.
pub(super) fn request(leases: &[Option<LeaseState>], me: &str) -> Option<usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::from([(me, 0)]);
    for replica in leases.iter().flatten().filter_map(LeaseState::planned) {
        *counts.entry(replica).or_default() += 1;
    }
    let own = counts.remove(me).unwrap_or_default();
    let held = leases.iter().enumerate().filter_map(|(shard, lease)| {
        let lease = lease.as_ref().filter(|lease| lease.is_held() && lease.preferred.is_empty())?;
        Some((shard, *counts.get(lease.holder.as_str())?))
    });
    // The first one of those that have most.
    let (shard, most) = held.reduce(|best, other| if other.1 > best.1 { other } else { best })?;
    (most >= own.saturating_add(2)).then_some(shard)
}

/// Whether another replica asked for a shard that this one holds.
pub(super) fn is_requested(lease: Option<&LeaseState>, me: &str) -> bool {
    lease.is_some_and(|lease| lease.holder == me && !lease.preferred.is_empty() && lease.preferred != me)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn lease(holder: &str, preferred: &str, age: u64) -> LeaseState {
        let duration = if holder.is_empty() { secs(1) } else { LEASE };
        LeaseState { holder: holder.to_owned(), preferred: preferred.to_owned(), duration, age: secs(age) }
    }

    fn wait(holder: &str, preferred: &str, age: u64) -> u64 {
        wait_to_take(Some(&lease(holder, preferred, age)), "me", LEASE).as_secs()
    }

    #[test]
    fn a_shard_is_taken_when_its_lease_is_free_or_has_expired() {
        assert_eq!(wait_to_take(None, "me", LEASE), Duration::ZERO, "it does not exist");
        assert_eq!(wait("", "", 0), 0);
        assert_eq!((wait("other", "", 0), wait("other", "", 14), wait("other", "", 15)), (15, 1, 0));
        assert_eq!((wait("other", "", 60), wait("me", "", 0)), (0, 0));
    }

    #[test]
    fn a_released_shard_is_left_to_the_replica_that_asked_for_it() {
        assert_eq!(wait("", "me", 0), 0);
        assert_eq!((wait("", "other", 0), wait("", "other", 14), wait("", "other", 15)), (15, 1, 0));
        // A holder that was asked and died is waited for like any other.
        assert_eq!((wait("other", "me", 14), wait("other", "me", 15)), (1, 0));
    }

    fn held(holders: &[&str]) -> Vec<Option<LeaseState>> {
        holders.iter().map(|holder| Some(lease(holder, "", 0))).collect()
    }

    #[test]
    fn a_replica_asks_another_one_that_has_two_more() {
        assert_eq!(request(&held(&["a", "a", "a", "b"]), "b"), Some(0));
        assert_eq!(request(&held(&["a", "a", "b"]), "b"), None, "one more is balanced");
        assert_eq!(request(&held(&["b", "a", "a"]), "new"), Some(1));
        assert_eq!(request(&held(&["a", "a", "a"]), "a"), None);
        assert_eq!(
            request(&held(&["b", "a", "a", "a", "b", "b", "b"]), "c"),
            Some(0),
            "that of the one with most"
        );
        assert_eq!(request(&[], "a"), None);
        assert_eq!(request(&[None, None], "a"), None);
    }

    #[test]
    fn shards_that_were_asked_for_count_for_those_who_asked() {
        let mut leases = held(&["a", "a", "a", "a"]);
        leases[0] = Some(lease("a", "b", 0));
        assert_eq!(request(&leases, "b"), Some(1));
        leases[1] = Some(lease("a", "b", 0));
        assert_eq!(request(&leases, "b"), None);
        assert_eq!(request(&leases, "c"), Some(2));
        // An expired Lease has no holder.
        let expired = vec![Some(lease("a", "", 15)), Some(lease("a", "", 15)), Some(lease("a", "", 0))];
        assert_eq!(request(&expired, "b"), None);
    }

    #[test]
    fn any_number_of_replicas_becomes_balanced() {
        for (shards, replicas) in [(8, 3), (16, 5), (3, 4), (1, 2), (12, 12)] {
            let names: Vec<_> = (0..replicas).map(|n| format!("replica-{n}")).collect();
            // The first replica has taken everything.
            let mut leases: Vec<_> = (0..shards).map(|_| Some(lease("replica-0", "", 0))).collect();
            for round in 0.. {
                assert!(round < 100, "{shards} {replicas}: {leases:?}");
                let asked = names.iter().find_map(|me| Some((me, request(&leases, me)?)));
                let Some((me, shard)) = asked else { break };
                assert!(is_requested(Some(&lease("replica-0", me, 0)), "replica-0"));
                leases[shard] = Some(lease(me, "", 0));
            }
            let counts = names.iter().map(|me| leases.iter().flatten().filter(|l| l.holder == *me).count());
            let counts: Vec<_> = counts.collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{shards} {replicas}: {counts:?}");
        }
    }

    #[test]
    fn only_a_holder_gives_a_shard_away_and_not_to_itself() {
        let requested =
            |holder: &str, preferred: &str| is_requested(Some(&lease(holder, preferred, 0)), "me");
        assert!(requested("me", "other"));
        assert!(!requested("me", "me") && !requested("me", "") && !requested("other", "third"));
        assert!(!is_requested(None, "me"));
    }
}
