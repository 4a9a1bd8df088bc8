//! An etcd for the tests, and tests of the etcd backend.

mod faults;
mod server;

use std::sync::OnceLock;

use kube_embedded_apiserver::storage::{EtcdOptions, EtcdStorage};
use tokio::sync::{Mutex, MutexGuard};

pub(crate) use harness::Etcd;
use harness::{ETCD_TIMEOUT, TimedOut, wait_until};

/// Held by the test that uses the shared etcd: compaction affects all stores, and tests count revisions.
static LOCK: Mutex<u32> = Mutex::const_new(0);
static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();

/// Exclusive access to the shared etcd.
pub(crate) struct SharedEtcd {
    number: MutexGuard<'static, u32>,
    pub(crate) etcd: &'static Etcd,
}

/// Waits for exclusive access to the shared etcd; `None` if etcd is not installed.
pub(crate) async fn shared() -> Option<SharedEtcd> {
    let mut number = LOCK.lock().await;
    *number += 1;
    let etcd = SHARED.get_or_init(Etcd::start).as_ref()?;
    Some(SharedEtcd { number, etcd })
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = wait_until(ETCD_TIMEOUT, what, async || Ok::<_, TimedOut>(holds().await)).await;
    waited.unwrap_or_else(|timed_out| panic!("{timed_out}"));
}

impl SharedEtcd {
    pub(crate) fn options(&self) -> EtcdOptions {
        EtcdOptions::new([self.etcd.url.clone()]).prefix(format!("/test{}", *self.number))
    }

    /// Connects to a store that only this test uses.
    pub(crate) async fn store(&self) -> EtcdStorage {
        EtcdStorage::connect(self.options()).await.expect("etcd responds")
    }
}
