//! Plays transcripts of a shell with kubectl in it against `kube-informer serve`, a fresh server for each, and
//! compares what is printed with what is written down.
//!
//!     kubectl-transcripts KUBECTL KUBE_INFORMER [--write] [WORD...]
//!
//! Only the transcripts whose names contain one of the words; `--write` writes down what is printed instead, to be
//! read through before it is believed.
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
    let mut program = |what: &str| -> Result<PathBuf, Error> {
        let path = arguments.next().ok_or_else(|| format!("which {what}? See the top of src/main.rs"))?;
        Ok(fs::canonicalize(&path).map_err(|error| format!("{path}: {error}"))?)
    };
    let (kubectl, kube_informer) = (program("kubectl")?, program("kube-informer")?);
    let (flags, words): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument == "--write");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut passed, mut failed) = (0, 0);
    for path in transcripts(&here.join("transcripts"), &words)? {
        let transcript = Transcript::parse(&fs::read_to_string(&path)?);
        let server = Server::start(&kube_informer, &kubectl, &here.join("manifests"))?;
        let played = transcript.play(&server)?;
        if !flags.is_empty() {
            fs::write(&path, played.to_string())?;
            continue;
        }
        for difference in transcript.differences(&played) {
            failed += 1;
            println!("FAIL {}\n{difference}", path.display());
        }
        passed += transcript.len();
    }
    println!("kubectl: {} commands as expected, {failed} not", passed - failed.min(passed));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn transcripts(directory: &Path, words: &[String]) -> Result<Vec<PathBuf>, Error> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| words.is_empty() || words.iter().any(|word| path.to_string_lossy().contains(word)));
    paths.sort();
    if paths.is_empty() {
        return Err("no transcript has such a name".into());
    }
    Ok(paths)
}
