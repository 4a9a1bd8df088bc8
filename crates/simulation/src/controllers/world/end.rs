//! The end of a world: faults stop, everything converges, and leases change hands in time.

use super::World;
use crate::controllers::{replica::Replica, settings::Division, totals::Fault};
use std::time::Duration;
use tokio::time::Instant;

/// Time limit for convergence after all faults ended.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(180);
/// Nothing changes for this long after convergence.
const STABLE: Duration = Duration::from_secs(10);
/// Shards of a dead replica are taken within the lease duration and this.
const TAKE_OVER: Duration = Duration::from_secs(2);
/// A new holder proves that its caches are current within this time, and reconciles the sites of its leases.
const PROOF: Duration = Duration::from_secs(6);
/// For how long replicas are stopped in quick succession.
const SUCCESSION: Duration = Duration::from_secs(6);
/// How long each request and each response takes meanwhile, at most.
const SUCCESSION_LATENCY: Duration = Duration::from_millis(60);
/// A lease that was released is taken within this time, which is less than the delay after an attempt that failed.
const FREE: Duration = Duration::from_millis(950);
/// After all faults ended, an informer may back off twice more for up to 30 s and jitter: for a connection that was reset, and
/// for a version that has expired meanwhile.
const BACKOFF: Duration = Duration::from_secs(120);
/// Limit for a stop in order, beyond the time to drain.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

impl World {
    /// Ends all faults, and checks that everything converges.
    pub(super) async fn converge(&mut self) {
        self.truth.log.note(format_args!("faults end"));
        let _ = self.server.faults().lag(None, false).await;
        for replica in &self.replicas {
            replica.process.spare();
            replica.process.resume();
            replica.heal();
        }
        self.network.heal();
        self.users.remove_finalizers().await;
        if !self.await_specification(CONVERGENCE_TIMEOUT).await {
            return;
        }
        self.check_stability().await;
        self.check_balance();
        if self.settings.hands_over {
            self.check_take_over().await;
            self.check_release().await;
        }
        if self.settings.succession && matches!(self.settings.division, Division::Shards(_)) {
            self.check_succession().await;
        }
        self.shut_down().await;
    }

    /// Starts all replicas that have ended.
    fn restart_all(&mut self) {
        for index in 0..self.replicas.len() {
            if self.replicas[index].is_ended() {
                self.replicas[index] = self.new_replica(false);
            }
        }
    }

    fn failed(&self) -> bool {
        self.truth.log.failure().is_some()
    }

