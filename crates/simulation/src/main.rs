//! Runs many seeds, or one.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use simulation::{Failure, Totals, run, shrink};
use std::{process::ExitCode, time::Instant};

const USAGE: &str = "\
Usage: simulation [--seeds N] [--from SEED] [--brief]    run N seeds (1000), starting with SEED (0)
       simulation --seed SEED [--trace] [--brief]        run one seed, and show all that happens

A failure is cut down to the steps it takes, unless --brief is given.";

/// Seeds between two lines of progress.
const PROGRESS: u64 = 1000;

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    trace: bool,
    brief: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            let mut number = || words.next()?.parse::<u64>().ok();
            match word.as_str() {
                "--seeds" => arguments.seeds = Some(number()?),
                "--from" => arguments.from = number()?,
                "--seed" => arguments.seed = Some(number()?),
                "--trace" => arguments.trace = true,
                "--brief" => arguments.brief = true,
                _ => return None,
            }
        }
        Some(arguments)
    }
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let failed = match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => many(arguments.from, arguments.seeds.unwrap_or(PROGRESS)),
    };
    match failed {
        None => ExitCode::SUCCESS,
        Some((seed, failure)) => {
            println!("FAILED seed {seed} {failure}");
            if !arguments.brief {
                explain(seed);
            }
            ExitCode::FAILURE
        }
    }
}

fn one(seed: u64, trace: bool) -> Option<(u64, Failure)> {
    let outcome = run(seed, trace.then(|| Box::new(|line: &str| println!("{line}")) as _));
    println!("seed {seed} hash {:016x} {}", outcome.hash, outcome.totals);
    outcome.failure.map(|failure| (seed, failure))
}

fn many(from: u64, seeds: u64) -> Option<(u64, Failure)> {
    let start = Instant::now();
    let mut totals = Totals::default();
    for seed in from..from + seeds {
        let outcome = run(seed, None);
        totals.add(&outcome.totals);
        if let Some(failure) = outcome.failure {
            println!("{totals}");
            return Some((seed, failure));
        }
        if totals.seeds % PROGRESS == 0 && totals.seeds < seeds {
            let rate = totals.seeds as f64 / start.elapsed().as_secs_f64();
            println!("{} of {seeds} seeds, {rate:.0} a second; go on with --from {}", totals.seeds, seed + 1);
        }
    }
    println!("{totals}");
    None
}

/// Shows a failure as small as it can be made.
fn explain(seed: u64) {
    if let Some(shrunk) = shrink(seed) {
        println!("with {} steps, {}", shrunk.steps.len(), shrunk.failure);
        for step in &shrunk.steps {
            println!("  {step}");
        }
    }
    println!("replay: simulation --seed {seed} --trace");
}
