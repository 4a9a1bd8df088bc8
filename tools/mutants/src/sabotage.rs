//! Tries the sabotage patches of the simulation. README.md says how it works.

mod combine;
mod combined;
mod compare;
mod marker;
mod patch;
#[cfg(test)]
mod tests;
mod trial;

use crate::{build::Builder, directories::Directories, parallel};
use anyhow::{Context, Result, bail};
use clap::Args;
use combined::Combined;
use patch::{Patch, Worlds};
use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use trial::{Trials, Verdict};

/// Options of cargo. A build takes longer than an unoptimized one, and all seeds after it are much faster.
const PROFILE: &[&str] = &["--release"];

/// Time of all seeds of a patch.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Applies the sabotage patches of the simulation, each of which removes one guard, and checks that the simulation fails
#[derive(Args)]
pub struct Arguments {
    /// Patches, without `.patch` [default: all]
    names: Vec<String>,
    /// Seeds within which a world has to fail
    #[arg(long, default_value_t = 600)]
    seeds: u64,
    /// Number of patches that are tried at a time [default: number of processors]
    #[arg(long)]
    jobs: Option<usize>,
    /// Only list the patches, with the reason for those that need a build of their own
    #[arg(long)]
    list: bool,
}

/// Returns success if the simulation notices every patch, and 1 otherwise.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let repository = std::env::current_dir()?;
    let directories = Directories::create("sabotage")?;
    // All are compiled, so that a run of others needs no other build.
    let patches = patch::read(&repository, &directories.temporary)?;
    let selected = select(&patches, &arguments.names)?;
    let mut combined = Combined::new(&repository, &directories.tree, &patches)?;
    if arguments.list {
        list(&combined, &selected);
        return Ok(ExitCode::SUCCESS);
    }
    let jobs =
        arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let builder = Builder { target: directories.build.clone(), jobs };
    eprintln!("compiling the simulation with {} patches", patches.len());
    let trials = Trials {
        program: build(&builder, &mut combined, &directories)?,
        directory: &directories.tree,
        temporary: &directories.temporary,
        seeds: arguments.seeds,
        time_limit: TIME_LIMIT,
        failed_without_patch: Mutex::default(),
    };
    let worlds: BTreeSet<Worlds> = selected.iter().map(|patch| patch.worlds).collect();
    let worlds: Vec<Worlds> = worlds.into_iter().collect();
    parallel::for_each("kinds of world pass without a patch", &worlds, jobs, |worlds, _| {
        trials.baseline(*worlds)
    })?;

    let tally = Tally::default();
    let (alone, switched): (Vec<&Patch>, Vec<&Patch>) =
        selected.into_iter().partition(|patch| combined.alone(patch).is_some());
    parallel::for_each("patches tried", &switched, jobs, |patch, _| {
        tally.add(patch, trials.try_switched(patch)?);
        Ok(())
    })?;
    for patch in alone {
        let reason = combined.alone(patch).unwrap_or_default();
        eprintln!("compiling the simulation for {} alone: {reason}", patch.name);
        combined.write_alone(patch)?;
        let verdict = match builder.simulation(&directories.tree, PROFILE) {
            Ok(program) => trials.try_compiled(patch, &program, jobs)?,
            Err(error) => {
                eprintln!("{error:#}");
                Verdict::Missed("because it does not compile: make it again for the current code".to_owned())
            }
        };
        tally.add(patch, verdict);
    }
    let code = tally.finish();
    let failed = trials.failed_without_patch.into_inner().expect("no trial panics");
    for ((worlds, seed), end) in &failed {
        eprintln!(
            "fails without a patch: simulation {} --seed {seed}: {end}",
            worlds.switch().unwrap_or_default()
        );
    }
    Ok(if failed.is_empty() { code } else { ExitCode::from(2) })
}

/// Returns the patches to try, those whose seeds take longest first.
fn select<'a>(patches: &'a [Patch], names: &[String]) -> Result<Vec<&'a Patch>> {
    if let Some(unknown) = names.iter().find(|name| !patches.iter().any(|patch| patch.name == **name)) {
        bail!("no patch {unknown}");
    }
    let is_selected = |patch: &&Patch| names.is_empty() || names.contains(&patch.name);
    let mut selected: Vec<&Patch> = patches.iter().filter(is_selected).collect();
    selected.sort_by_key(|patch| patch.worlds);
    Ok(selected)
}

/// Compiles the simulation with the patches that have a switch. Returns a copy, because later builds replace the program.
fn build(builder: &Builder, combined: &mut Combined, directories: &Directories) -> Result<PathBuf> {
    let built = builder.switched_simulation(combined, PROFILE)?;
    let (program, new) = (directories.output.join("simulation"), directories.output.join("simulation.new"));
    fs::copy(&built, &new).with_context(|| format!("cannot copy {}", built.display()))?;
    // Another run may use the old one.
    fs::rename(new, &program)?;
    Ok(program)
}

/// Prints and counts the results.
#[derive(Default)]
struct Tally {
    caught: AtomicUsize,
    missed: AtomicUsize,
}

impl Tally {
    fn add(&self, patch: &Patch, verdict: Verdict) {
        let (count, line) = match verdict {
            Verdict::Caught(reason) => (&self.caught, format!("caught {}: {reason}", patch.name)),
            Verdict::Missed(how) => (&self.missed, format!("MISSED {} {how}", patch.name)),
        };
        count.fetch_add(1, Ordering::Relaxed);
        println!("{line}");
    }

    fn finish(self) -> ExitCode {
        let (caught, missed) = (self.caught.into_inner(), self.missed.into_inner());
        println!("{caught} caught, {missed} missed");
        if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn list(combined: &Combined, patches: &[&Patch]) {
    for patch in patches {
        let worlds = patch.worlds.switch().map(|switch| format!(" {switch}")).unwrap_or_default();
        let alone = combined.alone(patch).map(|reason| format!(" alone, {reason}")).unwrap_or_default();
        println!("{}{worlds}{alone}", patch.name);
    }
}
