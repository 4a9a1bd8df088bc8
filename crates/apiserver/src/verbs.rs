//! One file for each verb, and the parts they share. A verb takes a resolved request and returns a response or a
//! [`VerbError`](error::VerbError).
//!
//! A write goes decode → prepare → validate → storage; a read goes options → watch cache. Nothing here depends on HTTP, and nothing
//! tests for a resource by name: resources differ by their rules and their lifecycle.

pub(crate) mod apply;
mod context;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod error;
pub(crate) mod eviction;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod namespaces;
pub(crate) mod options;
pub(crate) mod patch;
mod pod_parts;
pub(crate) mod pods;
pub(crate) mod reviews;
pub(crate) mod scale;
pub(crate) mod token_request;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use self::context::WriteContext;
use self::error::{RequestError, Target};
use self::options::Query;
use crate::authentication::User;
use crate::clock::Clock;
use crate::managed::Writer;
use crate::registry::{Object, Resource, Subresource};
use crate::storage::Stored;
use crate::watch_cache::{ListResponse, WatchStream};
use crate::work::Work;

/// A request to a resource, its path resolved and its body read.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) resource: Arc<Resource>,
    /// `None` for cluster-scoped resources and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// `None` for a collection.
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) query: Query,
    /// Names the field manager if the query does not.
    pub(crate) user_agent: String,
    /// Media type of the body, lower case, without parameters.
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    pub(crate) user: User,
    /// The work on it so far.
    pub(crate) work: Work,
}

/// The response of a verb.
pub(crate) struct Response {
    pub(crate) content: Content,
    /// Sent as `Warning` headers with any content.
    pub(crate) warnings: Vec<String>,
}

/// The content of a response.
pub(crate) enum Content {
    Object {
        code: u16,
        object: Shown,
    },
    /// An object of another kind than the resource's: a Scale or a TokenRequest.
    OtherKind {
        code: u16,
        object: serde_json::Value,
    },
    List(ListResponse),
    Watch(WatchStream),
    /// The object was removed, and is not part of the response.
    Deleted {
        target: Box<Target>,
        uid: Option<String>,
    },
    /// A binding or an eviction.
    Created,
}

/// An object to show: as stored, or as it would be.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    Stored(Arc<Stored>),
    Made(Box<Object>),
}

impl Response {
    fn new(content: Content) -> Self {
        Self { content, warnings: Vec::new() }
    }

    pub(crate) fn object(code: u16, object: Shown) -> Self {
        Self::new(Content::Object { code, object })
    }

    pub(crate) fn stored(code: u16, stored: Arc<Stored>) -> Self {
        Self::object(code, Shown::Stored(stored))
    }

    pub(crate) fn made(code: u16, object: Object) -> Self {
        Self::object(code, Shown::Made(Box::new(object)))
    }

    pub(crate) fn list(list: ListResponse) -> Self {
        Self::new(Content::List(list))
    }

    pub(crate) fn watch(stream: WatchStream) -> Self {
        Self::new(Content::Watch(stream))
    }

    pub(crate) fn deleted(target: Target, uid: Option<String>) -> Self {
        Self::new(Content::Deleted { target: Box::new(target), uid })
    }

    pub(crate) fn created() -> Self {
        Self::new(Content::Created)
    }

    pub(crate) fn with_warnings(mut self, more: Vec<String>) -> Self {
        self.warnings.extend(more);
        self
    }
}

impl Request {
    /// The field manager of this request.
    pub(crate) fn writer(&self, clock: &Clock) -> Writer {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        let manager = [self.query.text("fieldManager"), agent, "unknown"].into_iter().find(|m| !m.is_empty());
        Writer {
            manager: manager.unwrap_or_default().to_owned(),
            subresource: self.subresource,
            now: clock.timestamp(),
        }
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name of the object, for verbs on one object. A path without a name leads to other verbs, so the error is not expected.
    pub(crate) fn name(&self) -> Result<&str, RequestError> {
        self.name.as_deref().ok_or(RequestError::NoSuchResource)
    }

    pub(crate) fn key(&self) -> Result<String, RequestError> {
        Ok(self.resource.storage_key(self.namespace(), self.name()?))
    }
}
