//! Replays transcripts of shell sessions with kubectl, each against a new `kube-informer serve`, and compares the output
//! with the transcript.
//!
//!     kubectl-transcripts KUBECTL KUBE_INFORMER [--write] [WORD...]
//!
//! Runs only the transcripts whose names contain one of the words. `--write` replaces the transcripts with the actual
//! output, which must then be reviewed.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod pattern;
mod server;
mod transcript;

use server::Server;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};
use transcript::Transcript;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Error> {
    let mut arguments = env::args().skip(1);
    let mut program = |name: &str| -> Result<PathBuf, Error> {
        let usage = "usage: kubectl-transcripts KUBECTL KUBE_INFORMER [--write] [WORD...]";
        let path = arguments.next().ok_or_else(|| format!("the path of {name} is missing; {usage}"))?;
        Ok(fs::canonicalize(&path).map_err(|error| format!("{path}: {error}"))?)
    };
    let (kubectl, kube_informer) = (program("kubectl")?, program("kube-informer")?);
    let (flags, words): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument == "--write");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut passed, mut failed) = (0, 0);
    for path in transcripts(&here.join("transcripts"), &words)? {
        let transcript = Transcript::parse(&fs::read_to_string(&path)?);
        let server = Server::start(&kube_informer, &kubectl, &here.join("manifests"))?;
        let replayed = transcript.replay(&server)?;
        if !flags.is_empty() {
            fs::write(&path, replayed.to_string())?;
            continue;
        }
        for difference in transcript.differences(&replayed) {
            failed += 1;
            println!("FAIL {}\n{difference}", path.display());
        }
        passed += transcript.len();
    }
    println!("kubectl: {} commands as expected, {failed} different", passed - failed.min(passed));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn transcripts(directory: &Path, words: &[String]) -> Result<Vec<PathBuf>, Error> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| words.is_empty() || words.iter().any(|word| path.to_string_lossy().contains(word)));
    paths.sort();
    if paths.is_empty() {
        return Err("no transcript matches".into());
    }
    Ok(paths)
}
