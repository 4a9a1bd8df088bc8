//! Scripts: what happens, step by step.

use crate::conductor::Side;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not a script.
    #[error("{path} is not a script: {source}")]
    Parse {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// One script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its file's name without `.json`.
    #[serde(skip)]
    pub name: String,
    /// What it shows.
    pub purpose: String,
    #[serde(default)]
    pub(crate) server: ServerSetup,
    #[serde(default)]
    pub(crate) informer: InformerSetup,
    pub(crate) steps: Vec<Step>,
    /// Whether the requests are part of the trace.
    #[serde(default = "yes")]
    pub(crate) requests: bool,
    /// Where the two traces differ, in the order of the traces.
    #[serde(default)]
    pub differs: Vec<Difference>,
}

/// A difference between the traces that is meant to be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Which deviation of the list in `interop/README.md` this is.
    pub id: String,
    /// Lines that only the trace of client-go has.
    #[serde(default, rename = "client-go")]
    pub client_go: Vec<String>,
    /// Lines that only our trace has.
    #[serde(default)]
    pub ours: Vec<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSetup {
    pub(crate) streaming: Streaming,
    /// Most items of a page, whatever the limit that a client asks for.
    pub(crate) page: Option<usize>,
    /// How a watch from a forgotten version is refused.
    pub(crate) expired: Expired,
}

/// What the server does with streaming lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Streaming {
    #[default]
    Yes,
    /// It refuses them, like a server that has them switched off.
    No,
    /// It sends the objects and never says that those were all.
    NeverEnds,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expired {
    /// With an ERROR event, like the watch cache of an API server.
    #[default]
    InStream,
    /// With a status code, like an API server without watch cache.
    Http,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InformerSetup {
    pub(crate) namespaces: Vec<String>,
    pub(crate) selector: String,
    pub(crate) resync_ms: Option<u64>,
    pub(crate) indexes: BTreeMap<String, String>,
}

/// One step of a script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Creates or changes an object.
    Put(Put),
    /// Deletes an object.
    Delete(Delete),
    /// Says that everything up to a version has been sent.
    Bookmark(u64),
    /// Forgets what happened so far: watches can no longer resume before this.
    Compact,
    /// Goes back to an earlier state, as when a backup is restored; versions go back too.
    Restore(Restore),
    /// Lets requests wait.
    Hold,
    /// Answers the requests that wait, and those to come.
    Release,
    /// Ends the open watches.
    Cut(Cut),
    /// Ends the open watches with an ERROR event.
    Error(Refusal),
    /// Sends something on the open watches that did not happen, or that did, once more.
    Send(Vec<Sent>),
    /// The next streaming list sends these events before the one that ends it, instead of the objects.
    Initial(Vec<Sent>),
    /// The next streaming list sends these events and ends, without having said that those were all.
    Unfinished(Vec<Sent>),
    /// Does not answer requests as it should.
    Refuse(Fault),
    /// Adds a handler.
    Add(AddHandler),
    /// Removes a handler.
    Remove(String),
    /// Starts the informer.
    Start,
    /// Waits until the informer follows a watch and all handlers have heard of everything.
    Settle(Unordered),
    /// Waits until a handler got this many calls of resyncs in all. Later ones are left out of the trace: how
    /// many there are depends on time.
    Resynced(Resynced),
    /// Waits until this many requests in all have been answered.
    Answered(Answered),
    /// Steps for the run with client-go only.
    ClientGo(Vec<Step>),
    /// Steps for the run with our informer only.
    Ours(Vec<Step>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    pub(crate) key: String,
    /// Its version; by default the next one.
    pub(crate) at: Option<u64>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) node: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delete {
    pub(crate) key: String,
    pub(crate) at: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    pub(crate) version: u64,
    pub(crate) objects: Vec<Known>,
}

/// An object with a version and uid of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    pub(crate) key: String,
    pub(crate) version: u64,
    pub(crate) uid: u64,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cut {
    /// Between two events.
    Clean,
    /// In the middle of a line, the connection breaks.
    Broken,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// A cause in the details of the status.
    pub(crate) cause: Option<String>,
    pub(crate) retry_after: Option<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Sent {
    /// An event about a pod.
    Pod {
        #[serde(rename = "type")]
        kind: String,
        #[serde(flatten)]
        object: Known,
    },
    /// An event with any object.
    Any {
        #[serde(rename = "type")]
        kind: String,
        object: Value,
    },
    /// Any text.
    Line { line: String },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) to: Request,
    pub(crate) with: Answer,
    #[serde(default = "once")]
    pub(crate) times: u32,
}

fn once() -> u32 {
    1
}

/// How a request is not answered as it should be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// With this status.
    Status(Refusal),
    /// With 200 and nothing more.
    Nothing,
    /// Not at all: the connection ends.
    HangUp,
}

/// A class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// The first page of a list, or all of it.
    List,
    /// A later page.
    NextPage,
    /// A streaming list.
    Stream,
    /// A watch.
    Watch,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddHandler {
    pub(crate) handler: String,
    pub(crate) resync_ms: Option<u64>,
    #[serde(default)]
    pub(crate) filter: String,
}

/// Which calls since the step before may come in any order: exactly those that client-go gives no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unordered {
    /// None.
    InOrder,
    /// Initial adds: client-go keeps a streaming list, and the snapshot for a late handler, in a map.
    Initial,
    /// Initial adds, and then what a relist shows.
    InitialThenRelist,
    /// The deletes of a relist among themselves, and then its adds and updates: it came as a streaming list.
    Relist,
    /// The deletes of a relist among themselves; it came as a list, which has an order.
    RelistInOrder,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resynced {
    pub(crate) handler: String,
    pub(crate) calls: usize,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answered {
    #[serde(rename = "client-go")]
    pub(crate) client_go: usize,
    pub(crate) ours: usize,
}

impl Script {
    /// Reads the scripts of a directory, in order of their names.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>, ScriptError> {
        let unread = |source| ScriptError::Read { path: directory.display().to_string(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unread)? {
            let path = entry.map_err(unread)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ScriptError> {
        let shown = || path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| ScriptError::Read { path: shown(), source })?;
        let script: Self =
            serde_json::from_str(&text).map_err(|source| ScriptError::Parse { path: shown(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, ..script })
    }

    /// The text that reads as this script.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The steps of a run with one side.
    pub(crate) fn steps_for(&self, side: Side) -> Vec<Step> {
        let pick = |step: &Step| match (step, side) {
            (Step::ClientGo(steps), Side::ClientGo) | (Step::Ours(steps), Side::Ours) => steps.clone(),
            (Step::ClientGo(_) | Step::Ours(_), _) => Vec::new(),
            (step, _) => vec![step.clone()],
        };
        self.steps.iter().flat_map(pick).collect()
    }

    /// Labels that an object needs so that every handler hears of it.
    pub(crate) fn labels_for_all(&self) -> BTreeMap<String, String> {
        let filters = self.steps.iter().filter_map(|step| match step {
            Step::Add(add) => Some(add.filter.as_str()),
            _ => None,
        });
        let pairs =
            filters.chain([self.informer.selector.as_str()]).filter_map(|label| label.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}
