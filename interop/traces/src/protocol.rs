//! What conductor and drivers say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line to a driver. Each is answered by [`Record::Done`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Make an informer for pods.
    Open {
        /// Where the server is.
        server: String,
        /// The namespaces to cover; none is all.
        #[serde(default)]
        namespaces: Vec<String>,
        /// A label selector.
        #[serde(default)]
        selector: String,
        /// The resync period.
        #[serde(default)]
        resync_ms: Option<u64>,
        /// Indexes by name: `label:<key>` or `node`.
        #[serde(default)]
        indexes: BTreeMap<String, String>,
    },
    /// Add a handler.
    Add {
        /// Its name in the trace.
        handler: String,
        /// Its resync period, if not that of the informer.
        #[serde(default)]
        resync_ms: Option<u64>,
        /// Pass only objects with this label, `key=value`.
        #[serde(default)]
        filter: String,
    },
    /// Remove a handler, and wait until it does not run any more.
    Remove {
        /// Its name.
        handler: String,
    },
    /// Start the informer.
    Start,
    /// Write store and indexes.
    Dump,
    /// Stop the informer and end.
    Stop,
}

/// A line from a driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A command has been obeyed.
    Done(String),
    /// A handler was called.
    Call(Call),
    /// A handler has been told of everything that was there before it.
    Synced(String),
    /// What the store holds, in order of keys.
    Store(Vec<Described>),
    /// The keys under each `index=value`.
    Index(BTreeMap<String, Vec<String>>),
}

/// A call of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which handler.
    pub handler: String,
    /// Add, update or delete.
    pub what: What,
    /// Of an add: whether the object was there before the handler.
    #[serde(default)]
    pub initial: bool,
    /// Of a delete: whether the final state is unknown.
    #[serde(default)]
    pub unknown: bool,
    /// Of an update: the state before.
    #[serde(default)]
    pub old: Option<Described>,
    /// The object.
    pub object: Described,
}

/// What a handler is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An object is new.
    Add,
    /// An object changed, or a resync is due.
    Update,
    /// An object is gone.
    Delete,
}

/// What a trace says about an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// `namespace/name`.
    pub key: String,
    /// Its resource version.
    pub version: String,
    /// Its uid.
    pub uid: String,
}
