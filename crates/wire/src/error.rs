//! Errors of LIST and WATCH requests.

use crate::Status;
use std::{sync::Arc, time::Duration};

/// A failed LIST or WATCH.
///
/// No variant contains a body or a credential; URLs are path and query only. There is no `source`, because errors of HTTP
/// clients may quote credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ListWatchError {
    /// The server responded with an error.
    #[error("{url}: {} {}: {}", status.code, status.reason, status.message)]
    Api {
        /// The `Status` of the response; made from the HTTP code if the server did not send one.
        status: Box<Status>,
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// The server could not be reached.
    #[error("{url}: cannot reach the server: {message}")]
    Connect {
        /// Whether the connection was refused.
        refused: bool,
        /// What went wrong.
        message: String,
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// The connection broke while the response was read.
    #[error("{url}: the connection broke: {message}")]
    Broken {
        /// What went wrong.
        message: String,
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// The server did not send anything for too long.
    #[error("{url}: no {what} within {}s", after.as_secs())]
    Silent {
        /// What the client waited for.
        what: &'static str,
        /// How long.
        after: Duration,
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// The response is neither JSON nor protobuf: it comes from a proxy, or from a server that is not a Kubernetes API server.
    #[error(
        "{url}: expected JSON from an API server, got {content_type:?}; is a proxy or login page in between?"
    )]
    NotJson {
        /// The Content-Type of the response.
        content_type: String,
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// An object has a field that this release does not know, because the server is newer. Protobuf does not tell its name,
    /// so that the object could be neither shown nor edited without losing it; the next requests ask for JSON.
    #[error("{url}: an object has a field that this release does not know; the next request asks for JSON")]
    UnknownFields {
        /// Path and query of the request.
        url: Arc<str>,
    },
    /// The request cannot be sent.
    #[error("{url}: invalid request: {message}")]
    Invalid {
        /// What is wrong with the request, and what to do about it.
        message: String,
        /// Path and query of the request, or its path.
        url: Arc<str>,
    },
    /// The response violates the protocol.
    #[error("{url}: malformed response: {message}")]
    Malformed {
        /// What is malformed and where, without the content.
        message: String,
        /// Path and query of the request.
        url: Arc<str>,
    },
}

impl ListWatchError {
    /// An error reported by the server.
    pub fn api(status: Status, url: impl Into<Arc<str>>) -> Self {
        Self::Api { status: Box::new(status), retry_after: None, url: url.into() }
    }

    /// The `Status`, if the server responded.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP code, if the server responded.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// Whether the requested version or page has expired.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }

    /// Whether the requested version is newer than the newest version of the server.
    pub fn is_version_too_large(&self) -> bool {
        self.status().is_some_and(Status::is_version_too_large)
    }

    /// Whether the server asks the client to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(Status::is_too_many_requests)
    }

    /// Whether the connection was refused.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Connect { refused: true, .. })
    }

    /// Whether the caller is not authenticated or not authorized.
    pub fn is_denied(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// Whether the server does not serve the resource.
    pub fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    /// How long the server asks the client to wait.
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

    /// The questions in the order of [`answers`].
    const QUESTIONS: [&str; 6] = ["expired", "too large", "too many", "refused", "denied", "absent"];

    fn answers(error: &ListWatchError) -> Vec<&'static str> {
        let answers = [
            error.is_expired(),
            error.is_version_too_large(),
            error.is_too_many_requests(),
            error.is_connection_refused(),
            error.is_denied(),
            error.is_absent(),
        ];
        QUESTIONS
            .into_iter()
            .zip(answers)
            .filter_map(|(question, answer)| answer.then_some(question))
            .collect()
    }

    #[test]
    fn each_error_answers_its_own_question_only() {
        let api = |code, reason: &str, message: &str| {
            ListWatchError::api(Status::failure(code, reason, message), "/api/v1/pods")
        };
        for (code, reason, message, expected) in [
            (410, "Expired", "too old", Some("expired")),
            (504, "Timeout", "Too large resource version: 9", Some("too large")),
            (429, "TooManyRequests", "slow down", Some("too many")),
            (401, "Unauthorized", "", Some("denied")),
            (403, "Forbidden", "", Some("denied")),
            (404, "NotFound", "", Some("absent")),
            (400, "BadRequest", "", None),
            (500, "InternalError", "", None),
        ] {
            let error = api(code, reason, message);
            assert_eq!(answers(&error), Vec::from_iter(expected), "{error}");
            assert_eq!(
                (error.code(), error.status().map(|status| &*status.reason)),
                (Some(code), Some(reason))
            );
        }
    }

    #[test]
    fn an_error_without_a_response_has_no_status() {
        let (message, url) = (String::from("gone"), Arc::<str>::from("/api/v1/pods"));
        let connect =
            |refused| ListWatchError::Connect { refused, message: message.clone(), url: url.clone() };
        let second = Duration::from_secs(1);
        for (error, expected) in [
            (connect(true), Some("refused")),
            (connect(false), None),
            (ListWatchError::Broken { message: message.clone(), url: url.clone() }, None),
            (ListWatchError::Silent { what: "response", after: second, url: url.clone() }, None),
            (ListWatchError::NotJson { content_type: "text/html".into(), url: url.clone() }, None),
            (ListWatchError::UnknownFields { url: url.clone() }, None),
            (ListWatchError::Malformed { message: message.clone(), url: url.clone() }, None),
            (ListWatchError::Invalid { message: message.clone(), url: url.clone() }, None),
        ] {
            assert_eq!(answers(&error), Vec::from_iter(expected), "{error}");
            assert_eq!((error.code(), error.status(), error.retry_after()), (None, None, None), "{error}");
        }
    }
}
