//! The task of a process that takes part in an election.

use super::{
    JITTER, LeaderElection,
    candidacy::Candidacy,
    lock::{Attempt, Lock},
};
use crate::{leadership::Leadership, time};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use metrics::{Gauge, gauge};
use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tracing::{debug, info, warn};

/// The lease was lost, and the work that needs it was ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// Another process holds the lease.
    #[error("lease {lease} was taken by {holder:?}; work was stopped")]
    Taken {
        /// Namespace and name of the Lease.
        lease: String,
        /// The new holder; empty if the lease was released meanwhile.
        holder: String,
    },
    /// The lease was not renewed before its deadline.
    #[error("lease {lease} was not renewed within {deadline:?}: {why}; work was stopped")]
    NotRenewed {
        /// Namespace and name of the Lease.
        lease: String,
        /// The renew deadline.
        deadline: Duration,
        /// The last failure.
        why: String,
    },
}

/// Takes part in an election.
#[must_use = "an elector does nothing unless it runs"]
pub struct Elector {
    lock: Lock,
    leadership: Leadership,
    candidacy: Arc<Candidacy>,
    rng: fastrand::Rng,
    /// The holder that was reported last.
    reported: String,
    status: Gauge,
}

impl Elector {
    pub(super) fn new(config: LeaderElection, client: kube::Client) -> Self {
        let lease = format!("{}/{}", config.namespace, config.name);
        Self {
            candidacy: Arc::new(Candidacy::new(lease, config.lease_duration)),
            leadership: Leadership::none(config.clock.clone()),
            rng: fastrand::Rng::with_seed(config.seed),
            reported: String::new(),
            status: gauge!("leader_election_master_status", "name" => config.name.clone()),
            lock: Lock::new(config, client),
        }
    }

    /// The lease as this process holds it, or will.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// The known state of the lease while another process holds it.
    pub(crate) fn candidacy(&self) -> &Arc<Candidacy> {
        &self.candidacy
    }

    /// Waits until this process holds the lease, then runs `work`, and renews the lease meanwhile.
    ///
    /// 1. When `work` is done, the lease is released and the result returned.
    /// 2. When the lease is lost, `work` is dropped at once, and the result is an error. The process should end, or be sure that all
    ///    work that needs the lease has ended, before it takes part in the election again.
    /// 3. When `stop` resolves before the lease is held, the result is `None`. Later `work` has to stop by itself.
    pub async fn run<F>(
        mut self,
        stop: impl Future,
        work: impl FnOnce(Leadership) -> F,
    ) -> Result<Option<F::Output>, ElectionError>
    where
        F: Future,
    {
        let acquired = tokio::select! {
            biased;
            _ = stop => None,
            since = self.acquire() => Some(since),
        };
        let Some(acquired) = acquired else {
            // A request that was under way may have acquired it.
            self.release().await;
            return Ok(None);
        };
        let (leadership, ended) = (self.leadership.clone(), self.leadership.clone());
        let outcome = {
            let mut work = pin!(work(leadership));
            tokio::select! {
                biased;
                error = self.renew(acquired) => {
                    // Before the work is dropped: what it does until then must not be written.
                    ended.end();
                    Err(error)
                }
                output = &mut work => Ok(Some(output)),
            }
        };
        self.leadership.end();
        self.status.set(0.0);
        match &outcome {
            Ok(_) => self.release().await,
            Err(error) => warn!(%error, "lost the lease"),
        }
        outcome
    }

    /// Resolves when the lease is held, with the time from which it is.
    async fn acquire(&mut self) -> Duration {
        self.status.set(0.0);
        loop {
            match self.attempt().await {
                Attempt::Held { since } => return since,
                Attempt::HeldBy(holder) => self.candidacy.held_by(&holder),
                Attempt::Failed(why) => {
                    self.candidacy.failed(&why);
                    warn!(lease = self.lease(), why, "cannot acquire the lease");
                }
            }
            time::sleep(self.retry_delay()).await;
        }
    }

    /// Tries once to acquire the lease. Returns the time from which it is held.
    pub(crate) async fn try_acquire(&mut self) -> Option<Duration> {
        match self.attempt().await {
            Attempt::Held { since } => Some(since),
            Attempt::HeldBy(_) => None,
            Attempt::Failed(why) => {
                // Usually another process was faster.
                debug!(lease = self.lease(), why, "cannot acquire the lease");
                None
            }
        }
    }

