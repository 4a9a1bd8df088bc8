//! Failures, as far as the next step of a reflector depends on them.

use kube_informer_wire::{ListWatchError, Status};
use std::time::Duration;

/// A failure, as far as the next step depends on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) retry_after: Option<Duration>,
}

/// Classes of failures that are handled differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The server no longer keeps the version or the page.
    Expired,
    /// The version is newer than the server's.
    TooLarge,
    /// The connection was refused, or the server throttles requests.
    Busy,
    /// The connection failed.
    Transport,
    /// 401, 403.
    Denied,
    /// 404.
    Absent,
    /// The server does not support the request.
    Invalid,
    /// Any other error status.
    Server,
    /// Any other error status, sent as an event of a stream.
    InStream,
    /// The response violates the protocol.
    Protocol,
    /// The reflector, or the source it reads from, panicked.
    Panicked,
}

impl Failure {
    pub(crate) fn of(error: &ListWatchError) -> Self {
        let class = match error {
            ListWatchError::Api { status, .. } => Class::of_status(status, Class::Server),
            ListWatchError::Connect { refused: true, .. } => Class::Busy,
            ListWatchError::Connect { .. }
            | ListWatchError::Broken { .. }
            | ListWatchError::Silent { .. } => Class::Transport,
            // NotJson, Malformed, Invalid, and variants of later versions.
            _ => Class::Protocol,
        };
        Self { class, retry_after: error.retry_after() }
    }

    /// A failure that was sent as an ERROR event.
    pub(crate) fn in_stream(status: &Status) -> Self {
        Self { class: Class::of_status(status, Class::InStream), retry_after: status.retry_after() }
    }

    pub(crate) fn panicked() -> Self {
        Self { class: Class::Panicked, retry_after: None }
    }
}

impl Class {
    fn of_status(status: &Status, otherwise: Class) -> Self {
        match status.code {
            _ if status.is_expired() => Self::Expired,
            _ if status.is_version_too_large() => Self::TooLarge,
            429 => Self::Busy,
            401 | 403 => Self::Denied,
            404 => Self::Absent,
            400 | 405 | 406 | 415 | 422 => Self::Invalid,
            _ => otherwise,
        }
    }
}
