//! Hostile clients against the embedded server, with a well-behaved client beside them.
//!
//! Each attack was once successful: it locked others out, stalled them or exhausted the memory. The latencies of the well-behaved client
//! with and without the attack are reported as a ratio; they depend on the machine and fail nothing. An attack fails the run if the
//! well-behaved client is not served at all, or if the server needs more memory than the bound of the attack.

mod connections;
mod server;
mod traffic;
mod well_behaved;

pub use server::serve_attacked;

use anyhow::Context;
use std::{fmt, time::Duration};

use self::{server::AttackedServer, traffic::Traffic, well_behaved::Latencies};

/// Options of [`attacks`].
#[derive(Debug, Clone, Copy)]
pub struct AttackOptions {
    /// Smaller attacks, which take less than a minute together.
    pub quick: bool,
    /// Runs only this attack.
    pub only: Option<Attack>,
}

/// An attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Attack {
    /// Connections without a credential that stay open
    UnauthenticatedConnections,
    /// Patches and objects that take long to merge and validate
    LargePatches,
    /// Defaults that make a small object large
    Defaults,
    /// Watches of a large object that are not read
    UnreadWatches,
    /// Long lists as tables, YAML and protobuf
    EncodedLists,
    /// Many custom resource definitions
    Definitions,
}

impl Attack {
    const ALL: [Self; 6] = [
        Self::UnauthenticatedConnections,
        Self::LargePatches,
        Self::Defaults,
        Self::UnreadWatches,
        Self::EncodedLists,
        Self::Definitions,
    ];

    /// Bytes by which the memory of the server may grow.
    fn memory_bound(self) -> u64 {
        const MIB: u64 = 1 << 20;
        match self {
            // Without sharing, 1,000 unread watches take 900 MiB.
            Self::UnreadWatches => 300 * MIB,
            // Without a budget, defaults take 7 GiB.
            Self::Defaults => 600 * MIB,
            // One encoding of each list.
            Self::EncodedLists => 1500 * MIB,
            Self::UnauthenticatedConnections | Self::LargePatches | Self::Definitions => 1000 * MIB,
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::UnauthenticatedConnections => "unauthenticated connections",
            Self::LargePatches => "large patches",
            Self::Defaults => "defaults",
            Self::UnreadWatches => "unread watches",
            Self::EncodedLists => "encoded lists",
            Self::Definitions => "definitions",
        };
        f.write_str(text)
    }
}

/// The result of one attack.
#[derive(Debug)]
struct Outcome {
    attack: Attack,
    without: Latencies,
    with: Latencies,
    /// The result of the attack.
    summary: String,
    /// Growth of the memory of the server, in bytes.
    growth: u64,
}

impl Outcome {
    /// The reason why the attack succeeded, if it did.
    fn failure(&self) -> Option<String> {
        let bound = self.attack.memory_bound();
        if self.with.served() == 0 {
            return Some(format!("{}: the well-behaved client was not served", self.attack));
        }
        let growth = self.growth;
        (growth > bound).then(|| {
            let mib = |bytes: u64| bytes >> 20;
            format!("{}: the server grew by {} MiB, more than {} MiB", self.attack, mib(growth), mib(bound))
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attack, without, with, summary, growth } = self;
        let ratio = with.p99().as_secs_f64() / without.p99().as_secs_f64().max(1e-6);
        write!(
            f,
            "{attack}: p99 without {without}, with {with}, ratio {ratio:.1}, growth {} MiB; {summary}",
            growth >> 20
        )
    }
}

/// Runs the attacks, each on a server of its own. `progress` is called with a line for each. Returns the failures.
pub async fn attacks(options: AttackOptions, progress: &dyn Fn(&str)) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    for attack in Attack::ALL.into_iter().filter(|attack| options.only.is_none_or(|only| only == *attack)) {
        let outcome = run(attack, options.quick).await.with_context(|| format!("attack: {attack}"))?;
        progress(&outcome.to_string());
        failures.extend(outcome.failure());
    }
    Ok(failures)
}

async fn run(attack: Attack, quick: bool) -> anyhow::Result<Outcome> {
    let server = AttackedServer::start().await?;
    let client = server.client()?;
    let traffic = Traffic { server: &server, client: client.clone(), quick };
    traffic.prepare(attack).await?;
    let calm = Duration::from_secs(if quick { 1 } else { 5 });
    let without = well_behaved::measure(client.clone(), tokio::time::sleep(calm)).await?.0;
    let before = server.rss()?;
    let (with, summary) = well_behaved::measure(client, traffic.attack(attack)).await?;
    let growth = server.peak()?.saturating_sub(before);
    Ok(Outcome { attack, without, with, summary: summary?, growth })
}
