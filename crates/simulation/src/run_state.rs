//! The state of a run over many seeds.

use crate::totals::{Fault, Totals};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt, fs, io, path::Path, time::Duration};

/// Totals of consecutive seeds, and the seed to continue with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    /// The next seed.
    pub next: u64,
    /// Time of all runs together.
    pub took: Duration,
    totals: Totals,
    /// Number of seeds by number of writes.
    writes: BTreeMap<u64, u64>,
    /// Number of seeds by number of faults.
    faults: BTreeMap<u64, u64>,
}

impl RunState {
    /// A run that starts with a seed.
    pub fn from(seed: u64) -> Self {
        Self { next: seed, ..Self::default() }
    }

    /// The totals of all seeds.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Adds the totals of the next seed.
    pub fn add(&mut self, world: &Totals) {
        self.next += 1;
        self.totals.add(world);
        *self.writes.entry(world.writes).or_default() += 1;
        *self.faults.entry(world.faults()).or_default() += 1;
    }

    /// Median of the writes of a seed.
    pub fn median_writes(&self) -> u64 {
        median(&self.writes)
    }

    /// Median of the faults of a seed.
    pub fn median_faults(&self) -> u64 {
        median(&self.faults)
    }

    /// Reads a state file; `None` if it does not exist.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let value: Value = serde_json::from_slice(&text)?;
        Self::from_json(&value)
            .map(Some)
            .ok_or_else(|| io::Error::other("not a state file of this version of the simulation"))
    }

    /// Replaces a state file atomically.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        fs::write(&new, self.to_json().to_string())?;
        fs::rename(new, path)
    }

    fn to_json(&self) -> Value {
        let Totals { seeds, writes, delivered, checks, .. } = self.totals;
        let counts: Map<String, Value> = Fault::ALL
            .iter()
            .map(|&fault| (fault.name().to_owned(), self.totals.count(fault).into()))
            .collect();
        let pairs = |spread: &BTreeMap<u64, u64>| spread.iter().map(|(k, v)| [*k, *v]).collect::<Vec<_>>();
        json!({
            "next": self.next, "seconds": self.took.as_secs(), "seeds": seeds, "writes": writes,
            "delivered": delivered, "checks": checks, "faults": counts,
            "writes_per_seed": pairs(&self.writes), "faults_per_seed": pairs(&self.faults),
        })
    }

    fn from_json(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_u64();
        let pairs = |name: &str| -> Option<BTreeMap<u64, u64>> {
            value[name].as_array()?.iter().map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))).collect()
        };
        let mut totals = Totals::default();
        totals.seeds = number("seeds")?;
        totals.writes = number("writes")?;
        totals.delivered = number("delivered")?;
        totals.checks = number("checks")?;
        for &fault in Fault::ALL {
            totals.add_faults(fault, value["faults"][fault.name()].as_u64()?);
        }
        Some(Self {
            next: number("next")?,
            took: Duration::from_secs(number("seconds")?),
            totals,
            writes: pairs("writes_per_seed")?,
            faults: pairs("faults_per_seed")?,
        })
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (writes, faults) = (self.median_writes(), self.median_faults());
        write!(
            f,
            "{} median-writes={writes} median-faults={faults} seconds={}",
            self.totals,
            self.took.as_secs()
        )
    }
}

/// The smallest value that at least half of the seeds do not exceed.
fn median(spread: &BTreeMap<u64, u64>) -> u64 {
    let half = spread.values().sum::<u64>().div_ceil(2);
    let mut seen = 0;
    let mut reached = spread.iter().skip_while(|(_, count)| {
        seen += **count;
        seen < half
    });
    reached.next().map_or(0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(writes: u64, cuts: u64) -> Totals {
        let mut totals = Totals::default();
        (totals.seeds, totals.writes) = (1, writes);
        totals.add_faults(Fault::Cut, cuts);
        totals
    }

    #[test]
    fn half_of_the_seeds_do_not_exceed_the_median() {
        let mut run_state = RunState::from(5);
        assert_eq!(run_state.median_writes(), 0);
        for (writes, cuts) in [(10, 1), (30, 9), (20, 5)] {
            run_state.add(&world(writes, cuts));
        }
        assert_eq!((run_state.next, run_state.median_writes(), run_state.median_faults()), (8, 20, 5));
    }

    #[test]
    fn a_saved_run_is_continued() {
        let path = std::env::temp_dir().join(format!("simulation-run-state-{}", std::process::id()));
        assert_eq!(RunState::load(&path).unwrap(), None);
        let mut run_state = RunState::from(7);
        run_state.add(&world(10, 3));
        run_state.took = Duration::from_secs(90);
        run_state.save(&path).unwrap();
        assert_eq!(RunState::load(&path).unwrap(), Some(run_state));
        fs::write(&path, "{}").unwrap();
        assert!(RunState::load(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
