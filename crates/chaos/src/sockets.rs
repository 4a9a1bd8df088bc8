//! Informers against a server process, over real sockets with injected faults.

mod steps;
mod world;

pub use steps::Step;

use crate::report::Report;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::time::Instant;
use world::World;

/// Options of [`sockets`].
#[derive(Debug, Clone)]
pub struct SocketOptions {
    /// The program `kube-informer`.
    pub program: PathBuf,
    /// The seed of the first world. Each further world gets the next number.
    pub seed: u64,
    /// Worlds are started until this time has passed. `None` runs one short world on each storage.
    pub time: Option<Duration>,
    /// Repeats only this step.
    pub only: Option<Step>,
    /// Whether some worlds are on etcd. Needs a program built with the feature `etcd`, and etcd on the PATH.
    pub etcd: bool,
}

/// The server of a world.
#[derive(Debug, Clone, Copy)]
struct ServerOptions {
    /// Storage on etcd instead of memory.
    etcd: bool,
    /// HTTP/2 over TLS instead of plain HTTP/1.1.
    tls: bool,
}

/// Runs worlds, one after the other, until the time has passed or one has failed. `progress` is called with a line for
/// each step. Returns the report and the number of worlds.
pub async fn sockets(options: &SocketOptions, progress: &dyn Fn(&str)) -> anyhow::Result<(Arc<Report>, u64)> {
    let report = Arc::new(Report::new());
    let began = Instant::now();
    let mut worlds = 0;
    loop {
        let seed = options.seed + worlds;
        let etcd = match options.only {
            Some(step) => step.is_on_etcd(),
            None => options.etcd && seed.is_multiple_of(2),
        };
        let server = ServerOptions { etcd, tls: seed % 4 >= 2 };
        let steps = match (options.only, options.time) {
            (Some(step), _) => vec![step; Step::COUNT],
            (None, None) => Step::each(etcd),
            (None, Some(_)) => Step::random(etcd, &mut fastrand::Rng::with_seed(seed)),
        };
        let progress =
            |line: &str| progress(&format!("{:>4}s seed {seed}: {line}", began.elapsed().as_secs()));
        World::run(options, seed, server, &steps, &report, &progress).await?;
        worlds += 1;
        let enough = match options.time {
            None => worlds == 1 + u64::from(options.etcd),
            Some(time) => began.elapsed() >= time,
        };
        if enough || report.has_failed() {
            return Ok((report, worlds));
        }
    }
}
