//! Runs the simulation with one patch switched on.

use super::patch::{Patch, Worlds};
use crate::process::{self, End, Limited};
use anyhow::{Context, Result, bail, ensure};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

/// Seeds of each kind of world that have to pass without a patch.
const BASELINE_SEEDS: u64 = 40;

/// Length of the reason why a world failed.
const REASON: usize = 150;

/// What the simulation says about a patch.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A world failed, for this reason.
    Caught(String),
    /// None failed, for example `in 600 seeds`.
    Missed(String),
}

/// Runs of the simulation.
pub struct Trials<'a> {
    /// The program with all patches that have a switch.
    pub program: PathBuf,
    pub directory: &'a Path,
    pub temporary: &'a Path,
    pub seeds: u64,
    /// Time of one run of the simulation.
    pub time_limit: Duration,
    /// Worlds that fail without a patch: their seed, and how they end.
    pub failed_without_patch: Mutex<BTreeMap<(Worlds, u64), String>>,
}

/// One run of the simulation.
struct Run<'a> {
    program: &'a Path,
    /// Unique among the runs at one time.
    name: &'a str,
    worlds: Worlds,
    jobs: usize,
    /// The patch that is switched on; 0 for none.
    id: u32,
}

impl Trials<'_> {
    /// Runs worlds of one kind without a patch, which have to pass.
    pub fn baseline(&self, worlds: Worlds) -> Result<()> {
        let name = format!("baseline{}", worlds.switch().unwrap_or_default());
        let run = Run { program: &self.program, name: &name, worlds, jobs: 1, id: 0 };
        match self.run(&run, &["--seeds", &BASELINE_SEEDS.to_string()])? {
            End::Passed => Ok(()),
            End::Failed(line) => bail!("the simulation fails although no patch is switched on: {line}"),
            End::TimedOut => {
                bail!("the simulation without a patch did not end in {} s", self.time_limit.as_secs())
            }
        }
    }

    /// Tries a patch by its switch.
    pub fn try_switched(&self, patch: &Patch) -> Result<Verdict> {
        let run =
            Run { program: &self.program, name: &patch.name, worlds: patch.worlds, jobs: 1, id: patch.id };
        let verdict = self.try_run(&run)?;
        let is_reached = self.reached(&run).exists();
        let _ = fs::remove_file(self.reached(&run));
        match verdict {
            Verdict::Missed(limit) => {
                let reached = if is_reached { "is reached" } else { "is never reached" };
                Ok(Verdict::Missed(format!("{limit}: the changed code {reached}")))
            }
            Verdict::Caught(reason) => {
                ensure!(
                    is_reached,
                    "{}: a world fails without reaching the changed code: {reason}",
                    patch.name
                );
                Ok(Verdict::Caught(reason))
            }
        }
    }

    /// Tries a patch by a program that was compiled with it.
    pub fn try_compiled(&self, patch: &Patch, program: &Path, jobs: usize) -> Result<Verdict> {
        self.try_run(&Run { program, name: &patch.name, worlds: patch.worlds, jobs, id: 0 })
    }

    fn try_run(&self, run: &Run<'_>) -> Result<Verdict> {
        let mut from = 0;
        loop {
            let seeds = (self.seeds - from).to_string();
            let line = match self.run(run, &["--from", &from.to_string(), "--seeds", &seeds])? {
                End::Passed => return Ok(Verdict::Missed(format!("in {} seeds", self.seeds))),
                End::TimedOut => {
                    return Ok(Verdict::Missed(format!("in {} s", self.time_limit.as_secs())));
                }
                End::Failed(line) => line,
            };
            let Some(reason) = line.strip_prefix("FAILED ") else { return Ok(self.crashed(run, line)) };
            let seed = reason.strip_prefix("seed ").and_then(|rest| rest.split(' ').next());
            let seed: u64 = seed.context("a failure without a seed")?.parse()?;
            if self.passes_without_patch(run, seed)? {
                return Ok(Verdict::Caught(shortened(reason)));
            }
            from = seed + 1;
        }
    }

    /// Verdict on a simulation that ended with this status.
    fn crashed(&self, run: &Run<'_>, status: String) -> Verdict {
        let errors = fs::read(self.errors(run)).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        // A limit says nothing about a guard.
        if errors.lines().any(|line| line.starts_with("memory allocation of ")) {
            return Verdict::Missed(format!("in {} GiB of memory", process::MEMORY >> 20));
        }
        // The main thread panics because another one did.
        let mut lines = errors.lines().skip_while(|line| !line.contains("panicked at"));
        let (place, message) = (lines.next(), lines.next());
        let panic = place.zip(message).map(|(place, message)| format!("{place} {message}"));
        Verdict::Caught(shortened(&panic.unwrap_or(status)))
    }

    /// Returns whether the world that failed passes without the patch.
    fn passes_without_patch(&self, run: &Run<'_>, seed: u64) -> Result<bool> {
        let name = format!("{}-without", run.name);
        let without = Run { program: &self.program, name: &name, worlds: run.worlds, jobs: 1, id: 0 };
        let end = self.run(&without, &["--seed", &seed.to_string()])?;
        if end != End::Passed {
            let mut failed = self.failed_without_patch.lock().expect("no trial panics");
            failed.insert((run.worlds, seed), format!("{end:?}"));
        }
        Ok(end == End::Passed)
    }

    fn run(&self, run: &Run<'_>, seeds: &[&str]) -> Result<End> {
        let (reached, errors, id) = (self.reached(run), self.errors(run), run.id.to_string());
        let limited = Limited {
            program: run.program,
            directory: self.directory,
            temporary: self.temporary,
            timeout: self.time_limit,
            is_failure: |line| line.starts_with("FAILED"),
            // The totals.
            proof: "seed",
            errors: Some(&errors),
        };
        let jobs = run.jobs.to_string();
        let mut arguments = vec!["--brief", "--jobs", &jobs];
        arguments.extend(seeds);
        arguments.extend(run.worlds.switch());
        let _ = fs::remove_file(&reached);
        let variables = [
            ("SABOTAGE", OsStr::new(&id)),
            ("SABOTAGE_REACHED", reached.as_os_str()),
            ("RUST_BACKTRACE", OsStr::new("0")),
        ];
        limited.run(&arguments, &variables)
    }

    fn reached(&self, run: &Run<'_>) -> PathBuf {
        self.temporary.join(format!("{}.reached", run.name))
    }

    fn errors(&self, run: &Run<'_>) -> PathBuf {
        self.temporary.join(format!("{}.errors", run.name))
    }
}

fn shortened(reason: &str) -> String {
    reason.chars().take(REASON).collect()
}
