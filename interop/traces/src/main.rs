//! Runs scripts with two drivers and compares the traces.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to its terminal")]

use kube_informer_traces::{Script, Side, compare, random, run};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Scripts that run at once. They mostly wait.
const CONCURRENT_SCRIPTS: usize = 12;

const USAGE: &str = "\
usage: traces <client-go driver> <our driver> scripts <directory> [word...]
       traces <client-go driver> <our driver> random <count> <first seed>

scripts  runs the scripts of a directory whose names contain one of the words, or all of them
random   runs scripts generated from seeds";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scripts = match select_scripts(&arguments) {
        Ok(scripts) => scripts,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let programs = Arc::new((PathBuf::from(&arguments[0]), PathBuf::from(&arguments[1])));
    let failed = run_all(scripts, programs).await;
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn select_scripts(arguments: &[String]) -> Result<Vec<Script>, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [_, _, "scripts", directory, words @ ..] => {
            let mut scripts = Script::read_all(Path::new(directory)).map_err(|error| error.to_string())?;
            scripts.retain(|script| words.is_empty() || words.iter().any(|word| script.name.contains(word)));
            if scripts.is_empty() { Err(format!("no script in {directory} matches")) } else { Ok(scripts) }
        }
        [_, _, "random", count, seed] => match (count.parse::<u64>(), seed.parse::<u64>()) {
            (Ok(count), Ok(seed)) => Ok((0..count).map(|i| random(seed.wrapping_add(i))).collect()),
            _ => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
    }
}

async fn run_all(scripts: Vec<Script>, programs: Arc<(PathBuf, PathBuf)>) -> usize {
    let permits = Arc::new(Semaphore::new(CONCURRENT_SCRIPTS));
    let mut running = JoinSet::new();
    for script in scripts {
        let (permits, programs) = (Arc::clone(&permits), Arc::clone(&programs));
        running.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire().await;
            let result = run_both(&script, &programs.0, &programs.1).await;
            (script, result)
        });
    }
    let (mut passed, mut failed) = (0, 0);
    while let Some(finished) = running.join_next().await {
        match finished {
            Ok((script, Ok(()))) => {
                passed += 1;
                println!("ok      {}{}", script.name, deviations(&script));
            }
            Ok((script, Err(report))) => {
                failed += 1;
                println!("FAILED  {}: {}\n{}\n{report}", script.name, script.purpose, script.to_json());
            }
            Err(error) => {
                failed += 1;
                println!("FAILED  {error}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    failed
}

fn deviations(script: &Script) -> String {
    let mut ids: Vec<&str> = script.differs.iter().map(|difference| difference.id.as_str()).collect();
    ids.dedup();
    if ids.is_empty() { String::new() } else { format!("  (differs as listed: {})", ids.join(", ")) }
}

async fn run_both(script: &Script, client_go: &Path, ours: &Path) -> Result<(), String> {
    match tokio::join!(run(script, Side::ClientGo, client_go), run(script, Side::Ours, ours)) {
        (Ok(client_go), Ok(ours)) => compare(&client_go, &ours, &script.differs),
        (client_go, ours) => {
            let errors = [client_go.err(), ours.err()].into_iter().flatten();
            Err(errors.map(|error| format!("{error}\n")).collect())
        }
    }
}
