//! Model checks of the wake-up paths: the source of the queue, compiled with a lock and a clock that shuttle controls. A
//! lost wake-up is a deadlock, which shuttle finds and prints with its schedule.
//!
//! All modules but `sync` and `time` are those of the library, so the checks run the published code, and the library needs
//! no feature for them.

#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

#[path = "../../src"]
mod library {
    pub(crate) mod add;
    pub(crate) mod builder;
    pub(crate) mod crowd;
    pub(crate) mod delayed;
    pub(crate) mod discarded;
    pub(crate) mod drain;
    pub(crate) mod get;
    pub(crate) mod in_flight;
    pub(crate) mod index;
    pub(crate) mod item;
    pub(crate) mod limiter;
    pub(crate) mod metrics;
    pub(crate) mod panics;
    pub(crate) mod priority;
    pub(crate) mod queue;
    pub(crate) mod ready;
    pub(crate) mod shared;
    pub(crate) mod state;
    pub(crate) mod waiters;
    pub(crate) mod workers;
}

mod checks;
mod sync;
mod time;

pub(crate) use library::*;
pub(crate) use queue::WorkQueue;

/// As in the library.
pub(crate) const MAX_KEYS_PER_HASH: usize = kube_workqueue::MAX_KEYS_PER_HASH;
