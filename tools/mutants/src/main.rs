//! Mutation tests of guards. README.md says how it works.

mod build;
mod cfg;
mod copy;
mod directories;
mod equivalent;
mod instrument;
mod mutant;
mod parallel;
mod process;
mod report;
mod results;
mod sabotage;
mod simulation;
mod sites;
mod suite;
#[cfg(test)]
mod tests;
mod tree;

use anyhow::{Context, Result, bail};
use build::{Builder, Switched, TestBinary};
use clap::{Parser, Subcommand};
use directories::Directories;
use equivalent::Equivalent;
use mutant::Mutant;
use process::End;
use report::Report;
use results::{Outcome, Results, Verdict};
use simulation::Simulation;
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};
use suite::{Suite, Tried};
use tree::Tree;

/// Changes one condition at a time and runs the tests that reach it.
#[derive(Parser)]
#[command(name = "tools/mutants/run", verbatim_doc_comment, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Crates to mutate, by their directory in `crates`; their tests are run
    #[arg(long, value_delimiter = ',', default_value = "wire,workqueue,informer")]
    crates: Vec<String>,
    /// Only mutants of this file, or of the files below this directory
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Only mutants of this line
    #[arg(long = "in", value_name = "FILE:LINE")]
    line: Vec<String>,
    /// Only the mutant with this id
    #[arg(long)]
    id: Vec<u32>,
    /// List the mutants and run nothing
    #[arg(long)]
    list: bool,
    /// Number of processes at a time [default: number of processors]
    #[arg(long)]
    jobs: Option<usize>,
    /// Seconds that tests may take in addition to three times their duration without a mutant
    #[arg(long, default_value_t = 20)]
    timeout: u64,
    /// Seconds of tests for each mutant: slower ones, except those of its module, are left to a run without this option
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Try mutants that no test catches with so many seeds of the simulation
    #[arg(long, value_name = "SEEDS")]
    simulation: Option<u64>,
    /// Keep the mutants that were caught before the code was changed: for work on the missed ones
    #[arg(long)]
    keep_caught: bool,
    /// Also run the mutants that are listed as equivalent
    #[arg(long)]
    equivalent: bool,
}

#[derive(Subcommand)]
enum Command {
    Sabotage(sabotage::Arguments),
}

