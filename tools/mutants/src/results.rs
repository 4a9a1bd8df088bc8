//! Results of mutants, in a file, so that a run can be continued.

use crate::mutant::Mutant;
use anyhow::{Context, Result};
use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end in time.
    TimedOut,
    /// No test failed, but the simulation did.
    Simulation,
    /// Tests reach the mutant, and none fails.
    Missed,
    /// No test reaches the mutant.
    NotReached,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Caught, Self::TimedOut, Self::Simulation, Self::Missed, Self::NotReached];

    pub fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::TimedOut => "timeout",
            Self::Simulation => "simulation",
            Self::Missed => "missed",
            Self::NotReached => "not reached",
        }
    }

    pub fn is_missed(self) -> bool {
        matches!(self, Self::Missed | Self::NotReached)
    }
}

/// Outcome of a mutant, and the test or the seeds behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    pub detail: String,
}

pub struct Results {
    file: Mutex<File>,
    /// By key of the mutant.
    verdicts: Mutex<HashMap<String, Verdict>>,
}

impl Results {
    /// Continues a file of this digest, or begins a new one, optionally with those that were caught before.
    pub fn open(path: &Path, digest: u64, keep_caught: bool) -> Result<Self> {
        let header = format!("digest {digest:016x}");
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut verdicts: HashMap<String, Verdict> = text.lines().skip(1).filter_map(parse).collect();
        if text.lines().next() != Some(header.as_str()) {
            verdicts.retain(|_, verdict| keep_caught && !verdict.outcome.is_missed());
            let kept: String = verdicts.iter().map(|(key, verdict)| line(key, verdict)).collect();
            fs::write(path, format!("{header}\n{kept}"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self { file: Mutex::new(file), verdicts: Mutex::new(verdicts) })
    }

    pub fn get(&self, mutant: &Mutant) -> Option<Verdict> {
        self.verdicts.lock().expect("no worker panics").get(&mutant.key()).cloned()
    }

    pub fn add(&self, mutant: &Mutant, verdict: Verdict) -> Result<()> {
        self.file.lock().expect("no worker panics").write_all(line(&mutant.key(), &verdict).as_bytes())?;
        self.verdicts.lock().expect("no worker panics").insert(mutant.key(), verdict);
        Ok(())
    }
}

fn line(key: &str, verdict: &Verdict) -> String {
    format!("{}\t{key}\t{}\n", verdict.outcome.name(), verdict.detail.replace(['\t', '\n'], " "))
}

fn parse(line: &str) -> Option<(String, Verdict)> {
    let mut parts = line.split('\t');
    let name = parts.next()?;
    let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.name() == name)?;
    Some((parts.next()?.to_owned(), Verdict { outcome, detail: parts.next()?.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_read_as_it_was_written() {
        for outcome in Outcome::ALL {
            let verdict = Verdict { outcome, detail: "by a::b".to_owned() };
            assert_eq!(parse(line("a | b", &verdict).trim_end()), Some(("a | b".to_owned(), verdict)));
        }
    }
}
