//! Informers against a served process, over real sockets, while things break.

mod steps;
mod world;

pub use steps::Step;

use crate::ledger::Ledger;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::time::Instant;
use world::World;

/// What to run.
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// The program `kube-informer`.
    pub program: PathBuf,
    /// The seed of the first world; each further one gets the next number.
    pub seed: u64,
    /// Worlds are begun until this time is over; none means one short world of each sort.
    pub time: Option<Duration>,
    /// Worlds in which only this happens.
    pub only: Option<Step>,
    /// Whether there are worlds on etcd. Needs a program built with the feature, and etcd on the PATH.
    pub etcd: bool,
}

/// What sort of server a world has.
#[derive(Debug, Clone, Copy)]
struct Sort {
    /// On etcd, or in memory.
    etcd: bool,
    /// TLS and HTTP/2, or plain HTTP/1.1.
    secure: bool,
}

/// Runs worlds, one after the other, until time is over or one has failed; `say` gets a line for each step. Returns
/// what happened and how many worlds there were.
pub async fn sockets(options: &SocketOptions, say: &dyn Fn(&str)) -> anyhow::Result<(Arc<Ledger>, u64)> {
    let ledger = Arc::new(Ledger::new());
    let began = Instant::now();
    let mut worlds = 0;
    loop {
        let seed = options.seed + worlds;
        let etcd = match options.only {
            Some(step) => step.is_on_etcd(),
            None => options.etcd && seed.is_multiple_of(2),
        };
        let sort = Sort { etcd, secure: seed % 4 >= 2 };
        let steps = match (options.only, options.time) {
            (Some(step), _) => vec![step; Step::LENGTH],
            (None, None) => Step::each(etcd),
            (None, Some(_)) => Step::draw(etcd, &mut fastrand::Rng::with_seed(seed)),
        };
        let said = |line: &str| say(&format!("{:>4}s seed {seed}: {line}", began.elapsed().as_secs()));
        World::run(options, seed, sort, &steps, &ledger, &said).await?;
        worlds += 1;
        let enough = match options.time {
            None => worlds == 1 + u64::from(options.etcd),
            Some(time) => began.elapsed() >= time,
        };
        if enough || ledger.has_failed() {
            return Ok((ledger, worlds));
        }
    }
}