impl Arguments {
    fn selects(&self, mutant: &Mutant) -> bool {
        let Self { file, line, id, .. } = self;
        if file.is_empty() && line.is_empty() && id.is_empty() {
            return true;
        }
        let is_below = |path: &str| {
            mutant
                .file
                .strip_prefix(path.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        file.iter().any(|path| is_below(path))
            || line.contains(&format!("{}:{}", mutant.file, mutant.line))
            || id.contains(&mutant.id)
    }
}

/// Detail of mutants that slower tests may catch.
const OVER_BUDGET: &str = "by tests within the budget";

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Returns success if every mutant is caught or equivalent, and 1 otherwise.
fn run() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Command::Sabotage(arguments)) = &arguments.command {
        return sabotage::run(arguments);
    }
    let repository = std::env::current_dir()?;
    let crates: Vec<String> = arguments.crates.iter().map(|name| format!("crates/{name}")).collect();
    let equivalent = Equivalent::read(&repository.join("tools/mutants/equivalent.txt"))?;
    let directories = Directories::create("mutants")?;
    let mut tree = Tree::read(&repository, directories.tree.clone(), &crates)?;
    if arguments.list {
        for mutant in tree.mutants().filter(|mutant| arguments.selects(mutant)) {
            println!("{mutant}{}", if equivalent.contains(mutant) { " equivalent" } else { "" });
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !tree.mutants().any(|mutant| arguments.selects(mutant)) {
        bail!("no mutant is selected");
    }

    let jobs =
        arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let patience = Duration::from_secs(arguments.timeout);
    let builder = Builder { target: directories.build.clone(), jobs };
    let (binaries, digest) = build(&builder, &mut tree, &repository, &crates, &directories.output)?;
    let results = Results::open(&directories.output.join("results.txt"), digest, arguments.keep_caught)?;
    let selected: Vec<&Mutant> = tree.mutants().filter(|mutant| arguments.selects(mutant)).collect();
    let runs =
        |mutant: &&&Mutant| tree.is_viable(mutant) && (arguments.equivalent || !equivalent.contains(mutant));
    let candidates: Vec<&Mutant> = selected.iter().filter(runs).copied().collect();

    let budget = arguments.budget.map_or(Duration::MAX, Duration::from_secs);
    let is_complete = |verdict: Verdict| arguments.budget.is_some() || verdict.detail != OVER_BUDGET;
    let pending = |mutant: &&&Mutant| !results.get(mutant).is_some_and(is_complete);
    let pending: Vec<&Mutant> = candidates.iter().filter(pending).copied().collect();
    if !pending.is_empty() {
        let coverage = directories.output.join("coverage.txt");
        let temporary = directories.temporary.clone();
        let suite = Suite::measure(binaries, digest, &coverage, temporary, patience, jobs)?;
        try_tests(&pending, &suite, &results, jobs, budget)?;
    }
    if let Some(seeds) = arguments.simulation {
        try_simulation(&candidates, &results, seeds, jobs, || {
            let program = builder.simulation(&tree.root, &[])?;
            Simulation::measure(program, &tree.root, &directories.temporary, patience, seeds)
        })?;
    }

    let all: Vec<&Mutant> = tree.mutants().collect();
    let report = Report {
        selected: &selected,
        is_viable: &|mutant| tree.is_viable(mutant),
        results: &results,
        equivalent: &equivalent,
        unknown: equivalent.unknown(&all, &crates),
    };
    Ok(if report.print() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compiles the tests with the mutants, except those that did not compile in an earlier run.
fn build(
    builder: &Builder,
    tree: &mut Tree,
    repository: &Path,
    crates: &[String],
    output: &Path,
) -> Result<(Vec<TestBinary>, u64)> {
    let file = output.join("unviable.txt");
    let earlier = fs::read_to_string(&file).unwrap_or_default();
    let earlier: HashSet<&str> = earlier.lines().collect();
    let earlier = tree.mutants().filter(|mutant| earlier.contains(mutant.key().as_str()));
    let earlier: BTreeSet<u32> = earlier.map(|mutant| mutant.id).collect();
    tree.leave_out(earlier);
    let packages: Vec<String> =
        crates.iter().map(|directory| package_name(repository, directory)).collect::<Result<_>>()?;
    let built = builder.tests(tree, &packages)?;
    let unviable = tree.mutants().filter(|mutant| !tree.is_viable(mutant)).map(|mutant| mutant.key() + "\n");
    fs::write(&file, unviable.collect::<String>())?;
    Ok(built)
}

/// Tries mutants with the tests that reach them.
fn try_tests(
    mutants: &[&Mutant],
    suite: &Suite,
    results: &Results,
    jobs: usize,
    budget: Duration,
) -> Result<()> {
    let total: Duration = suite.tests.iter().map(|test| test.takes).sum();
    eprintln!("{} tests, which take {} s one by one", suite.tests.len(), total.as_secs());
    parallel::for_each("mutants tried", mutants, jobs, |mutant, worker| {
        let (outcome, detail) = match suite.try_mutant(mutant, worker, budget)? {
            Tried::Ended(End::Failed(line)) => (Outcome::Caught, line),
            Tried::Ended(End::TimedOut) => (Outcome::TimedOut, String::new()),
            Tried::Ended(End::Passed) => (Outcome::Missed, String::new()),
            Tried::OverBudget => (Outcome::Missed, OVER_BUDGET.to_owned()),
            Tried::NotReached => (Outcome::NotReached, String::new()),
        };
        if outcome != Outcome::Caught {
            eprintln!("{}: {mutant}", outcome.name());
        }
        results.add(mutant, Verdict { outcome, detail })
    })
}

/// Tries the missed mutants with the simulation, except those that were tried with as many seeds before.
fn try_simulation(
    candidates: &[&Mutant],
    results: &Results,
    seeds: u64,
    jobs: usize,
    measure: impl FnOnce() -> Result<Simulation>,
) -> Result<()> {
    let missed = |mutant: &Mutant| results.get(mutant).filter(|verdict| verdict.outcome.is_missed());
    if !candidates.iter().any(|mutant| missed(mutant).is_some()) {
        return Ok(());
    }
    eprintln!("trying missed mutants with {seeds} seeds of the simulation");
    let simulation = measure()?;
    let is_pending =
        |mutant: &&&Mutant| missed(mutant).is_some_and(|verdict| verdict.detail != simulation.in_vain);
    let pending: Vec<&Mutant> = candidates.iter().filter(is_pending).copied().collect();
    parallel::for_each("mutants tried with the simulation", &pending, jobs, |mutant, _| {
        let before = missed(mutant).context("a mutant that is not missed any more")?;
        simulation.try_mutant(mutant, before.outcome, results)
    })
}

fn package_name(repository: &Path, directory: &str) -> Result<String> {
    let manifest = fs::read_to_string(repository.join(directory).join("Cargo.toml"))
        .with_context(|| format!("{directory} is not a crate"))?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(name.with_context(|| format!("{directory}/Cargo.toml has no name"))?.to_owned())
}
