//! Runs a script with one driver.

use crate::{
    driver::{Driver, DriverError, Output},
    encode,
    protocol::{Command, EventType},
    script::{AddHandler, Responded, Restore, Script, Step, Unordered},
    server::{Initial, Server},
    trace::{Segment, Trace},
};
use std::{collections::HashMap, fmt, path::Path, time::Duration};

/// Limit for one run. A script that takes longer waits for something that does not happen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The library whose informer runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// client-go.
    ClientGo,
    /// kube-informer.
    Ours,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientGo => "client-go",
            Self::Ours => "ours",
        })
    }
}

/// A script that could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The driver failed.
    #[error("{side}, step {step}: {source}")]
    Driver {
        /// The informer.
        side: Side,
        /// The step, counted from 1.
        step: usize,
        /// The cause.
        #[source]
        source: DriverError,
    },
    /// The condition that a step waits for did not occur.
    #[error("{side}: timed out after {TIMEOUT:?} at step {step}; trace so far:\n{so_far}")]
    TimedOut {
        /// The informer.
        side: Side,
        /// The step, counted from 1.
        step: usize,
        /// The trace so far.
        so_far: Trace,
    },
    /// The scripted server did not start.
    #[error("cannot start the scripted server: {0}")]
    Server(#[from] std::io::Error),
}

/// Runs a script with a driver and returns the trace.
pub async fn run(script: &Script, side: Side, program: &Path) -> Result<Trace, RunError> {
    let server = Server::start(script.server.clone()).await?;
    let failed = |step: usize| move |source| RunError::Driver { side, step, source };
    let driver = Driver::start(program).map_err(failed(0))?;
    let mut runner = Runner {
        script,
        side,
        server,
        driver,
        handlers: Vec::new(),
        segments: Vec::new(),
        resynced: HashMap::new(),
    };
    let mut step = 0;
    match tokio::time::timeout(TIMEOUT, runner.run(&mut step)).await {
        Ok(finished) => finished.map_err(failed(step))?,
        Err(_) => return Err(RunError::TimedOut { side, step, so_far: runner.trace() }),
    }
    Ok(runner.trace())
}

struct Runner<'a> {
    script: &'a Script,
    side: Side,
    server: Server,
    driver: Driver,
    /// The current handlers.
    handlers: Vec<String>,
    segments: Vec<Segment>,
    /// The number of resync calls of a handler that belong to the trace.
    resynced: HashMap<String, usize>,
}

