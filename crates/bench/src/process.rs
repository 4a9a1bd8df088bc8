//! A child process and its resource usage.

use anyhow::{Context, bail};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// Time limit of a response. Packing a million objects again takes half an hour.
const TIMEOUT: Duration = Duration::from_secs(4000);
/// Clock ticks per second in `/proc`: 100 on Linux.
const TICKS: f64 = 100.0;

/// A process that reads commands from standard input. Stops when dropped.
pub(crate) struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    responses: Receiver<String>,
}

impl Process {
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::start_with(program, arguments, &[])
    }

    pub(crate) fn start_with(
        program: &Path,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("no standard output")?;
        let (send, responses) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { name, input: child.stdin.take(), child, responses })
    }

    /// Sends a command and waits for the response.
    pub(crate) fn request(&mut self, command: &str) -> anyhow::Result<Value> {
        let input = self.input.as_mut().context("no standard input")?;
        writeln!(input, "{command}").with_context(|| format!("{} has exited", self.name))?;
        let line = self
            .responses
            .recv_timeout(TIMEOUT)
            .with_context(|| format!("{} does not respond to {command:?}", self.name))?;
        let response: Value =
            serde_json::from_str(&line).with_context(|| format!("{} responds with {line:?}", self.name))?;
        if let Some(error) = response.get("error") {
            bail!("{}: {command}: {}", self.name, error.as_str().unwrap_or("failed"));
        }
        Ok(response)
    }

    /// Waits for a version, and then until the number of calls stays the same for some time. Returns the last response.
    pub(crate) fn wait_until_idle(&mut self, version: &Value, idle: Duration) -> anyhow::Result<Value> {
        let mut calls = self.request(&format!("await {version}"))?;
        loop {
            std::thread::sleep(idle);
            let now = self.request(&format!("await {version}"))?;
            if now["calls"] == calls["calls"] {
                return Ok(now);
            }
            calls = now;
        }
    }

    /// Ends the process without giving it a chance to do anything, as `kill -9` does.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Resident memory, in bytes.
    pub(crate) fn rss(&self) -> anyhow::Result<u64> {
        self.status("VmRSS:")
    }

    /// Peak of resident memory since the last reset, in bytes.
    pub(crate) fn peak(&self) -> anyhow::Result<u64> {
        self.status("VmHWM:")
    }

    pub(crate) fn reset_peak(&self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.child.id());
        std::fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// CPU time so far, in seconds.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program is in parentheses and may contain any character.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok());
        let (user, system) = ticks(11).zip(ticks(12)).context("cannot read the processor time")?;
        Ok((user + system) / TICKS)
    }

    fn status(&self, field: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process exits when its input is closed; otherwise it is killed.
        drop(self.input.take());
        std::thread::sleep(Duration::from_millis(50));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
