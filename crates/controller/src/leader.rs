//! Leader election on a Lease, with the rules of client-go.

mod candidacy;
mod elector;
mod lock;
mod rules;

pub(crate) use candidacy::Candidacy;
pub use elector::ElectionError;
pub use elector::Elector;
pub(crate) use lock::OnWrite;
pub(crate) use lock::OnWritten;

use crate::clock::{BootClock, WallClock};
use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// client-go waits longer than the retry period by up to this factor between two attempts to acquire a lease, and requires a
/// renew deadline beyond it.
const JITTER: f64 = 1.2;

/// Configuration of a leader election: of several processes that name the same Lease, one leads at a time.
///
/// The rules are those of client-go, so that its processes and ours can share a Lease:
///
/// 1. A lease is held for `lease_duration` after its last renewal. Expiry is measured on the local clock, from the moment at which
///    a *change* of the Lease was observed; times of other machines are never compared, so clocks may differ, but must run at about
///    the same speed.
/// 2. The holder renews it every `retry_period`. If it does not succeed for `renew_deadline`, it stops to lead, before others
///    can take the lease.
/// 3. Others try to acquire it every `retry_period`, with jitter.
/// 4. A process that is stopped in order releases the lease, so that another one takes over at once.
///
/// Stricter than client-go: the lease is counted from the moment at which its renewal was sent; a holder that sees another one in
/// the Lease stops at once; and the clock also counts the time in which the machine was suspended.
///
/// # What a lease does not guarantee
///
/// The server does not reject writes of a process that lost its lease. Writes through a [`Context`](crate::Context) are therefore
/// sent only if the lease remains valid for as long as the request may take, and carry the uid and version of the object that they
/// were made for, so that a late one is a conflict. What remains: a process that is paused between that check and the moment at which
/// its request leaves the machine sends it late. A late create succeeds if nothing of that name exists; a late apply succeeds if the
/// cache did not show the object.
///
/// A [`Manager`](crate::Manager) runs an election with its controllers. Other work can be done under a lease, too:
///
/// ```
/// use kube_informer_controller::LeaderElection;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kube_informer_controller::BoxError> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let stop = std::future::pending::<()>();
/// // In your program: let stop = tokio::signal::ctrl_c();
/// let election = LeaderElection::new("default", "my-job").on_new_leader(|holder| println!("{holder} leads"));
/// let done = election.elector(client)?.run(stop, async |lease| {
///     lease.check(Duration::from_secs(5)).expect("it was acquired just now"); // before each request of up to 5 s
///     "done"
/// });
/// assert_eq!(done.await?, Some("done")); // and the lease is released
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "an election takes place when an elector runs"]
pub struct LeaderElection {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: String,
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) release: bool,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) clock: BootClock,
    pub(crate) wall_clock: WallClock,
    pub(crate) on_new_leader: Option<Hook>,
    /// Changes the metadata of the Lease before each write.
    pub(crate) on_write: Option<OnWrite>,
    /// Receives the Lease after each write, as the server has stored it.
    pub(crate) on_written: Option<OnWritten>,
    pub(crate) seed: u64,
}

/// Code of the user that receives the identity of a new holder.
pub(crate) type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// A configuration with which leadership would not be exclusive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionConfigError {
    /// The identity is empty, which stands for a lease that is not held.
    #[error("the identity of a leader election must not be empty")]
    NoIdentity,
    /// A lease lasts a whole number of seconds, at least one.
    #[error("a lease lasts at least a second and at most 2147483647 seconds, not {0:?}")]
    LeaseDuration(Duration),
    /// A holder has to stop before others may take the lease.
    #[error("the renew deadline {renew:?} must be shorter than the lease of {lease:?}")]
    RenewDeadline {
        /// The renew deadline.
        renew: Duration,
        /// The duration of the lease.
        lease: Duration,
    },
    /// A holder has to be able to retry before its deadline.
    #[error(
        "the retry period {retry:?} must not be zero, and 1.2 times it must be shorter than the renew deadline {renew:?}"
    )]
    RetryPeriod {
        /// The retry period.
        retry: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// Each replica has to be able to hold a shard, and each shard has a Lease.
    #[error("the number of shards must be between 1 and 1024, not {0}")]
    Shards(u32),
    /// The name is the value of a label and the beginning of the names of Leases.
    #[error(
        "the Leases of shards need a name of at most 58 of a-z, 0-9 and -, no - at either end, in a valid namespace, not {namespace:?} and {name:?}"
    )]
    ShardLease {
        /// The namespace of the Leases.
        namespace: String,
        /// The beginning of the names of the Leases.
        name: String,
    },
    /// No write could be sent between two renewals.
    #[error(
        "the write timeout {write:?} of controller {controller} leaves no time to write with a lease of {lease:?}"
    )]
    WriteTimeout {
        /// The name of the controller.
        controller: String,
        /// Its write timeout.
        write: Duration,
        /// The duration of the lease.
        lease: Duration,
    },
}

