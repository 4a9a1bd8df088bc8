//! The `Status` object of Kubernetes, the response to every failed request.
//!
//! Inside the server errors are closed enums. `from_error.rs` converts each to a `Status`, the HTTP layer calls it. The texts are those
//! of kube-apiserver, because clients and their tests match on them.

mod field_error;
mod field_errors;
mod from_error;
mod responses;

use http::StatusCode;
use serde::Serialize;

pub(crate) use field_error::FieldError;
pub(crate) use field_errors::FieldErrors;

/// A Kubernetes `Status`, success or failure. One pointer wide.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Status(Box<Content>);

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<String>,
}

/// The object that the status is about.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

/// One of several reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl Status {
    pub(crate) fn code(&self) -> StatusCode {
        self.0.code.and_then(|c| StatusCode::from_u16(c).ok()).unwrap_or(StatusCode::OK)
    }

    /// For the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.0.details.as_ref().and_then(|d| d.retry_after_seconds)
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
