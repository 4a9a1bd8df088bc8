//! `/faults`: the switches of [`Faults`] over HTTP, for test suites that are not written in Rust.
//!
//! | request | effect |
//! |---|---|
//! | `GET /faults` | the rules in force |
//! | `DELETE /faults` | drops them |
//! | `POST /faults/fail?code=429&times=3` | the next requests get this code: 403, 409, 429 (with `retryAfter`), 500, 503, 504 |
//! | `POST /faults/delay?ms=500&times=3` | the next requests are delayed |
//! | `POST /faults/lose-responses?times=1` | the next requests are executed, and the connection is closed instead of a response |
//! | `POST /faults/compact` | older versions are compacted: 410 |
//! | `POST /faults/forget-window` | caches are reinitialized, their watches end |
//! | `POST /faults/cut-watches` | open watches end, cleanly |
//! | `POST /faults/stall-watches?on=true` | watch streams are paused; `on=false` resumes them |
//! | `POST /faults/lag?on=true` | caches fall behind the store; `on=false` lets them catch up |
//! | `POST /faults/unready?cause=TEXT` | caches are unready until `forget-window` |
//!
//! Rules take `verb=list` and `resource=pods`, switches take `resource=pods`; without them they apply to all.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::error::{HttpError, SwitchError};
use super::negotiate::Format;
use super::respond::{respond_error, respond_text};
use crate::faults::{Fault, FaultRule, Faults};
use crate::verb::Verb;
use crate::verbs::error::{RequestError, VerbError};
use crate::verbs::options::Query;

/// The most requests of one rule, so that a typing mistake does not last for ever.
const MOST: i64 = 1_000_000;

/// Serves `/faults`.
pub(crate) async fn flip(
    faults: &Faults,
    method: &Method,
    switch: Option<&str>,
    query: &Query,
) -> Response<ResponseBody> {
    let done = match (method, switch) {
        (&Method::GET, None) => Ok(()),
        (&Method::DELETE, None) => {
            faults.clear();
            Ok(())
        }
        (&Method::POST, Some(switch)) => set(faults, switch, query).await,
        _ => Err(RequestError::MethodNotAllowed.into()),
    };
    match done {
        Ok(()) => respond_text(StatusCode::OK, "application/json", format!("{}\n", state(faults))),
        Err(error) => respond_error(&error, Format::Json),
    }
}

async fn set(faults: &Faults, switch: &str, query: &Query) -> Result<(), HttpError> {
    let resource = query.get("resource").filter(|resource| !resource.is_empty());
    match switch {
        "fail" => faults.add(rule(failure(query)?, query)?),
        "delay" => {
            let time = Duration::from_millis(whole(query, "ms", None)?.unsigned_abs());
            faults.add(rule(Fault::Delay(time), query)?);
        }
        "lose-responses" => faults.add(rule(Fault::ResponseLost, query)?),
        "compact" => faults.compact().await.map_err(VerbError::from)?,
        "forget-window" => faults.forget_window(resource).await.map_err(VerbError::from)?,
        "cut-watches" => faults.cut_watches(resource),
        "stall-watches" => faults.stall_watches(resource, is_on(query)),
        "lag" => faults.lag(resource, is_on(query)).await.map_err(VerbError::from)?,
        "unready" => faults.make_unready(resource, query.text("cause")),
        other => {
            return Err(SwitchError::UnknownSwitch(other.to_owned()).into());
        }
    }
    Ok(())
}

fn is_on(query: &Query) -> bool {
    query.get("on").is_none() || query.flag("on")
}

fn failure(query: &Query) -> Result<Fault, HttpError> {
    Ok(match query.text("code") {
        "403" => Fault::Forbidden,
        "409" => Fault::Conflict,
        "429" => Fault::TooManyRequests { retry_after: whole(query, "retryAfter", Some(1))? as u32 },
        "500" => Fault::InternalError,
        "503" => Fault::Unavailable,
        "504" => Fault::Timeout,
        other => {
            return Err(SwitchError::UnknownCode(other.to_owned()).into());
        }
    })
}

fn rule(fault: Fault, query: &Query) -> Result<FaultRule, HttpError> {
    let mut rule = FaultRule::new(fault).times(whole(query, "times", Some(1))?.unsigned_abs());
    if let Some(resource) = query.get("resource").filter(|resource| !resource.is_empty()) {
        rule = rule.resource(resource);
    }
    match query.text("verb") {
        "" => Ok(rule),
        text => {
            let verb = Verb::ALL.into_iter().find(|verb| verb.as_str() == text);
            Ok(rule.verb(verb.ok_or_else(|| SwitchError::UnknownVerb(text.to_owned()))?))
        }
    }
}

/// A number in the query, within reason.
fn whole(query: &Query, field: &'static str, default: Option<i64>) -> Result<i64, HttpError> {
    let number = query.number(field)?.or(default).filter(|number| (0..=MOST).contains(number));
    Ok(number.ok_or(SwitchError::NotANumber { field, max: MOST })?)
}

fn state(faults: &Faults) -> Value {
    let rules: Vec<Value> = faults
        .rules()
        .iter()
        .map(|rule| json!({"fault": format!("{:?}", rule.fault()), "left": rule.remaining()}))
        .collect();
    json!({"rules": rules})
}
