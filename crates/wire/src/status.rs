//! The error object of the Kubernetes API.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A `Status`: the body of an error response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// Machine-readable details.
    pub details: Details,
}

/// The machine-readable part of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Details {
    /// Name of the object that the error is about.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its kind or resource.
    pub kind: String,
    /// The single errors.
    pub causes: Vec<Cause>,
    /// Seconds after which the client should retry; 0 if the server does not say.
    pub retry_after_seconds: u32,
}

/// One error of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Cause {
    /// Machine-readable reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Status {
    /// An error with a code, a reason and a message.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: Details::default() }
    }

    /// Whether the requested version or page has expired: the client must list again.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// Whether the requested version is newer than the newest version of the server. Servers before 1.16 only say so in the
    /// message.
    pub fn is_version_too_large(&self) -> bool {
        const WORDS: &str = "Too large resource version";
        let named =
            |cause: &Cause| cause.reason == "ResourceVersionTooLarge" || cause.message.contains(WORDS);
        self.details.causes.iter().any(named)
            || (self.reason == "Timeout" || self.code == 504) && self.message.contains(WORDS)
    }

    /// Whether the server asks the client to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.code == 429
    }

    /// How long the server asks the client to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_generations_of_too_large() {
        let by_cause: Status = serde_json::from_str(
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
        )
        .unwrap();
        let by_cause_words: Status = serde_json::from_str(
            r#"{"code":504,"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
        )
        .unwrap();
        let by_words = Status::failure(504, "Timeout", "Timeout: Too large resource version: 9, current: 5");
        for status in [by_cause, by_cause_words, by_words] {
            assert!(status.is_version_too_large(), "{status:?}");
        }
        assert!(!Status::failure(504, "Timeout", "request timed out").is_version_too_large());
    }

    #[test]
    fn expired_by_code_or_by_reason() {
        for (code, reason, expired) in [
            (410, "", true),
            (200, "Expired", true),
            (500, "Gone", true),
            (404, "NotFound", false),
            (504, "Timeout", false),
        ] {
            assert_eq!(Status::failure(code, reason, "").is_expired(), expired, "{code} {reason}");
        }
    }

    #[test]
    fn too_large_needs_the_words_and_a_timeout_or_a_cause() {
        const WORDS: &str = "Too large resource version: 9, current: 5";
        for (code, reason, message, too_large) in [
            (504, "", WORDS, true),
            (500, "Timeout", WORDS, true),
            (400, "BadRequest", WORDS, false),
            (504, "Timeout", "the request timed out", false),
        ] {
            let status = Status::failure(code, reason, message);
            assert_eq!(status.is_version_too_large(), too_large, "{status:?}");
        }
        let with_cause = |reason: &str, message: &str| {
            let mut status = Status::failure(504, "Timeout", "");
            let cause = Cause { reason: reason.into(), message: message.into(), field: String::new() };
            status.details.causes.push(cause);
            status.is_version_too_large()
        };
        assert!(with_cause("ResourceVersionTooLarge", "") && with_cause("", WORDS));
        assert!(!with_cause("FieldValueInvalid", "must be a number"));
    }

    #[test]
    fn other_questions() {
        let status = |code, seconds| {
            let mut status = Status::failure(code, "", "");
            status.details.retry_after_seconds = seconds;
            status
        };
        assert!(status(429, 0).is_too_many_requests() && !status(503, 0).is_too_many_requests());
        assert_eq!(
            (status(503, 0).retry_after(), status(503, 1).retry_after()),
            (None, Some(Duration::from_secs(1)))
        );
    }
}