    /// Waits until everything is as specified. Returns whether it is.
    async fn await_specification(&mut self, within: Duration) -> bool {
        let start = Instant::now();
        loop {
            self.restart_all();
            self.users.collect_garbage().await;
            let difference = self.truth.difference();
            let Some(difference) = difference.filter(|_| !self.failed()) else { return !self.failed() };
            if start.elapsed() >= within {
                self.truth.log.fail(format_args!("not as specified after {within:?}: {difference}"));
                return false;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Checks that nothing changes any more.
    async fn check_stability(&mut self) {
        // Reconciles in flight and processes that stop may still end.
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.restart_all();
        tokio::time::sleep(self.settings.lease * 3 / 2).await;
        // A reconcile of a site that was deleted meanwhile may have created a child.
        self.users.collect_garbage().await;
        let before = self.truth.lock().changes;
        tokio::time::sleep(STABLE).await;
        let after = self.truth.lock().changes;
        if let Some(difference) = self.truth.difference() {
            self.truth.log.fail(format_args!("not as specified any more: {difference}"));
        }
        if before != after {
            self.truth.log.fail(format_args!("{} changes although nothing happens", after - before));
        }
    }

    /// Checks that all leases are held, and that shards are held in equal parts.
    fn check_balance(&self) {
        let held: Vec<_> =
            self.replicas.iter().map(|replica| self.truth.leases_of(&replica.process.name).len()).collect();
        let all = self.settings.leases().len();
        let (most, least) =
            (held.iter().max().copied().unwrap_or_default(), held.iter().min().copied().unwrap_or_default());
        if held.iter().sum::<usize>() != all || most - least > 1 {
            self.truth.log.fail(format_args!("the replicas hold {held:?} of {all} leases"));
        }
    }

    /// Kills a replica, and checks that others take its leases in time, and reconcile its sites.
    async fn check_take_over(&mut self) {
        let Some((index, leases)) = self.holder() else { return };
        if self.failed() {
            return;
        }
        self.replicas[index].process.kill_after(0);
        self.network.process_changed();
        let name = self.replicas[index].process.name.clone();
        self.truth.log.note(format_args!("{name} is killed for good"));
        self.users.touch("a").await;
        let limit = match self.settings.division {
            Division::Shards(_) => self.settings.lease + TAKE_OVER,
            // Candidates look at the lease only now and then, with jitter: they see the last renewal late, and its end.
            Division::Leader => {
                self.settings.lease + self.settings.retry_period * 44 / 10 + Duration::from_secs(1)
            }
        };
        self.check_taken(&name, &leases, limit, "died").await;
        tokio::time::sleep(PROOF).await;
        if let Some(difference) = self.truth.difference() {
            self.truth.log.fail(format_args!("{name} died {limit:?} and {PROOF:?} ago: {difference}"));
        }
        self.replicas[index] = self.new_replica(false);
        tokio::time::sleep(self.settings.lease * 2).await;
    }

    /// Stops a replica in order, and checks that others take its leases at once.
    async fn check_release(&mut self) {
        let Some((index, leases)) = self.holder() else { return };
        if self.failed() {
            return;
        }
        let name = self.replicas[index].process.name.clone();
        self.truth.log.note(format_args!("{name} is stopped for good"));
        self.replicas[index].stop();
        // To drain, to release, and for the next attempt of the others.
        let limit = self.settings.retry_period * 22 / 10 + Duration::from_secs(3);
        self.check_taken(&name, &leases, limit, "was stopped").await;
        self.users.touch("b").await;
        tokio::time::sleep(PROOF).await;
        if let Some(difference) = self.truth.difference() {
            self.truth.log.fail(format_args!("{name} was stopped: {difference}"));
        }
    }

    /// Stops replicas in quick succession, each as soon as it has taken a lease, and checks that the others leave none free.
    async fn check_succession(&mut self) {
        self.restart_all();
        // An informer of the Leases that still backs off notices a release when it would have expired.
        tokio::time::sleep(self.settings.lease * 2 + BACKOFF).await;
        let Some((index, _)) = self.holder() else { return };
        if self.failed() {
            return;
        }
        self.truth.log.note(format_args!("replicas are stopped in quick succession"));
        // Slow enough for a lease to be taken and released while another replica tries to take it.
        self.network.set_latency(SUCCESSION_LATENCY);
        self.replicas[index].stop();
        let end = Instant::now() + SUCCESSION;
        let mut before = self.truth.lock().leases.clone();
        while Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(self.rng.u64(1..20))).await;
            let now = self.truth.lock().leases.clone();
            for (_, holder) in now.iter().filter(|(lease, holder)| before.get(*lease) != Some(*holder)) {
                self.stop_unless_last(holder);
            }
            before = now;
            if let Some(lease) = self.truth.free_for(FREE) {
                return self
                    .truth
                    .log
                    .fail(format_args!("no replica has taken {lease}, which is free for {FREE:?}"));
            }
        }
    }

    fn stop_unless_last(&self, name: &str) {
        let mut running: Vec<_> = self.replicas.iter().filter(|replica| !replica.is_stopping()).collect();
        if let Some(at) = running.iter().position(|replica| replica.process.name == name)
            && running.len() > 1
        {
            running.swap_remove(at).stop();
            self.truth.record_fault(Fault::StoppedAtOnce);
        }
    }

    /// A replica that holds leases.
    fn holder(&self) -> Option<(usize, Vec<String>)> {
        let held = self.replicas.iter().map(|replica| self.truth.leases_of(&replica.process.name));
        held.enumerate().find(|(_, leases)| !leases.is_empty())
    }

    async fn check_taken(&self, from: &str, leases: &[String], within: Duration, what: &str) {
        tokio::time::sleep(within).await;
        for lease in leases {
            let holder = self.truth.holder(lease);
            if holder == from || holder.is_empty() {
                self.truth
                    .log
                    .fail(format_args!("{from} {what} {within:?} ago, and no replica has taken {lease}"));
            }
        }
    }

    /// Stops all replicas.
    async fn shut_down(&mut self) {
        self.replicas.iter().for_each(Replica::stop);
        let limit = self.settings.drain_timeout + self.settings.renew_deadline + STOP_TIMEOUT;
        for replica in std::mem::take(&mut self.replicas) {
            let name = replica.process.name.clone();
            if tokio::time::timeout(limit, replica.ended()).await.is_err() {
                return self.truth.log.fail(format_args!("{name} does not stop within {limit:?}"));
            }
        }
        let held: Vec<_> =
            self.truth.lock().leases.values().filter(|holder| !holder.is_empty()).cloned().collect();
        if !held.is_empty() {
            self.truth.log.fail(format_args!("leases are still held after the end: {held:?}"));
        }
    }
}
