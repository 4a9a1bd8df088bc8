//! An etcd of our own for the tests, and what only the backend on it promises.

mod faults;
mod server;

use std::sync::OnceLock;

use kube_embedded_apiserver::storage::{EtcdOptions, EtcdStorage};
use tokio::sync::{Mutex, MutexGuard};

pub(crate) use harness::{ETCD_TIMEOUT, Etcd};

/// Compaction is everybody's and revisions are counted, so tests on the shared etcd take turns.
static TURN: Mutex<u32> = Mutex::const_new(0);
static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();

/// A test's time with the shared etcd.
pub(crate) struct Turn {
    number: MutexGuard<'static, u32>,
    pub(crate) etcd: &'static Etcd,
}

/// `None` if there is no etcd to be found; says so, and fails where one is required.
pub(crate) async fn turn() -> Option<Turn> {
    let mut number = TURN.lock().await;
    *number += 1;
    let etcd = SHARED.get_or_init(Etcd::start).as_ref()?;
    Some(Turn { number, etcd })
}

impl Turn {
    pub(crate) fn options(&self) -> EtcdOptions {
        EtcdOptions::new([self.etcd.url.clone()]).prefix(format!("/test{}", *self.number))
    }

    /// A store of this test alone.
    pub(crate) async fn store(&self) -> EtcdStorage {
        EtcdStorage::connect(self.options()).await.expect("etcd answers")
    }
}
