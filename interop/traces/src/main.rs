//! `traces <scripts> <driver with client-go> <driver with ours> [word...]` plays every script whose name
//! contains one of the words (all, if there are none) with both drivers and compares the traces.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to its terminal")]

use kube_informer_traces::{Script, Side, compare, run};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// Scripts played at once. They wait more than they work.
const AT_ONCE: usize = 12;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scripts, client_go, ours, words @ ..] = arguments.as_slice() else {
        eprintln!("usage: traces <scripts> <driver with client-go> <driver with ours> [word...]");
        return ExitCode::from(2);
    };
    let scripts = match Script::read_all(Path::new(scripts)) {
        Ok(scripts) => scripts,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let chosen = |script: &Script| words.is_empty() || words.iter().any(|word| script.name.contains(word));
    let programs = Arc::new((PathBuf::from(client_go), PathBuf::from(ours)));
    let failed = play_all(scripts.into_iter().filter(chosen), programs).await;
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn play_all(scripts: impl Iterator<Item = Script>, programs: Arc<(PathBuf, PathBuf)>) -> usize {
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
                println!("FAILED  {}: {}\n{report}", script.name, script.purpose);
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
