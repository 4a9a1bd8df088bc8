//! The parts of a request that do not depend on its resource: headers, deadline and body.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::SignedDuration;

use crate::verbs::Request;
use crate::verbs::decode::unknown_format;
use crate::verbs::error::RequestError;
use crate::verbs::options::Query;
use kube_informer_types::protobuf::{self, ProtobufError};

/// The longest duration of a request that is not a watch.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, RequestError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RequestError::BodyTooLarge { limit }),
        Err(error) => Err(RequestError::BodyNotReceived(error)),
    }
}

/// Converts a protobuf body to JSON.
pub(super) fn with_json(request: Request) -> Result<Request, RequestError> {
    if request.content_type != protobuf::MEDIA_TYPE || request.body.is_empty() {
        return Ok(request);
    }
    match protobuf::decode(&request.body) {
        Ok(value) => {
            let body = value.to_string().into();
            Ok(Request { content_type: "application/json".to_owned(), body, ..request })
        }
        Err(ProtobufError::UnknownKind { .. }) => Err(unknown_format(&request.resource)),
        Err(error) => Err(RequestError::BodyNotDecoded(error)),
    }
}

pub(super) fn user_agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
}

/// The media type of the body, without parameters.
pub(super) fn content_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// `timeout=` may shorten the deadline, not lengthen it.
pub(super) fn deadline(query: &Query) -> Result<Duration, RequestError> {
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(DEADLINE);
    }
    let asked = parse_duration(text).ok_or_else(|| RequestError::InvalidTimeout(text.to_owned()))?;
    Ok(if asked.is_zero() || asked > DEADLINE { DEADLINE } else { asked })
}

/// A duration as Go prints it: `1m30s`, `250ms`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let is_go = |c: char| c.is_ascii_digit() || ".hmsuµn".contains(c);
    match text.strip_prefix('+').unwrap_or(text) {
        "0" => Some(Duration::ZERO),
        // jiff reads more than Go prints: words, signs and spaces.
        text if text.chars().all(is_go) => text.parse::<SignedDuration>().ok()?.try_into().ok(),
        _ => None,
    }
}

/// Whether the response is indented: on request, and by default for browsers and `curl`.
pub(super) fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    if query.get("pretty").is_some() {
        return query.flag("pretty");
    }
    let agent = user_agent(headers);
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_prints_them() {
        for (text, seconds) in [
            ("32s", Some(32.0)),
            ("1m30s", Some(90.0)),
            ("250ms", Some(0.25)),
            ("1.5h", Some(5400.0)),
            ("0", Some(0.0)),
        ] {
            assert_eq!(parse_duration(text).map(|d| d.as_secs_f64()), seconds, "{text}");
        }
        for bad in ["", "x", "5", "s", "-3s", "3 s", "99999999999999999999h", "1..2s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
