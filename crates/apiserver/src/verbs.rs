//! One file per verb: each takes a resolved request and returns a response or a `Status`.
//!
//! A write goes decode → prepare → validate → storage; a read goes options → watch cache. Nothing here knows of HTTP beyond
//! what a request carries, and nothing tests for a resource by name: its rules and its lifecycle say how it differs.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod definitions;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod namespaces;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod pods;
pub(crate) mod reviews;
pub(crate) mod scale;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;

use self::options::Query;
use crate::engine::Engine;
use crate::managed::Writer;
use crate::registry::{Object, Resource, Subresource};
use crate::status::Status;
use crate::storage::Stored;
use crate::watch_cache::{ListResponse, WatchStream};

/// A request to a resource, its path resolved and its body read.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) resource: Arc<Resource>,
    /// Empty for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) query: Query,
    /// Who writes, if the query does not say.
    pub(crate) user_agent: String,
    /// Media type of the body, lower case, without parameters.
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

/// What a verb answers.
pub(crate) enum Answer {
    Object {
        code: u16,
        object: Shown,
        /// What the client should hear though the request succeeded.
        warnings: Vec<String>,
    },
    /// An object of another kind than the resource's: a Scale.
    Scale {
        code: u16,
        scale: serde_json::Value,
    },
    List(ListResponse),
    Watch(WatchStream),
    Status(Status),
}

/// An object to show: as stored, or as it would be.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    Stored(Arc<Stored>),
    Made(Box<Object>),
}

impl Answer {
    pub(crate) fn stored(code: u16, stored: Arc<Stored>) -> Self {
        Self::Object { code, object: Shown::Stored(stored), warnings: Vec::new() }
    }

    pub(crate) fn made(code: u16, object: Object) -> Self {
        Self::Object { code, object: Shown::Made(Box::new(object)), warnings: Vec::new() }
    }

    pub(crate) fn with_warnings(mut self, more: Vec<String>) -> Self {
        if let Self::Object { warnings, .. } = &mut self {
            warnings.extend(more);
        }
        self
    }
}

impl Request {
    /// Who owns what this request writes.
    pub(crate) fn writer(&self, engine: &Engine) -> Writer {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        let manager = [self.query.text("fieldManager"), agent, "unknown"].into_iter().find(|m| !m.is_empty());
        Writer {
            manager: manager.unwrap_or_default().to_owned(),
            subresource: self.subresource.map_or("", Subresource::name).to_owned(),
            now: engine.now_text(),
        }
    }

    pub(crate) fn key(&self) -> String {
        self.resource.storage_key(&self.namespace, &self.name)
    }
}