    async fn attempt(&mut self) -> Attempt {
        let attempt = self.lock.try_acquire().await;
        self.report_holder();
        if let Attempt::Held { since } = attempt {
            self.held(since);
            info!(lease = self.lease(), "acquired the lease");
            self.status.set(1.0);
        }
        attempt
    }

    /// The delay after an attempt that did not succeed.
    pub(crate) fn retry_delay(&mut self) -> Duration {
        let factor = 1.0 + self.rng.f64() * JITTER;
        let period = self.lock.config().retry_period.as_secs_f64() * factor;
        Duration::try_from_secs_f64(period).unwrap_or(Duration::MAX)
    }

    /// Ends the leadership of this process, if it has it. The next one is a new value, so that nothing that began under the old
    /// one becomes valid again.
    pub(crate) fn end(&mut self) {
        self.leadership.end();
        self.leadership = Leadership::none(self.lock.config().clock.clone());
        self.status.set(0.0);
    }

    /// The Lease was seen at this time of the boot clock.
    pub(crate) fn observe(&mut self, spec: &LeaseSpec, at: Duration) {
        self.lock.observe(spec, at);
    }

    /// The Lease as it was last read or written.
    pub(crate) fn last_seen(&self) -> Option<&Lease> {
        self.lock.lease()
    }

    /// Renews the lease until it is lost.
    pub(crate) async fn renew(&mut self, mut renewed: Duration) -> ElectionError {
        let (deadline, period) = (self.lock.config().renew_deadline, self.lock.config().retry_period);
        let mut why = "the process was suspended".to_owned();
        loop {
            // No time is left if the process was suspended during its last renewal.
            time::sleep(period.min(self.remaining(renewed).unwrap_or_default())).await;
            let Some(remaining) = self.remaining(renewed) else {
                return ElectionError::NotRenewed { lease: self.lease(), deadline, why };
            };
            let attempt = match time::timeout(remaining, self.lock.try_renew()).await {
                Ok(attempt) => attempt,
                Err(time::Elapsed) => Attempt::Failed("no response".to_owned()),
            };
            self.report_holder();
            match attempt {
                Attempt::Held { since } => {
                    renewed = since;
                    self.held(since);
                }
                Attempt::HeldBy(holder) => return ElectionError::Taken { lease: self.lease(), holder },
                Attempt::Failed(failure) => {
                    warn!(lease = self.lease(), why = failure, "cannot renew the lease");
                    why = failure;
                }
            }
        }
    }

    /// How long this process may still lead without another renewal; `None` if it may not any more.
    fn remaining(&self, renewed: Duration) -> Option<Duration> {
        let until = renewed.saturating_add(self.lock.config().renew_deadline);
        until.checked_sub(self.lock.config().clock.now()).filter(|remaining| !remaining.is_zero())
    }

    fn held(&self, since: Duration) {
        self.leadership.set_valid_until(since.saturating_add(self.lock.config().lease_duration));
    }

    pub(crate) async fn release(&mut self) {
        if !self.lock.config().release || !self.lock.may_be_held() {
            return;
        }
        let within = self.lock.config().renew_deadline;
        let released = time::timeout(within, self.lock.release()).await;
        match released.unwrap_or_else(|_| Err(format!("not done within {within:?}"))) {
            Ok(true) => info!(lease = self.lease(), "released the lease"),
            Ok(false) => {}
            Err(why) => {
                warn!(lease = self.lease(), why, "cannot release the lease; others wait until it expires")
            }
        }
    }

    fn report_holder(&mut self) {
        let holder = self.lock.holder();
        if holder == self.reported {
            return;
        }
        self.reported = holder.to_owned();
        if let Some(hook) = self.lock.config().on_new_leader.clone().filter(|_| !self.reported.is_empty()) {
            // A panic of the hook must not cost the lease.
            let called = catch_unwind(AssertUnwindSafe(|| hook(&self.reported)));
            if called.is_err() {
                warn!(lease = self.lease(), "the hook for a new leader panicked");
            }
        }
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.lock.config().namespace, self.lock.config().name)
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elector({:?}, {:?})", self.lock.config(), self.leadership)
    }
}
