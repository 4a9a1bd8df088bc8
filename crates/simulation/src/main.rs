//! Runs many seeds, or one.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

use simulation::{
    Failure, Outcome, RunState, Shrunk, Sink, controllers, run, run_restarts, shrink, shrink_restarts,
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const USAGE: &str = "\
Usage: simulation [--restarts] [--seeds N] [--from SEED] [--jobs N] [--state FILE] [--brief]
           run N seeds (default 1000) from SEED (default 0) in N threads (default: one per core);
           with a state file, continue the run that the file describes, and update the file
       simulation [--restarts] --seed SEED [--trace] [--brief]
           run one seed; with --trace, print every step, write, fault and event
       simulation --controllers ...
           run worlds of controllers instead; without a state file

With --restarts, the informers save their caches, and their program crashes and starts again.
A failing schedule is shrunk to the steps that cause the failure, unless --brief is given.";

/// Time between two lines of progress, and between two updates of the state file.
const PROGRESS: Duration = Duration::from_secs(10);

/// The kind of world.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Worlds {
    /// Informers with faults of the server and the network.
    #[default]
    Caches,
    /// The same, whose program saves its caches, crashes and starts again.
    Restarts,
    /// Replicas of an operator.
    Controllers,
}

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    from: u64,
    jobs: Option<usize>,
    state: Option<PathBuf>,
    seed: Option<u64>,
    trace: bool,
    brief: bool,
    worlds: Worlds,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seeds" => arguments.seeds = Some(words.next()?.parse().ok()?),
                "--from" => arguments.from = words.next()?.parse().ok()?,
                "--jobs" => arguments.jobs = Some(words.next()?.parse().ok().filter(|jobs| *jobs > 0)?),
                "--state" => arguments.state = Some(words.next()?.into()),
                "--seed" => arguments.seed = Some(words.next()?.parse().ok()?),
                "--trace" => arguments.trace = true,
                "--brief" => arguments.brief = true,
                "--restarts" => arguments.worlds = Worlds::Restarts,
                "--controllers" => arguments.worlds = Worlds::Controllers,
                _ => return None,
            }
        }
        Some(arguments)
    }

    /// Runs one world, with or without restarts.
    fn run(&self, seed: u64, trace: Option<Sink>) -> Outcome {
        if self.worlds == Worlds::Restarts { run_restarts(seed, trace) } else { run(seed, trace) }
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let failed = match arguments.seed {
        Some(seed) if arguments.worlds == Worlds::Controllers => {
            Ok(run_one_of_controllers(seed, arguments.trace))
        }
        None if arguments.worlds == Worlds::Controllers => Ok(run_many_of_controllers(&arguments)),
        Some(seed) => Ok(run_one(&arguments, seed)),
        None => run_many(&arguments),
    };
    match failed {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some((seed, failure))) => {
            println!("FAILED seed {seed} {failure}");
            if !arguments.brief {
                explain(arguments.worlds, seed);
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cannot read or write the state file: {error}");
            ExitCode::from(2)
        }
    }
}

fn run_one(arguments: &Arguments, seed: u64) -> Option<(u64, Failure)> {
    let outcome =
        arguments.run(seed, arguments.trace.then(|| Box::new(|line: &str| println!("{line}")) as _));
    println!("seed {seed} hash {:016x} {}", outcome.hash, outcome.totals);
    outcome.failure.map(|failure| (seed, failure))
}

/// Runs worlds in threads and adds up their totals in the order of the seeds.
fn run_many(arguments: &Arguments) -> io::Result<Option<(u64, Failure)>> {
    let earlier = arguments.state.as_deref().map(RunState::load).transpose()?.flatten();
    let mut run_state = earlier.unwrap_or_else(|| RunState::from(arguments.from));
    let end = arguments.from + arguments.seeds.unwrap_or(1000);
    let (next, stop) = (AtomicU64::new(run_state.next), AtomicBool::new(false));
    let (outcomes, finished) = mpsc::sync_channel(1024);
    thread::scope(|scope| {
        for _ in 0..arguments.jobs() {
            let (outcomes, next, stop) = (outcomes.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || outcomes.send((seed, arguments.run(seed, None))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(outcomes);
        let failed = add_up(&mut run_state, end, arguments.state.as_deref(), &finished);
        stop.store(true, Ordering::Relaxed);
        drop(finished);
        println!("{run_state}");
        failed
    })
}

fn add_up(
    run_state: &mut RunState,
    end: u64,
    state: Option<&Path>,
    finished: &mpsc::Receiver<(u64, Outcome)>,
) -> io::Result<Option<(u64, Failure)>> {
    let (start, before, first) = (Instant::now(), run_state.took, run_state.next);
    let mut shown = start;
    let mut waiting: BTreeMap<u64, Outcome> = BTreeMap::new();
    for (seed, outcome) in finished {
        waiting.insert(seed, outcome);
        while let Some(outcome) = waiting.remove(&run_state.next) {
            if let Some(failure) = outcome.failure {
                return Ok(Some((run_state.next, failure)));
            }
            run_state.add(&outcome.totals);
        }
        run_state.took = before + start.elapsed();
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            let rate = (run_state.next - first) as f64 / start.elapsed().as_secs_f64();
            let delivered = run_state.totals().delivered;
            println!(
                "next seed {} of {end}, {rate:.1} a second, {delivered} events delivered",
                run_state.next
            );
            state.map_or(Ok(()), |path| run_state.save(path))?;
        }
    }
    state.map_or(Ok(()), |path| run_state.save(path))?;
    Ok(None)
}

fn run_one_of_controllers(seed: u64, trace: bool) -> Option<(u64, Failure)> {
    let outcome = controllers::run(seed, trace.then(|| Box::new(|line: &str| println!("{line}")) as _));
    println!("seed {seed} hash {:016x} {}", outcome.hash, outcome.totals);
    outcome.failure.map(|failure| (seed, failure))
}

fn run_many_of_controllers(arguments: &Arguments) -> Option<(u64, Failure)> {
    let (seeds, start) = (arguments.seeds.unwrap_or(1000), Instant::now());
    let mut shown = start;
    let finished = controllers::run_many(arguments.from, seeds, arguments.jobs(), |totals| {
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            let rate = totals.seeds as f64 / start.elapsed().as_secs_f64();
            println!("{} of {seeds} seeds, {rate:.1} a second", totals.seeds);
        }
    });
    println!("{} seconds={}", finished.totals, start.elapsed().as_secs());
    finished.failure
}

/// Prints a shrunk schedule of a failure.
fn explain(worlds: Worlds, seed: u64) {
    let shrunk: Option<Shrunk> = match worlds {
        Worlds::Caches => shrink(seed),
        Worlds::Restarts => shrink_restarts(seed),
        Worlds::Controllers => controllers::shrink(seed),
    };
    if let Some(shrunk) = shrunk {
        println!("with {} steps, {}", shrunk.steps.len(), shrunk.failure);
        for step in &shrunk.steps {
            println!("  {step}");
        }
    }
    let switch = match worlds {
        Worlds::Caches => "",
        Worlds::Restarts => " --restarts",
        Worlds::Controllers => " --controllers",
    };
    println!("replay: simulation{switch} --seed {seed} --trace");
}
