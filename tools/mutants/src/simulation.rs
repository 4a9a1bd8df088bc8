//! Tries mutants that no test catches with the simulation.

use crate::{
    mutant::Mutant,
    process::{End, Limited},
    results::{Outcome, Results, Verdict},
};
use anyhow::{Result, ensure};
use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Time for the simulation without a mutant.
const BASELINE_TIMEOUT: Duration = Duration::from_secs(3600);

/// Worlds of one kind.
struct Worlds {
    arguments: Vec<String>,
    takes: Duration,
    reaches: HashSet<u32>,
}

pub struct Simulation {
    program: PathBuf,
    /// Directory in which the simulation runs.
    root: PathBuf,
    temporary: PathBuf,
    patience: Duration,
    worlds: Vec<Worlds>,
    /// Text in the results of mutants that the simulation did not notice.
    pub in_vain: String,
}

impl Simulation {
    /// Runs all worlds without a mutant: so many seeds, and half as many with restarts.
    pub fn measure(
        program: PathBuf,
        root: &Path,
        temporary: &Path,
        patience: Duration,
        seeds: u64,
    ) -> Result<Self> {
        let (root, temporary) = (root.to_owned(), temporary.to_owned());
        let in_vain = format!("nor by {seeds} seeds of the simulation");
        let mut simulation = Self { program, root, temporary, patience, worlds: Vec::new(), in_vain };
        let normal = vec!["--seeds".to_owned(), seeds.to_string()];
        let restarts = vec!["--restarts".to_owned(), "--seeds".to_owned(), seeds.div_ceil(2).to_string()];
        for arguments in [normal, restarts] {
            let coverage = simulation.temporary.join("reached-simulation");
            let _ = fs::remove_file(&coverage);
            let start = Instant::now();
            let variables = [("MUTANT_COVERAGE", coverage.as_os_str())];
            let end = simulation.run(&arguments, BASELINE_TIMEOUT, &variables)?;
            ensure!(end == End::Passed, "the simulation fails without a mutant: {end:?}");
            let takes = start.elapsed();
            eprintln!("simulation {} takes {:.1} s", arguments.join(" "), takes.as_secs_f32());
            let reaches = fs::read_to_string(&coverage)?.lines().map(str::parse).collect::<Result<_, _>>()?;
            simulation.worlds.push(Worlds { arguments, takes, reaches });
        }
        Ok(simulation)
    }

    fn run(&self, arguments: &[String], timeout: Duration, variables: &[(&str, &OsStr)]) -> Result<End> {
        let limited = Limited {
            program: &self.program,
            directory: &self.root,
            temporary: &self.temporary,
            timeout,
            is_failure: |line| line.starts_with("FAILED"),
            proof: "",
            errors: None,
        };
        let mut all = vec!["--jobs".to_owned(), "1".to_owned(), "--brief".to_owned()];
        all.extend_from_slice(arguments);
        limited.run(&all, variables)
    }

    /// Tries a mutant that no test catches.
    pub fn try_mutant(&self, mutant: &Mutant, missed: Outcome, results: &Results) -> Result<()> {
        let id = mutant.id.to_string();
        for worlds in self.worlds.iter().filter(|worlds| worlds.reaches.contains(&mutant.id)) {
            let timeout = worlds.takes.saturating_mul(5).saturating_add(self.patience);
            let detail = match self.run(&worlds.arguments, timeout, &[("MUTANT", OsStr::new(&id))])? {
                End::Passed => continue,
                End::Failed(line) => line,
                End::TimedOut => "timeout".to_owned(),
            };
            return results.add(mutant, Verdict { outcome: Outcome::Simulation, detail });
        }
        results.add(mutant, Verdict { outcome: missed, detail: self.in_vain.clone() })
    }
}
