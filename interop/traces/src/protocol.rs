//! The protocol between runner and drivers: one JSON object per line.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line to a driver, which responds with [`Record::Done`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Create an informer for pods.
    Open {
        /// The URL of the server.
        server: String,
        /// The namespaces to watch. Empty means all.
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
    /// Remove a handler, and wait until none of its calls are running.
    Remove {
        /// Its name.
        handler: String,
    },
    /// Start the informer.
    Start,
    /// Write the content of the store and the indexes.
    Dump,
    /// Stop the informer and exit.
    Stop,
}

/// A line from a driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A command was executed.
    Done(String),
    /// A handler was called.
    Call(Call),
    /// A handler has received all initial objects.
    Synced(String),
    /// The objects in the store, ordered by key.
    Store(Vec<ObjectState>),
    /// The keys under each `index=value`.
    Index(BTreeMap<String, Vec<String>>),
}

/// A call of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The handler.
    pub handler: String,
    /// Add, update or delete.
    pub event: EventType,
    /// For an add: whether the object existed before the handler.
    #[serde(default)]
    pub initial: bool,
    /// For a delete: whether the final state is unknown.
    #[serde(default)]
    pub unknown: bool,
    /// For an update: the old object.
    #[serde(default)]
    pub old: Option<ObjectState>,
    /// The object; for an update the new one.
    pub object: ObjectState,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// The object is new.
    Add,
    /// The object changed, or this is a resync.
    Update,
    /// The object was deleted.
    Delete,
}

/// The state of an object in a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectState {
    /// `namespace/name`.
    pub key: String,
    /// Its resource version.
    pub version: String,
    /// Its uid.
    pub uid: String,
}
