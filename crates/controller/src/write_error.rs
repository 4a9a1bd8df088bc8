//! Failures of writes through a [`Context`](crate::Context).

use crate::{
    failure::{BoxError, chain},
    leadership::NotLeading,
};
use kube::core::Status;
use kube_informer::{DecodeError, EditError, ObjectKey};
use std::time::Duration;

/// A write that did not succeed. Says which object and why; never contains content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The server rejected the write, and did not change anything.
    #[error("cannot {verb} {resource} {key}: {} ({}){}", status.message, status.code, hint(verb, status))]
    Rejected {
        /// What was to be done, such as `create`.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// The response of the server.
        status: Box<Status>,
    },
    /// The object exists already, or is not in the state any more that the write was made for (409). Return this error from
    /// reconcile: the retry starts when the cache shows the newer state.
    #[error("cannot {verb} {resource} {key}: conflict: {}; retry with the newer state", status.message)]
    Conflict {
        /// What was to be done.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// The response of the server.
        status: Box<Status>,
    },
    /// The response is missing or reports a failure of the server, so the write may have happened or not. The next reconcile
    /// of this key starts when the cache shows what became of it.
    #[error("{verb} of {resource} {key} has an unknown outcome: {}", chain(&**source))]
    OutcomeUnknown {
        /// What was to be done.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// Why there is no response.
        source: BoxError,
    },
    /// The write was not sent, because it cannot be encoded as a request.
    #[error("cannot {verb} {resource} {key}: {source}")]
    NotSent {
        /// What was to be done.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// What is wrong with it.
        source: BoxError,
    },
    /// The write was not sent, because this process does not hold its lease, or not for as long as the request may take.
    #[error("did not {verb} {resource} {key}: {source}")]
    NotLeading {
        /// What was to be done.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// What is missing.
        source: NotLeading,
    },
    /// The write succeeded, but the object in the response cannot be decoded.
    #[error("{verb} of {resource} {key} succeeded, but its response cannot be decoded: {source}")]
    UnexpectedResponse {
        /// What was done.
        verb: &'static str,
        /// The resource.
        resource: String,
        /// The object.
        key: ObjectKey,
        /// Where decoding failed.
        source: serde_json::Error,
    },
    /// The change cannot be made from what the cache holds.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The object cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl WriteError {
    /// Whether the server responded with 409.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the object, or its namespace, does not exist (404).
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether the write may have happened.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. })
    }

    /// The response of the server, if it rejected the write.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Rejected { status, .. } | Self::Conflict { status, .. } => Some(status),
            _ => None,
        }
    }
}

/// The verb of a write of a status, for messages.
pub(crate) const UPDATE_STATUS: &str = "update the status of";

/// Whether a response says that the server does not serve the path of the request: a 404 that does not name an object.
pub(crate) fn is_unserved(status: &Status) -> bool {
    status.code == 404 && status.details.as_ref().is_none_or(|details| details.name.is_empty())
}

/// What to check after a write was rejected.
fn hint(verb: &str, status: &Status) -> &'static str {
    match is_unserved(status) {
        true if verb == UPDATE_STATUS => {
            "; does the CRD have `subresources: {status: {}}`, and is its scope that of the type?"
        }
        true => "; does the CRD serve this version, and is its scope that of the type?",
        false => "",
    }
}

/// There was no response in time.
#[derive(Debug, thiserror::Error)]
#[error("no response within {0:?}")]
pub(crate) struct NoResponse(pub(crate) Duration);
