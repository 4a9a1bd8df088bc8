//! How a LIST or WATCH fails.

use crate::Status;
use std::{sync::Arc, time::Duration};

/// A failed LIST or WATCH. No variant carries a body or a credential; URLs are path and query only.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The server answered with an error.
    #[error("{url}: {} {}: {}", status.code, status.reason, status.message)]
    Api {
        /// What the server said; built from the HTTP code when it did not send a `Status`.
        status: Box<Status>,
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
        /// What was asked.
        url: Arc<str>,
    },
    /// The server could not be reached.
    #[error("{url}: cannot reach the server: {message}")]
    Connect {
        /// Whether nobody listens at the address.
        refused: bool,
        /// What went wrong.
        message: String,
        /// What was asked.
        url: Arc<str>,
    },
    /// The connection broke while the answer was being read.
    #[error("{url}: the connection broke: {message}")]
    Broken {
        /// What went wrong.
        message: String,
        /// What was asked.
        url: Arc<str>,
    },
    /// The server did not answer, or fell silent, for too long.
    #[error("{url}: no {what} within {}s", after.as_secs())]
    Silent {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
        /// What was asked.
        url: Arc<str>,
    },
    /// Something other than a Kubernetes API server answered, or a proxy in between.
    #[error(
        "{url}: expected JSON from an API server, got {content_type:?}; is a proxy or login page in between?"
    )]
    NotJson {
        /// The Content-Type of the answer.
        content_type: String,
        /// What was asked.
        url: Arc<str>,
    },
    /// The answer is not what the protocol asks for.
    #[error("{url}: malformed answer: {message}")]
    Malformed {
        /// What is wrong and where, without the content.
        message: String,
        /// What was asked.
        url: Arc<str>,
    },
}

impl ListWatchError {
    /// A failure reported by the server itself.
    pub fn api(status: Status, url: impl Into<Arc<str>>) -> Self {
        Self::Api { status: Box::new(status), retry_after: None, url: url.into() }
    }

    /// The `Status`, when the server sent one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP code, when the server answered.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The version or page asked for is no longer kept.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }

    /// The version asked for lies in the server's future.
    pub fn is_version_too_large(&self) -> bool {
        self.status().is_some_and(Status::is_version_too_large)
    }

    /// The server asks to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(Status::is_too_many_requests)
    }

    /// Nobody listens at the address.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Connect { refused: true, .. })
    }

    /// The caller is not allowed, or not known.
    pub fn is_denied(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// The kind does not exist on this server.
    pub fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { status, retry_after, .. } => (*retry_after).max(status.retry_after()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longer of the two counts: waiting for the shorter one would be too early for one of them.
    #[test]
    fn retry_after_is_the_longer_of_header_and_body() {
        let error = |header: Option<u64>, body| {
            let mut status = Status::failure(429, "TooManyRequests", "slow down");
            status.details.retry_after_seconds = body;
            let retry_after = header.map(Duration::from_secs);
            ListWatchError::Api { status: Box::new(status), retry_after, url: "/api/v1/pods".into() }
        };
        for (header, body, longer) in [
            (Some(1), 9, Some(9)),
            (Some(9), 1, Some(9)),
            (Some(5), 0, Some(5)),
            (None, 5, Some(5)),
            (None, 0, None),
        ] {
            let expected = longer.map(Duration::from_secs);
            assert_eq!(error(header, body).retry_after(), expected, "header {header:?}, body {body}");
        }
    }
}
