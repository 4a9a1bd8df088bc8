//! A driver: a program with an informer, controlled over its standard input and output.

use crate::protocol::{Call, Command, EventType, ObjectState, Record};
use kube_informer_wire::sync::lock;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::watch,
    task::JoinHandle,
};

/// A failure of a driver.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It cannot be started, or its input and output cannot be used.
    #[error("cannot communicate with the driver: {0}")]
    Io(#[from] std::io::Error),
    /// It exited early.
    #[error("the driver exited early: {log}")]
    Exited {
        /// The last lines of its log.
        log: String,
    },
    /// A command cannot be encoded.
    #[error("cannot encode a command: {0}")]
    Command(#[from] serde_json::Error),
}

/// A running driver. Dropping it kills it.
pub(crate) struct Driver {
    child: Child,
    stdin: ChildStdin,
    output: Arc<SharedOutput>,
    log: JoinHandle<String>,
    /// Commands sent so far.
    commands: usize,
}

#[derive(Default)]
struct SharedOutput {
    /// Locked for one operation, never over an `.await`.
    output: Mutex<Output>,
    changed: watch::Sender<u64>,
}

/// The output of a driver so far.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) calls: HashMap<String, Vec<Call>>,
    /// The number of calls of a handler before it was reported as synced.
    pub(crate) synced: HashMap<String, usize>,
    pub(crate) store: Vec<ObjectState>,
    pub(crate) index: BTreeMap<String, Vec<String>>,
    done: usize,
    exited: bool,
    malformed_lines: Vec<String>,
}

impl Output {
    /// Returns whether a handler received an event of this type for an object.
    pub(crate) fn has(&self, handler: &str, event: EventType, key: &str) -> bool {
        let calls = self.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
        calls.iter().rev().any(|call| call.event == event && call.object.key == key)
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Done(_) => self.done += 1,
            Record::Call(call) => self.calls.entry(call.handler.clone()).or_default().push(call),
            Record::Synced(handler) => {
                let so_far = self.calls.get(&handler).map_or(0, Vec::len);
                self.synced.insert(handler, so_far);
            }
            Record::Store(store) => self.store = store,
            Record::Index(index) => self.index = index,
        }
    }
}

impl Driver {
    pub(crate) fn start(program: &Path) -> Result<Self, DriverError> {
        let mut child = tokio::process::Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let no_pipe = || DriverError::Io(std::io::ErrorKind::BrokenPipe.into());
        let stdin = child.stdin.take().ok_or_else(no_pipe)?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let mut stderr = child.stderr.take().ok_or_else(no_pipe)?;
        let output = Arc::new(SharedOutput::default());
        tokio::spawn(read_output(stdout, Arc::clone(&output)));
        let log = tokio::spawn(async move {
            let mut log = Vec::new();
            // A read error only shortens the log, which explains failures.
            let _ = stderr.read_to_end(&mut log).await;
            String::from_utf8_lossy(&log).into_owned()
        });
        Ok(Self { child, stdin, output, log, commands: 0 })
    }

    /// Sends a command and waits until it was executed.
    pub(crate) async fn execute(&mut self, command: &Command) -> Result<(), DriverError> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        if self.stdin.write_all(&line).await.is_err() {
            return Err(self.exited().await);
        }
        self.commands += 1;
        let commands = self.commands;
        self.wait_until(move |output| output.done >= commands).await
    }

    /// Waits until a condition of the output holds.
    pub(crate) async fn wait_until(
        &mut self,
        condition: impl Fn(&Output) -> bool,
    ) -> Result<(), DriverError> {
        let mut changed = self.output.changed.subscribe();
        loop {
            let (holds, exited) = self.output(|output| (condition(output), output.exited));
            match (holds, exited) {
                (true, _) => return Ok(()),
                (false, true) => return Err(self.exited().await),
                // The sender lives as long as this driver.
                (false, false) => drop(changed.changed().await),
            }
        }
    }

    pub(crate) fn output<R>(&self, read: impl FnOnce(&Output) -> R) -> R {
        read(&self.output.lock())
    }

    async fn exited(&mut self) -> DriverError {
        // It has closed its output: it has exited, or cannot be used any more.
        let _ = self.child.kill().await;
        let log = (&mut self.log).await.unwrap_or_default();
        let malformed = self.output.lock().malformed_lines.join("\n");
        let lines: Vec<&str> = malformed.lines().chain(log.lines()).collect();
        DriverError::Exited { log: lines[lines.len().saturating_sub(20)..].join("\n") }
    }
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, Output> {
        lock(&self.output)
    }

    fn change(&self, change: impl FnOnce(&mut Output)) {
        change(&mut self.lock());
        self.changed.send_modify(|count| *count += 1);
    }
}

async fn read_output(stdout: ChildStdout, output: Arc<SharedOutput>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        output.change(|output| match serde_json::from_str(&line) {
            Ok(record) => output.add(record),
            Err(_) => output.malformed_lines.push(line),
        });
    }
    output.change(|output| output.exited = true);
}
