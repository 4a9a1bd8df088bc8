//! Parses a `Status`.

use crate::{Cause, Details, Status};
use kube_informer_types::protobuf::{self, MessageType};
use serde_json::Value;

impl Status {
    /// Parses an encoded `Status`; `None` if it is another object, or has neither a code nor a known reason.
    ///
    /// Fields of unexpected types count as absent. A missing code is derived from the reason.
    pub fn parse(json: &[u8]) -> Option<Self> {
        Self::of_value(&serde_json::from_slice(json).ok()?)
    }

    /// Parses a `Status` in protobuf, as [`parse`](Self::parse) does.
    pub fn parse_protobuf(body: &[u8]) -> Option<Self> {
        Self::of_value(&protobuf::decode(body).ok()?)
    }

    /// The `Status` of a message without its envelope.
    pub(crate) fn of_message(kind: &str, message: &[u8]) -> Option<Self> {
        let status = MessageType::of("v1", "Status").filter(|_| kind == "Status")?;
        Self::of_value(&status.decode(message, ("Status", "v1")).ok()?)
    }

    fn of_value(value: &Value) -> Option<Self> {
        if value["kind"] != "Status" {
            return None;
        }
        let reason = text(&value["reason"]);
        let code = value["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code > 0);
        Some(Self {
            code: code.or_else(|| code_of(&reason))?,
            message: text(&value["message"]),
            details: details(&value["details"]),
            reason,
        })
    }

    /// The `Status` for an HTTP code without a body.
    pub fn from_code(code: u16) -> Self {
        let reason = REASONS.iter().find(|(_, known)| *known == code).map_or("", |(reason, _)| reason);
        Self::failure(code, reason, "the server sent no explanation")
    }
}

/// The reasons of the API and their codes. Of two reasons for one code, the first is the usual one.
const REASONS: [(&str, u16); 14] = [
    ("BadRequest", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("NotFound", 404),
    ("MethodNotAllowed", 405),
    ("NotAcceptable", 406),
    ("Conflict", 409),
    ("Expired", 410),
    ("Gone", 410),
    ("Invalid", 422),
    ("TooManyRequests", 429),
    ("InternalError", 500),
    ("ServiceUnavailable", 503),
    ("Timeout", 504),
];

fn code_of(reason: &str) -> Option<u16> {
    REASONS.iter().find(|(known, _)| *known == reason).map(|(_, code)| *code)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn details(value: &Value) -> Details {
    let seconds = value["retryAfterSeconds"].as_u64().unwrap_or_default();
    let cause = |cause: &Value| Cause {
        reason: text(&cause["reason"]),
        message: text(&cause["message"]),
        field: text(&cause["field"]),
    };
    Details {
        name: text(&value["name"]),
        group: text(&value["group"]),
        kind: text(&value["kind"]),
        causes: value["causes"].as_array().into_iter().flatten().map(cause).collect(),
        retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_leniently() {
        let status = Status::parse(
            br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down","reason":"TooManyRequests",
            "details":{"retryAfterSeconds":3,"causes":[{"reason":"r","message":null,"field":7}]},"code":429}"#,
        )
        .unwrap();
        assert_eq!((status.code, &*status.reason, &*status.message), (429, "TooManyRequests", "slow down"));
        assert_eq!(status.details.retry_after_seconds, 3);
        assert_eq!(status.details.causes, [Cause { reason: "r".into(), ..Cause::default() }]);
        let malformed =
            Status::parse(br#"{"kind":"Status","code":500,"reason":7,"message":[],"details":"x"}"#).unwrap();
        assert_eq!(malformed, Status { code: 500, ..Status::default() });
    }

    #[test]
    fn a_missing_code_is_derived_from_the_reason() {
        let status = Status::parse(br#"{"kind":"Status","reason":"Expired"}"#).unwrap();
        assert!(status.is_expired() && status.code == 410);
    }

    #[test]
    fn anything_else_is_none() {
        for json in [
            "",
            "7",
            "null",
            "<html>",
            r#"{"code":500}"#,
            r#"{"kind":"Status"}"#,
            r#"{"kind":"Status","code":0}"#,
            r#"{"kind":"Status","code":-1}"#,
            r#"{"kind":"Status","code":70000,"reason":"Strange"}"#,
            r#"{"kind":"Pod","code":500}"#,
        ] {
            assert_eq!(Status::parse(json.as_bytes()), None, "{json}");
        }
    }

    #[test]
    fn a_bare_code_has_its_usual_reason() {
        assert_eq!(Status::from_code(410).reason, "Expired");
        assert_eq!((Status::from_code(418).code, &*Status::from_code(418).reason), (418, ""));
    }
}
