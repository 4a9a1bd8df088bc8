//! Writes as requests, and the outcomes of their responses.

use crate::{
    barrier::Ticket,
    failure::BoxError,
    leadership::NotLeading,
    time,
    write_error::{NoResponse, WriteError, is_unserved},
};
use kube_informer::{Kind, ObjectKey};
use serde_json::Value;
use std::time::Duration;

/// A write that can be sent.
pub(crate) struct Write {
    pub(crate) target: Target,
    pub(crate) request: http::Request<Vec<u8>>,
}

/// What a write is about.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) verb: &'static str,
    pub(crate) kind: Kind,
    /// The name is empty if the server generates it.
    pub(crate) key: ObjectKey,
}

/// An object of a cluster-scoped type in a namespace.
#[derive(Debug, thiserror::Error)]
#[error(
    "the type is cluster-scoped, but the object is in a namespace: derive the type with #[kube(namespaced)]"
)]
struct ScopeMismatch;

/// A namespace that cannot be part of a path.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not the name of a namespace")]
struct InvalidNamespace(String);

impl Target {
    pub(crate) fn new(verb: &'static str, kind: &Kind, key: ObjectKey) -> Self {
        Self { verb, kind: kind.clone(), key }
    }

    /// Builds requests for the collection of the object.
    pub(crate) fn requests(&self) -> Result<kube::core::Request, WriteError> {
        let Kind { group, version, plural, namespaced, .. } = &self.kind;
        let api =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let path = match self.key.namespace() {
            // The server would respond with 404 to a path without the namespace.
            Some(_) if !namespaced => return Err(self.not_sent(ScopeMismatch)),
            Some(namespace) if !is_label(namespace) => {
                return Err(self.not_sent(InvalidNamespace(namespace.to_owned())));
            }
            Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
            None => format!("{api}/{plural}"),
        };
        Ok(kube::core::Request::new(path))
    }

    pub(crate) fn not_sent(&self, source: impl Into<BoxError>) -> WriteError {
        let (resource, key) = (self.kind.to_string(), self.key.clone());
        WriteError::NotSent { verb: self.verb, resource, key, source: source.into() }
    }

    pub(crate) fn undecodable(&self, source: serde_json::Error) -> WriteError {
        let (resource, key) = (self.kind.to_string(), self.key.clone());
        WriteError::UnexpectedResponse { verb: self.verb, resource, key, source }
    }

    pub(crate) fn not_leading(&self, source: NotLeading) -> WriteError {
        let (resource, key) = (self.kind.to_string(), self.key.clone());
        WriteError::NotLeading { verb: self.verb, resource, key, source }
    }

    fn unknown(&self, source: impl Into<BoxError>) -> WriteError {
        let (resource, key) = (self.kind.to_string(), self.key.clone());
        WriteError::OutcomeUnknown { verb: self.verb, resource, key, source: source.into() }
    }

    /// Classifies an error response. Whatever is not known to have changed nothing is unknown: a server may report an
    /// internal error or a timeout after the write was stored.
    fn error(&self, error: kube::Error) -> WriteError {
        let (verb, resource, key) = (self.verb, self.kind.to_string(), self.key.clone());
        match error {
            kube::Error::Api(status) if status.code == 409 => {
                WriteError::Conflict { verb, resource, key, status }
            }
            kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 408 => {
                WriteError::Rejected { verb, resource, key, status }
            }
            kube::Error::BuildRequest(error) => self.not_sent(error),
            kube::Error::HttpError(error) => self.not_sent(error),
            error => self.unknown(error),
        }
    }
}

/// Whether a text is a DNS label, as names of namespaces are.
fn is_label(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl Write {
    /// Sends the write. The ticket is settled if the response says that nothing changed; the caller settles it after a
    /// success, and in all other cases, also if this future is dropped, the outcome stays unknown.
    pub(crate) async fn send(
        self,
        client: &kube::Client,
        within: Duration,
        ticket: &mut Ticket,
    ) -> Result<Value, WriteError> {
        let Self { target, request } = self;
        let error = match time::timeout(within, client.request::<Value>(request)).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => target.error(error),
            Err(time::Elapsed) => target.unknown(NoResponse(within)),
        };
        match &error {
            WriteError::NotSent { .. } => ticket.settle_unchanged(),
            // Otherwise the object does not exist, which the cache may not show yet.
            WriteError::Rejected { status, .. } if status.code != 404 || is_unserved(status) => {
                ticket.settle_unchanged();
            }
            _ => {}
        }
        Err(error)
    }
}
