//! Work in several threads.

use anyhow::Result;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Calls a function for each item, with the number of the thread. Reports progress, and stops at the first error.
pub fn for_each<T: Sync>(
    what: &str,
    items: &[T],
    jobs: usize,
    function: impl Fn(&T, usize) -> Result<()> + Sync,
) -> Result<()> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(0));
    let work = |worker: usize| -> Result<()> {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = function(item, worker) {
                // The other threads stop as well.
                next.store(items.len(), Ordering::Relaxed);
                return Err(error);
            }
            let mut done = done.lock().expect("no worker panics");
            *done += 1;
            if *done % 50 == 0 || *done == items.len() {
                eprintln!("{done} of {} {what}", items.len());
            }
        }
        Ok(())
    };
    let work = &work;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|id| scope.spawn(move || work(id))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })
}