impl LeaderElection {
    /// An election on the Lease `name` in `namespace`, with client-go's defaults: 15 s, 10 s and 2 s. The identity is the name of the
    /// host and a random suffix.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: format!("{}_{:016x}", host_name(), fastrand::u64(..)),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release: true,
            labels: BTreeMap::new(),
            clock: BootClock::default(),
            wall_clock: WallClock::default(),
            on_new_leader: None,
            on_write: None,
            on_written: None,
            seed: fastrand::u64(..),
        }
    }

    /// Sets the identity. It must be different for each process, and for each start of a process.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets how long others wait for a holder that does not renew its lease. Rounded down to seconds.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = Duration::from_secs(duration.as_secs());
        self
    }

    /// Sets how long a holder leads without a successful renewal.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = deadline;
        self
    }

    /// Sets the time between two attempts to acquire or renew the lease.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.retry_period = period;
        self
    }

    /// Sets whether a holder that stops in order releases the lease; it does by default.
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.release = release;
        self
    }

    /// Sets a label of the Lease, which each new holder writes.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Calls `hook` with the identity of each new holder, also the first one, and also this process.
    pub fn on_new_leader(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(hook));
        self
    }

    /// Sets the clock on which leases expire: the time since some moment, which must also pass while the machine is suspended. For
    /// tests; by default the boot time clock of the system.
    pub fn clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = BootClock::new(clock);
        self
    }

    /// Sets the clock for timestamps in the Lease, on which nothing depends. For tests; by default that of the system.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = WallClock::new(clock);
        self
    }

    /// Sets the seed of the jitter, for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks the configuration.
    pub(crate) fn validate(&self) -> Result<(), ElectionConfigError> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        if self.identity.is_empty() {
            return Err(ElectionConfigError::NoIdentity);
        }
        if lease.is_zero() || i32::try_from(lease.as_secs()).is_err() {
            return Err(ElectionConfigError::LeaseDuration(lease));
        }
        if renew >= lease {
            return Err(ElectionConfigError::RenewDeadline { renew, lease });
        }
        if retry.is_zero() || retry.as_secs_f64() * JITTER >= renew.as_secs_f64() {
            return Err(ElectionConfigError::RetryPeriod { retry, renew });
        }
        Ok(())
    }

    /// An elector of this configuration.
    pub fn elector(self, client: kube::Client) -> Result<Elector, ElectionConfigError> {
        self.validate()?;
        Ok(Elector::new(self, client))
    }
}

/// The name of the host as the system knows it: the name of the pod, in most pods.
fn host_name() -> String {
    // Not $HOSTNAME: shells set it, and seldom export it.
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

impl fmt::Debug for LeaderElection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaderElection({}/{} as {})", self.namespace, self.name, self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_identity_begins_with_the_name_of_the_host() {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let identity = LeaderElection::new("ns", "lease").identity;
        let (name, suffix) = identity.rsplit_once('_').unwrap();
        assert_eq!((name, suffix.len()), (host.trim(), 16), "{identity}");
    }

    #[test]
    fn durations_must_leave_time_to_stop_and_to_retry() {
        let election = || LeaderElection::new("ns", "lease").identity("me");
        let (ms, secs) = (Duration::from_millis, Duration::from_secs);
        assert_eq!(election().validate(), Ok(()));
        assert_eq!(election().identity("").validate(), Err(ElectionConfigError::NoIdentity));
        let error = election().lease_duration(ms(900)).validate().unwrap_err();
        assert_eq!(error, ElectionConfigError::LeaseDuration(Duration::ZERO));
        assert!(election().lease_duration(Duration::MAX).validate().is_err());
        let error = election().renew_deadline(secs(15)).validate().unwrap_err();
        assert!(matches!(error, ElectionConfigError::RenewDeadline { .. }));
        for retry in [Duration::ZERO, secs(9), secs(20)] {
            let error = election().retry_period(retry).validate().unwrap_err();
            assert!(matches!(error, ElectionConfigError::RetryPeriod { .. }), "{retry:?}");
        }
        assert_eq!(election().retry_period(secs(8)).validate(), Ok(()));
        assert_ne!(LeaderElection::new("ns", "l").identity, LeaderElection::new("ns", "l").identity);
    }
}
