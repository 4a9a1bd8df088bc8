//! Runs many seeds, or one.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use kube_informer_simulation::{Totals, run, shrink};
use std::{process::ExitCode, time::Instant};

const USAGE: &str = "\
Usage: simulation [--seeds N] [--from SEED]    run N seeds (1000), starting with SEED (0)
       simulation --seed SEED [--trace]        run one seed, and show all that happens";

/// Seeds between two lines of progress.
const PROGRESS: u64 = 1000;

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    trace: bool,
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
    match arguments.seed {
        Some(seed) => one(seed, arguments.trace),
        None => many(arguments.from, arguments.seeds.unwrap_or(PROGRESS)),
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let outcome = run(seed, trace.then(|| Box::new(|line: &str| println!("{line}")) as _));
    println!("seed {seed} hash {:016x} {}", outcome.hash, outcome.totals);
    match outcome.failure {
        None => ExitCode::SUCCESS,
        Some(_) => explain(seed),
    }
}

fn many(from: u64, seeds: u64) -> ExitCode {
    let start = Instant::now();
    let mut totals = Totals::default();
    for seed in from..from + seeds {
        let outcome = run(seed, None);
        totals.add(&outcome.totals);
        if outcome.failure.is_some() {
            println!("{totals}");
            return explain(seed);
        }
        if totals.seeds % PROGRESS == 0 && totals.seeds < seeds {
            let rate = totals.seeds as f64 / start.elapsed().as_secs_f64();
            println!("{} of {seeds} seeds, {rate:.0} a second; go on with --from {}", totals.seeds, seed + 1);
        }
    }
    println!("{totals}");
    ExitCode::SUCCESS
}

/// Shows a failure as small as it can be made.
fn explain(seed: u64) -> ExitCode {
    println!("FAILED seed {seed}");
    if let Some(shrunk) = shrink(seed) {
        println!("with {} steps, {}", shrunk.steps.len(), shrunk.failure);
        for step in &shrunk.steps {
            println!("  {step}");
        }
    }
    println!("replay: simulation --seed {seed} --trace");
    ExitCode::FAILURE
}
