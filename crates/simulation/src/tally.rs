//! Totals of many worlds, and where a long run stands.

use crate::totals::{Fault, Totals};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt, fs, io, path::Path, time::Duration};

/// Totals of worlds that came one after the other, from one seed to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The seed that comes next.
    pub next: u64,
    /// Time it took so far, in all sessions together.
    pub took: Duration,
    totals: Totals,
    /// How many seeds had so many writes.
    writes: BTreeMap<u64, u64>,
    /// How many seeds had so many faults.
    faults: BTreeMap<u64, u64>,
}

impl Tally {
    /// Nothing yet, up to a seed.
    pub fn from(seed: u64) -> Self {
        Self { next: seed, ..Self::default() }
    }

    /// Everything together.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Adds the world of the next seed.
    pub fn add(&mut self, world: &Totals) {
        self.next += 1;
        self.totals.add(world);
        *self.writes.entry(world.writes).or_default() += 1;
        *self.faults.entry(world.faults()).or_default() += 1;
    }

    /// Half of the seeds had at least so many writes.
    pub fn median_writes(&self) -> u64 {
        median(&self.writes)
    }

    /// Half of the seeds had at least so many faults.
    pub fn median_faults(&self) -> u64 {
        median(&self.faults)
    }

    /// Reads where a run stands; `None` if there is no such file.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let value: Value = serde_json::from_slice(&text)?;
        Self::read(&value)
            .map(Some)
            .ok_or_else(|| io::Error::other("it is not where a run of this program stands"))
    }

    /// Writes where a run stands. Whoever reads finds the old or the new state, never a part.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        fs::write(&beside, self.show().to_string())?;
        fs::rename(beside, path)
    }

    fn show(&self) -> Value {
        let Totals { seeds, writes, delivered, checks, .. } = self.totals;
        let struck: Map<String, Value> = Fault::ALL
            .iter()
            .map(|&fault| (fault.name().to_owned(), self.totals.struck(fault).into()))
            .collect();
        let pairs = |spread: &BTreeMap<u64, u64>| spread.iter().map(|(k, v)| [*k, *v]).collect::<Vec<_>>();
        json!({
            "next": self.next, "seconds": self.took.as_secs(), "seeds": seeds, "writes": writes,
            "delivered": delivered, "checks": checks, "struck": struck,
            "writes_per_seed": pairs(&self.writes), "faults_per_seed": pairs(&self.faults),
        })
    }

    fn read(value: &Value) -> Option<Self> {
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
            totals.strike(fault, value["struck"][fault.name()].as_u64()?);
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

impl fmt::Display for Tally {
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

/// The smallest value that half of all do not exceed.
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
        totals.strike(Fault::Cut, cuts);
        totals
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let mut tally = Tally::from(5);
        assert_eq!(tally.median_writes(), 0);
        for (writes, cuts) in [(10, 1), (30, 9), (20, 5)] {
            tally.add(&world(writes, cuts));
        }
        assert_eq!((tally.next, tally.median_writes(), tally.median_faults()), (8, 20, 5));
    }

    #[test]
    fn a_run_goes_on_where_it_stood() {
        let path = std::env::temp_dir().join(format!("simulation-tally-{}", std::process::id()));
        assert_eq!(Tally::load(&path).unwrap(), None);
        let mut tally = Tally::from(7);
        tally.add(&world(10, 3));
        tally.took = Duration::from_secs(90);
        tally.save(&path).unwrap();
        assert_eq!(Tally::load(&path).unwrap(), Some(tally));
        fs::write(&path, "{}").unwrap();
        assert!(Tally::load(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
