//! Playing a script with one side.

use crate::{
    driver::{Driver, DriverError, Said},
    protocol::{Command, What},
    script::{AddHandler, Answered, Restore, Script, Step, Unordered},
    server::{Initial, Server},
    trace::{Segment, Trace},
    wire,
};
use std::{collections::HashMap, fmt, path::Path, time::Duration};

/// How long one run may take: a script that takes longer waits for something that does not happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose informer plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// client-go's.
    ClientGo,
    /// Ours.
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

/// A script that could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The driver failed.
    #[error("{side}, step {step}: {source}")]
    Driver {
        /// Whose informer.
        side: Side,
        /// Which step, counted from 1.
        step: usize,
        /// Why.
        #[source]
        source: DriverError,
    },
    /// What a step waits for did not happen.
    #[error("{side}: waited {PATIENCE:?} in vain at step {step}; so far:\n{so_far}")]
    Stuck {
        /// Whose informer.
        side: Side,
        /// Which step, counted from 1.
        step: usize,
        /// The trace so far.
        so_far: Trace,
    },
    /// The server did not start.
    #[error("cannot start the scripted server")]
    Server(#[from] std::io::Error),
}

/// Plays a script with a driver and returns what happened.
pub async fn run(script: &Script, side: Side, program: &Path) -> Result<Trace, RunError> {
    let server = Server::start(script.server.clone()).await?;
    let failed = |step: usize| move |source| RunError::Driver { side, step, source };
    let driver = Driver::start(program).map_err(failed(0))?;
    let mut conductor = Conductor {
        script,
        side,
        server,
        driver,
        handlers: Vec::new(),
        segments: Vec::new(),
        resynced: HashMap::new(),
    };
    let mut step = 0;
    match tokio::time::timeout(PATIENCE, conductor.play(&mut step)).await {
        Ok(played) => played.map_err(failed(step))?,
        Err(_) => return Err(RunError::Stuck { side, step, so_far: conductor.trace() }),
    }
    Ok(conductor.trace())
}

struct Conductor<'a> {
    script: &'a Script,
    side: Side,
    server: Server,
    driver: Driver,
    /// Those that are there now.
    handlers: Vec<String>,
    segments: Vec<Segment>,
    /// How many calls of resyncs of a handler count.
    resynced: HashMap<String, usize>,
}

impl Conductor<'_> {
    async fn play(&mut self, at: &mut usize) -> Result<(), DriverError> {
        self.open().await?;
        for step in self.script.steps_for(self.side) {
            *at += 1;
            self.step(step).await?;
        }
        self.driver.obey(&Command::Dump).await?;
        self.driver.obey(&Command::Stop).await
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
        self.driver.obey(&open).await
    }

    async fn step(&mut self, step: Step) -> Result<(), DriverError> {
        match step {
            Step::Put(put) => {
                self.server.change(|world| Some(world.put(&put.key, put.at, put.labels, put.node)));
            }
            Step::Delete(delete) => {
                self.server.change(|world| world.delete(&delete.key, delete.at));
            }
            Step::Compact => {
                self.server.change(|world| {
                    world.compact();
                    None
                });
            }
            Step::Restore(Restore { version, objects }) => {
                self.server.change(|world| {
                    world.restore(version, objects.iter().map(wire::pod));
                    None
                });
            }
            Step::Bookmark(version) => self.server.bookmark(version),
            Step::Hold => self.server.hold(true),
            Step::Release => self.server.hold(false),
            Step::Cut(cut) => self.server.cut(cut),
            Step::Error(refusal) => self.server.error(&refusal),
            Step::Send(sent) => self.server.send(&sent),
            Step::Initial(sent) => self.server.initial(Initial { sent, finished: true }),
            Step::Unfinished(sent) => self.server.initial(Initial { sent, finished: false }),
            Step::Refuse(fault) => self.server.refuse(fault),
            Step::Add(add) => self.add(add).await?,
            Step::Remove(handler) => {
                self.handlers.retain(|known| *known != handler);
                self.driver.obey(&Command::Remove { handler }).await?;
            }
            Step::Start => self.driver.obey(&Command::Start).await?,
            Step::Settle(unordered) => self.settle(unordered).await?,
            Step::Resynced(resynced) => {
                let (handler, calls) = (resynced.handler, resynced.calls);
                self.driver.until(|said| resyncs(said, &handler) >= calls).await?;
                self.resynced.insert(handler, calls);
            }
            Step::Answered(Answered { client_go, ours }) => {
                let requests = if self.side == Side::Ours { ours } else { client_go };
                self.server.answered(requests).await;
            }
            // Picked apart before.
            Step::ClientGo(_) | Step::Ours(_) => {}
        }
        Ok(())
    }

    async fn add(&mut self, add: AddHandler) -> Result<(), DriverError> {
        let AddHandler { handler, resync_ms, filter } = add;
        self.handlers.push(handler.clone());
        self.driver.obey(&Command::Add { handler, resync_ms, filter }).await
    }

    /// Waits until everybody has heard of everything: an object of our own comes and goes behind all the
    /// others, on a watch that is open, and calls come in order.
    async fn settle(&mut self, unordered: Unordered) -> Result<(), DriverError> {
        let namespaces = self.script.informer.namespaces.clone();
        self.server.watched(namespaces.len().max(1)).await;
        let namespaces = if namespaces.is_empty() { vec!["default".to_owned()] } else { namespaces };
        let name = format!("{FENCE}{}", self.segments.len());
        let fences: Vec<String> = namespaces.iter().map(|namespace| format!("{namespace}/{name}")).collect();
        let labels = self.script.labels_for_all();
        for fence in &fences {
            self.server.change(|world| Some(world.put(fence, None, labels.clone(), None)));
        }
        self.told(What::Add, &fences).await?;
        for fence in &fences {
            self.server.change(|world| world.delete(fence, None));
        }
        self.told(What::Delete, &fences).await?;
        let handlers = self.handlers.clone();
        self.driver.until(|said| handlers.iter().all(|handler| said.synced.contains_key(handler))).await?;
        let calls = self
            .driver
            .said(|said| said.calls.iter().map(|(name, calls)| (name.clone(), calls.len())).collect());
        self.segments.push(Segment { unordered, calls });
        Ok(())
    }

    /// Waits until every handler has been told this about each of these objects.
    async fn told(&mut self, what: What, keys: &[String]) -> Result<(), DriverError> {
        let handlers = self.handlers.clone();
        let told = |said: &Said, handler: &str| keys.iter().all(|key| said.has(handler, what, key));
        self.driver.until(|said| handlers.iter().all(|handler| told(said, handler))).await
    }

    fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        let namespaces = &self.script.informer.namespaces;
        self.driver.said(|said| {
            trace.handlers(said, &self.segments, &self.resynced, namespaces);
            trace.content(said);
        });
        if self.script.requests {
            trace.requests(self.server.requests());
        }
        trace
    }
}

/// How the names of our own objects begin.
pub(crate) const FENCE: &str = "fence-";

fn resyncs(said: &Said, handler: &str) -> usize {
    let calls = said.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
    calls.iter().filter(|call| crate::trace::is_resync(call)).count()
}
