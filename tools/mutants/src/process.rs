//! Runs a program with limits: of a mutant, anything is possible.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// Address space of one process, in KiB.
pub const MEMORY: u64 = 8 << 20;

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    /// It failed, with the line that says so, or its exit status.
    Failed(String),
    TimedOut,
}

/// A program that is run with limits, in its own process group.
pub struct Limited<'a> {
    pub program: &'a Path,
    pub directory: &'a Path,
    /// Directory of temporary files.
    pub temporary: &'a Path,
    pub timeout: Duration,
    /// Returns whether a line of the output says that the program has failed. The program is then killed.
    pub is_failure: fn(&str) -> bool,
    /// Beginning of a line without which the program has not done its work, although it did not fail.
    pub proof: &'a str,
    /// File for the standard error, which is discarded otherwise.
    pub errors: Option<&'a Path>,
}

impl Limited<'_> {
    /// Runs the program. Kills all its processes before it returns.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A], variables: &[(&str, &OsStr)]) -> Result<End> {
        // The limit of processor time ends an endless loop even if this program is killed.
        let seconds = 4 * self.timeout.as_secs() + 60;
        let errors = self.errors.map(File::create).transpose().context("cannot create a file")?;
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -c 0; ulimit -v {MEMORY}; ulimit -t {seconds}; exec \"$@\""), "sh"])
            .arg(self.program)
            .args(arguments)
            .current_dir(self.directory)
            .env("CARGO_MANIFEST_DIR", self.directory)
            .env("TMPDIR", self.temporary)
            // Tests with random input get the same input for all mutants, and do not look for the simplest failure.
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors.map_or_else(Stdio::null, Stdio::from))
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let group = Pid::from_child(&child);
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let (sender, lines) = mpsc::channel();
        // Ends with the last process that has the output open, all of which are killed below.
        let reader = thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let deadline = Instant::now() + self.timeout;
        let mut is_proven = false;
        let early = loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if (self.is_failure)(&line) => break Some(End::Failed(line)),
                Ok(line) => is_proven |= line.starts_with(self.proof),
                Err(RecvTimeoutError::Timeout) => break Some(End::TimedOut),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        if early.is_some() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child.wait()?;
        // Processes that the program left behind.
        let _ = kill_process_group(group, Signal::KILL);
        drop(lines);
        let _ = reader.join();
        match early {
            Some(end) => Ok(end),
            None if !status.success() => Ok(End::Failed(status.to_string())),
            None if is_proven => Ok(End::Passed),
            None => bail!("{} succeeded without the line `{}`", self.program.display(), self.proof),
        }
    }
}

/// Runs a program to its end and returns its output.
pub fn output(program: &Path, arguments: &[&str], directory: &Path) -> Result<String> {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    Ok(String::from_utf8(output.stdout)?)
}