impl Runner<'_> {
    async fn run(&mut self, at: &mut usize) -> Result<(), DriverError> {
        self.open().await?;
        for step in self.script.steps_for(self.side) {
            *at += 1;
            self.step(step).await?;
        }
        self.driver.execute(&Command::Dump).await?;
        self.driver.execute(&Command::Stop).await
    }

    async fn open(&mut self) -> Result<(), DriverError> {
        let setup = self.script.informer.clone();
        let open = Command::Open {
            server: self.server.url(),
            namespaces: setup.namespaces,
            selector: setup.selector,
            resync_ms: setup.resync_ms,
            indexes: setup.indexes,
        };
        self.driver.execute(&open).await
    }

    async fn step(&mut self, step: Step) -> Result<(), DriverError> {
        match step {
            Step::Put(put) => {
                self.server.change(|store| Some(store.put(&put.key, put.at, put.labels, put.node)));
            }
            Step::Delete(delete) => {
                self.server.change(|store| store.delete(&delete.key, delete.at));
            }
            Step::Compact => {
                self.server.change(|store| {
                    store.compact();
                    None
                });
            }
            Step::Restore(Restore { version, objects }) => {
                self.server.change(|store| {
                    store.restore(version, objects.iter().map(encode::pod));
                    None
                });
            }
            Step::Bookmark(version) => self.server.bookmark(version),
            Step::Hold => self.server.hold(true),
            Step::Release => self.server.hold(false),
            Step::Cut(cut) => self.server.cut(cut),
            Step::Error(error) => self.server.error(&error),
            Step::Send(events) => self.server.send(&events),
            Step::Initial(events) => self.server.initial(Initial { events, finished: true }),
            Step::Unfinished(events) => self.server.initial(Initial { events, finished: false }),
            Step::Refuse(fault) => self.server.refuse(fault),
            Step::Add(add) => self.add(add).await?,
            Step::Remove(handler) => {
                self.handlers.retain(|known| *known != handler);
                self.driver.execute(&Command::Remove { handler }).await?;
            }
            Step::Start => self.driver.execute(&Command::Start).await?,
            Step::Settle(unordered) => self.settle(unordered).await?,
            Step::Resynced(resynced) => {
                let (handler, calls) = (resynced.handler, resynced.calls);
                self.driver.wait_until(|output| resyncs(output, &handler) >= calls).await?;
                self.resynced.insert(handler, calls);
            }
            Step::Responded(Responded { client_go, ours }) => {
                let requests = if self.side == Side::Ours { ours } else { client_go };
                self.server.wait_for_responses(requests).await;
            }
            // Replaced by their content in `steps_for`.
            Step::ClientGo(_) | Step::Ours(_) => {}
        }
        Ok(())
    }

    async fn add(&mut self, add: AddHandler) -> Result<(), DriverError> {
        let AddHandler { handler, resync_ms, filter } = add;
        self.handlers.push(handler.clone());
        self.driver.execute(&Command::Add { handler, resync_ms, filter }).await
    }

    /// Waits until every handler has received every event: creates and deletes a fence object in each namespace with
    /// an open watch, and waits for both events. Calls are in order, so all earlier events have been received.
    async fn settle(&mut self, unordered: Unordered) -> Result<(), DriverError> {
        let namespaces = self.script.informer.namespaces.clone();
        self.server.wait_for_watches(namespaces.len().max(1)).await;
        let namespaces = if namespaces.is_empty() { vec!["default".to_owned()] } else { namespaces };
        let name = format!("{FENCE}{}", self.segments.len());
        let fences: Vec<String> = namespaces.iter().map(|namespace| format!("{namespace}/{name}")).collect();
        let labels = self.script.labels_for_all();
        for fence in &fences {
            self.server.change(|store| Some(store.put(fence, None, labels.clone(), None)));
        }
        self.wait_for_events(EventType::Add, &fences).await?;
        for fence in &fences {
            self.server.change(|store| store.delete(fence, None));
        }
        self.wait_for_events(EventType::Delete, &fences).await?;
        let handlers = self.handlers.clone();
        self.driver
            .wait_until(|output| handlers.iter().all(|handler| output.synced.contains_key(handler)))
            .await?;
        let calls = self
            .driver
            .output(|output| output.calls.iter().map(|(name, calls)| (name.clone(), calls.len())).collect());
        self.segments.push(Segment { unordered, calls });
        Ok(())
    }

    /// Waits until every handler has received an event of this type for each key.
    async fn wait_for_events(&mut self, event: EventType, keys: &[String]) -> Result<(), DriverError> {
        let handlers = self.handlers.clone();
        let received =
            |output: &Output, handler: &str| keys.iter().all(|key| output.has(handler, event, key));
        self.driver.wait_until(|output| handlers.iter().all(|handler| received(output, handler))).await
    }

    fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        let namespaces = &self.script.informer.namespaces;
        self.driver.output(|output| {
            trace.add_handlers(output, &self.segments, &self.resynced, namespaces);
            trace.add_cache(output);
        });
        if self.script.requests {
            trace.add_requests(self.server.requests());
        }
        trace
    }
}

/// The prefix of the names of fence objects.
pub(crate) const FENCE: &str = "fence-";

fn resyncs(output: &Output, handler: &str) -> usize {
    let calls = output.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
    calls.iter().filter(|call| crate::trace::is_resync(call)).count()
}
