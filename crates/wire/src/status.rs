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
}
