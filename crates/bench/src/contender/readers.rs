//! Concurrent readers.

use super::reads::list_and_read;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::Lister;
use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Number of readers.
const READERS: u32 = 2;

/// Threads that list all objects at a fixed total rate, until dropped.
pub(super) struct Readers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(lister: Lister<Pod>, per_second: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let period = Duration::from_secs(1) * READERS / per_second.max(1);
        let read = move |(lister, stop): (Lister<Pod>, Arc<AtomicBool>)| {
            let mut next = Instant::now();
            while !stop.load(Relaxed) {
                black_box(list_and_read(&lister));
                next += period;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        };
        let threads = (0..READERS)
            .map(|_| {
                let own = (lister.clone(), Arc::clone(&stop));
                std::thread::spawn(move || read(own))
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
