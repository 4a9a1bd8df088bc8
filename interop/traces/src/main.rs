//! Plays scripts with two drivers and compares the traces.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to its terminal")]

use kube_informer_traces::{Script, Side, compare, random, run};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Scripts played at once. They wait more than they work.
const AT_ONCE: usize = 12;

const USAGE: &str = "\
usage: traces <driver with client-go> <driver with ours> scripts <directory> [word...]
       traces <driver with client-go> <driver with ours> random <count> <first seed>

scripts  plays the scripts of a directory whose names contain one of the words; all, if there are none
random   plays scripts that are made up from seeds";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scripts = match chosen(&arguments) {
        Ok(scripts) => scripts,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let programs = Arc::new((PathBuf::from(&arguments[0]), PathBuf::from(&arguments[1])));
    let failed = play_all(scripts, programs).await;
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn chosen(arguments: &[String]) -> Result<Vec<Script>, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [_, _, "scripts", directory, words @ ..] => {
            let mut scripts = Script::read_all(Path::new(directory)).map_err(|error| error.to_string())?;
            scripts.retain(|script| words.is_empty() || words.iter().any(|word| script.name.contains(word)));
            if scripts.is_empty() {
                Err(format!("no script of {directory} has such a name"))
            } else {
                Ok(scripts)
            }
        }
        [_, _, "random", count, seed] => match (count.parse::<u64>(), seed.parse::<u64>()) {
            (Ok(count), Ok(seed)) => Ok((0..count).map(|i| random(seed.wrapping_add(i))).collect()),
            _ => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
    }
}

async fn play_all(scripts: Vec<Script>, programs: Arc<(PathBuf, PathBuf)>) -> usize {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for script in scripts {
        let (places, programs) = (Arc::clone(&places), Arc::clone(&programs));
        playing.spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            let result = play(&script, &programs.0, &programs.1).await;
            (script, result)
        });
    }
    let (mut passed, mut failed) = (0, 0);
    while let Some(played) = playing.join_next().await {
        match played {
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

async fn play(script: &Script, client_go: &Path, ours: &Path) -> Result<(), String> {
    let (theirs, ours) = tokio::join!(run(script, Side::ClientGo, client_go), run(script, Side::Ours, ours));
    let (theirs, ours) = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (theirs, ours) => {
            let errors = [theirs.err(), ours.err()].into_iter().flatten();
            return Err(errors.map(|error| format!("{error}\n")).collect());
        }
    };
    compare(&theirs, &ours, &script.differs)
}
