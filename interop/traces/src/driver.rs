//! A program with an informer in it, steered over its standard input and output.

use crate::protocol::{Call, Command, Described, Record, What};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::watch,
    task::JoinHandle,
};

/// A driver that does not do what it is told.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It cannot be started or talked to.
    #[error("cannot talk to the driver")]
    Io(#[from] std::io::Error),
    /// It ended before its time.
    #[error("the driver ended: {said}")]
    Ended {
        /// The end of its log.
        said: String,
    },
    /// A command cannot be written.
    #[error("cannot write a command")]
    Command(#[from] serde_json::Error),
}

/// A running driver. Dropping it kills it.
pub(crate) struct Driver {
    child: Child,
    stdin: ChildStdin,
    heard: Arc<Heard>,
    log: JoinHandle<String>,
    obeyed: usize,
}

/// What a driver said so far.
#[derive(Default)]
struct Heard {
    /// Held for one operation, never over an `.await`.
    said: Mutex<Said>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
pub(crate) struct Said {
    pub(crate) calls: HashMap<String, Vec<Call>>,
    /// How many calls a handler had had when it was said to be synced.
    pub(crate) synced: HashMap<String, usize>,
    pub(crate) store: Vec<Described>,
    pub(crate) index: BTreeMap<String, Vec<String>>,
    done: usize,
    ended: bool,
    unread: Vec<String>,
}

impl Said {
    /// Whether a handler was told this about an object.
    pub(crate) fn has(&self, handler: &str, what: What, key: &str) -> bool {
        let calls = self.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
        calls.iter().rev().any(|call| call.what == what && call.object.key == key)
    }

    fn hear(&mut self, record: Record) {
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
        let gone = || DriverError::Io(std::io::ErrorKind::BrokenPipe.into());
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let mut stderr = child.stderr.take().ok_or_else(gone)?;
        let heard = Arc::new(Heard::default());
        tokio::spawn(listen(stdout, Arc::clone(&heard)));
        let log = tokio::spawn(async move {
            let mut log = Vec::new();
            // What cannot be read is not shown; the log only explains failures.
            let _ = stderr.read_to_end(&mut log).await;
            String::from_utf8_lossy(&log).into_owned()
        });
        Ok(Self { child, stdin, heard, log, obeyed: 0 })
    }

    /// Gives a command and waits until it has been obeyed.
    pub(crate) async fn obey(&mut self, command: &Command) -> Result<(), DriverError> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        if self.stdin.write_all(&line).await.is_err() {
            return Err(self.ended().await);
        }
        self.obeyed += 1;
        let obeyed = self.obeyed;
        self.until(move |said| said.done >= obeyed).await
    }

    /// Resolves when `until` holds of what the driver said.
    pub(crate) async fn until(&mut self, until: impl Fn(&Said) -> bool) -> Result<(), DriverError> {
        let mut changed = self.heard.changed.subscribe();
        loop {
            let (holds, ended) = self.said(|said| (until(said), said.ended));
            match (holds, ended) {
                (true, _) => return Ok(()),
                (false, true) => return Err(self.ended().await),
                // The sender lives as long as this does.
                (false, false) => drop(changed.changed().await),
            }
        }
    }

    pub(crate) fn said<R>(&self, read: impl FnOnce(&Said) -> R) -> R {
        read(&self.heard.said())
    }

    async fn ended(&mut self) -> DriverError {
        // It has closed its output, so it ends, or is of no more use.
        let _ = self.child.kill().await;
        let log = (&mut self.log).await.unwrap_or_default();
        let unread = self.heard.said().unread.join("\n");
        let lines: Vec<&str> = unread.lines().chain(log.lines()).collect();
        DriverError::Ended { said: lines[lines.len().saturating_sub(20)..].join("\n") }
    }
}

impl Heard {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.said());
        self.changed.send_modify(|count| *count += 1);
    }
}

async fn listen(stdout: ChildStdout, heard: Arc<Heard>) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        heard.change(|said| match serde_json::from_str(&line) {
            Ok(record) => said.hear(record),
            Err(_) => said.unread.push(line),
        });
    }
    heard.change(|said| said.ended = true);
}
