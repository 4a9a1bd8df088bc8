//! The errors of requests, from the socket to the verb.

use crate::authentication::WithoutUser;
use crate::cpu_pool::PoolError;
use crate::faults::Fault;
use crate::registry::CodecError;
use crate::snapshots::TooManySnapshots;
use crate::verb::Verb;
use crate::verbs::error::{RequestError, Target, VerbError};
use kube_informer_types::protobuf::ProtobufError;

use super::negotiate::NotAcceptable;
use super::watch_permits::TooManyWatches;

/// The error of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Verb(#[from] VerbError),
    #[error(transparent)]
    NotAcceptable(#[from] NotAcceptable),
    #[error(transparent)]
    TooManyWatches(#[from] TooManyWatches),
    #[error("The apiserver is shutting down, please try again later.")]
    ShuttingDown,
    #[error("request did not complete within the allotted timeout")]
    DeadlineExceeded,
    #[error(transparent)]
    Impersonation(#[from] WithoutUser),
    /// A fault that a test injected.
    #[error("fault injected: {fault:?}")]
    Injected { fault: Fault, verb: Verb, target: Box<Target>, namespace: Option<String> },
    #[error("the {content} has no protobuf form: {error}")]
    NoProtobufForm { content: &'static str, error: ProtobufError },
    #[error("the metrics cannot be encoded: {0}")]
    Metrics(prometheus::Error),
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// The error of a request to `/snapshots`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("there is no snapshot {0:?}: take one with POST /snapshots/NAME")]
    Unknown(String),
    #[error(transparent)]
    TooMany(#[from] TooManySnapshots),
}

/// The error of a request to `/faults`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SwitchError {
    #[error(
        "there is no switch {0:?}: use fail, delay, lose-responses, compact, forget-window, cut-watches, stall-watches, lag \
         or unready"
    )]
    UnknownSwitch(String),
    #[error("code={0} is not among 403, 409, 429, 500, 503 and 504")]
    UnknownCode(String),
    #[error("there is no verb {0:?}: use get, list, watch, …")]
    UnknownVerb(String),
    #[error("{field} must be a number from 0 to {max}")]
    NotANumber { field: &'static str, max: i64 },
}

impl From<RequestError> for HttpError {
    fn from(error: RequestError) -> Self {
        Self::Verb(error.into())
    }
}

impl From<PoolError> for HttpError {
    fn from(error: PoolError) -> Self {
        Self::Verb(error.into())
    }
}

impl From<CodecError> for HttpError {
    fn from(error: CodecError) -> Self {
        Self::Verb(error.into())
    }
}
