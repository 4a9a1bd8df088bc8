//! Scripts: the steps of the server and the informer.

use crate::runner::Side;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

/// A script that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The script is malformed.
    #[error("malformed script {path}: {source}")]
    Parse {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

/// One script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The file name without `.json`.
    #[serde(skip)]
    pub name: String,
    /// The behaviour that it tests.
    pub purpose: String,
    #[serde(default)]
    pub(crate) server: ServerSetup,
    #[serde(default)]
    pub(crate) informer: InformerSetup,
    pub(crate) steps: Vec<Step>,
    /// Whether the trace contains the requests.
    #[serde(default = "yes")]
    pub(crate) requests: bool,
    /// The expected differences, in the order of the traces.
    #[serde(default)]
    pub differs: Vec<Difference>,
}

/// An expected difference between the traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The id of the deviation in `interop/README.md`.
    pub id: String,
    /// Lines that only client-go's trace has.
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
    /// The maximum number of items of a page, even if the client requests more.
    pub(crate) page: Option<usize>,
    /// The response to a watch from a compacted version.
    pub(crate) expired: Expired,
}

/// The server's response to streaming lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Streaming {
    #[default]
    Yes,
    /// It rejects them, like a server with the feature disabled.
    No,
    /// It sends the objects, but never the bookmark that ends them.
    NeverEnds,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expired {
    /// An ERROR event, like kube-apiserver with its watch cache.
    #[default]
    InStream,
    /// An HTTP status, like kube-apiserver without its watch cache.
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
    /// Creates or updates an object.
    Put(Put),
    /// Deletes an object.
    Delete(Delete),
    /// Sends a bookmark with this version.
    Bookmark(u64),
    /// Compacts the history: watches can no longer resume at an older version.
    Compact,
    /// Restores a backup: replaces all objects and sets an older version.
    Restore(Restore),
    /// Holds the responses to all requests.
    Hold,
    /// Releases the held responses.
    Release,
    /// Ends the open watches.
    Cut(Cut),
    /// Ends the open watches with an ERROR event.
    Error(ErrorStatus),
    /// Sends events on the open watches without a change of the store.
    Send(Vec<RawEvent>),
    /// The next streaming list sends these events instead of the objects, then the bookmark that ends them.
    Initial(Vec<RawEvent>),
    /// The next streaming list sends these events and closes, without the bookmark that ends them.
    Unfinished(Vec<RawEvent>),
    /// Injects faulty responses.
    Refuse(Fault),
    /// Adds a handler.
    Add(AddHandler),
    /// Removes a handler.
    Remove(String),
    /// Starts the informer.
    Start,
    /// Waits until the informer has an open watch and all handlers have received all events.
    Settle(Unordered),
    /// Waits until a handler has received this many resync events in total. The trace omits later ones, because their
    /// number depends on time.
    Resynced(Resynced),
    /// Waits until this many requests in total have got a response.
    Responded(Responded),
    /// Steps for the run with client-go only.
    ClientGo(Vec<Step>),
    /// Steps for the run with our informer only.
    Ours(Vec<Step>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    pub(crate) key: String,
    /// The resource version, by default the next one.
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
    pub(crate) objects: Vec<GivenObject>,
}

/// An object with a given version and uid.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenObject {
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
    /// In the middle of a line, with a broken connection.
    Broken,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorStatus {
    pub(crate) code: u16,
    pub(crate) reason: String,
    /// The reason of a cause in `details.causes`.
    pub(crate) cause: Option<String>,
    pub(crate) retry_after: Option<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RawEvent {
    /// An event about a pod.
    Pod {
        #[serde(rename = "type")]
        kind: String,
        #[serde(flatten)]
        object: GivenObject,
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
    pub(crate) to: RequestClass,
    pub(crate) with: FaultResponse,
    #[serde(default = "once")]
    pub(crate) times: u32,
}

fn once() -> u32 {
    1
}

/// The faulty response to a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultResponse {
    /// This status.
    Status(ErrorStatus),
    /// 200 with an empty body.
    Nothing,
    /// No response: the connection is closed.
    HangUp,
}

/// A class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestClass {
    /// A list, or its first page.
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

/// The calls since the last `settle` that may be in any order: exactly those that client-go does not order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unordered {
    /// None.
    InOrder,
    /// Initial adds: client-go keeps a streaming list, and the snapshot for a late handler, in a map.
    Initial,
    /// Initial adds, and then those of a relist.
    InitialThenRelist,
    /// The deletes of a relist by streaming list among themselves, and then its adds and updates.
    Relist,
    /// The deletes of a relist by LIST among themselves. Its adds and updates are ordered.
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
pub(crate) struct Responded {
    #[serde(rename = "client-go")]
    pub(crate) client_go: usize,
    pub(crate) ours: usize,
}

impl Script {
    /// Reads the scripts of a directory, ordered by name.
    pub fn read_all(directory: &Path) -> Result<Vec<Self>, ScriptError> {
        let failed = |source| ScriptError::Read { path: directory.display().to_string(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ScriptError> {
        let display = || path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| ScriptError::Read { path: display(), source })?;
        let script: Self =
            serde_json::from_str(&text).map_err(|source| ScriptError::Parse { path: display(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, ..script })
    }

    /// The JSON of this script.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The steps for one side.
    pub(crate) fn steps_for(&self, side: Side) -> Vec<Step> {
        let select = |step: &Step| match (step, side) {
            (Step::ClientGo(steps), Side::ClientGo) | (Step::Ours(steps), Side::Ours) => steps.clone(),
            (Step::ClientGo(_) | Step::Ours(_), _) => Vec::new(),
            (step, _) => vec![step.clone()],
        };
        self.steps.iter().flat_map(select).collect()
    }

    /// Labels that match the selector and the filters of all handlers.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts() -> Vec<Script> {
        Script::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")).unwrap()
    }

    #[test]
    fn every_script_can_be_read_and_ends_with_settle() {
        let scripts = scripts();
        assert!(scripts.len() >= 30);
        for script in &scripts {
            let last = script.steps_for(Side::Ours).pop();
            assert!(matches!(last, Some(Step::Settle(_))), "{}", script.name);
        }
    }

    #[test]
    fn every_difference_is_explained() {
        let explained = include_str!("../../../docs/deviations.md");
        let listed = include_str!("../../README.md");
        for Difference { id, .. } in scripts().iter().flat_map(|script| &script.differs) {
            assert!(explained.contains(&format!("(`{id}`)")), "{id} is not in docs/deviations.md");
            assert!(listed.contains(&format!("| `{id}` |")), "{id} is not in interop/README.md");
        }
    }
}
