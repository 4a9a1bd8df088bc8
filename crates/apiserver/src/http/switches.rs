//! `/faults`: the switches of [`Faults`] over HTTP, for test suites that are not written in Rust.
//!
//! | request | effect |
//! |---|---|
//! | `GET /faults` | the rules in force |
//! | `DELETE /faults` | drops them |
//! | `POST /faults/fail?code=429&times=3` | the next requests get this code: 403, 409, 429 (with `retryAfter`), 500, 503, 504 |
//! | `POST /faults/delay?ms=500&times=3` | the next requests are answered so much later |
//! | `POST /faults/lose-answers?times=1` | the next requests are done, and the connection breaks instead of an answer |
//! | `POST /faults/compact` | older versions are gone: 410 |
//! | `POST /faults/forget-window` | caches are filled anew, their watches end |
//! | `POST /faults/cut-watches` | open watches end, cleanly |
//! | `POST /faults/stall-watches?on=true` | watch streams are held still; `on=false` lets them go on |
//! | `POST /faults/lag?on=true` | caches fall behind the store; `on=false` lets them catch up |
//! | `POST /faults/unready?cause=TEXT` | caches are unready until `forget-window` |
//!
//! Rules take `verb=list` and `resource=pods`, switches take `resource=pods`; without them they mean all.

use std::time::Duration;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::answer::{respond_status, respond_text};
use super::body::AnswerBody;
use super::negotiate::Format;
use crate::faults::{Fault, FaultRule, Faults};
use crate::status::Status;
use crate::verb::Verb;
use crate::verbs::options::Query;

/// The most requests one rule meets, so that a slip of the finger can be waited out.
const MOST: i64 = 1_000_000;

/// Answers a request to `/faults`.
pub(crate) async fn flip(
    faults: &Faults,
    method: &Method,
    switch: Option<&str>,
    query: &Query,
) -> Response<AnswerBody> {
    let done = match (method, switch) {
        (&Method::GET, None) => Ok(()),
        (&Method::DELETE, None) => {
            faults.clear();
            Ok(())
        }
        (&Method::POST, Some(switch)) => set(faults, switch, query).await,
        _ => Err(Status::method_not_allowed()),
    };
    match done {
        Ok(()) => respond_text(StatusCode::OK, "application/json", format!("{}\n", state(faults))),
        Err(status) => respond_status(&status, Format::Json),
    }
}

async fn set(faults: &Faults, switch: &str, query: &Query) -> Result<(), Status> {
    let resource = query.get("resource").filter(|resource| !resource.is_empty());
    match switch {
        "fail" => faults.add(rule(failure(query)?, query)?),
        "delay" => {
            let time = Duration::from_millis(whole(query, "ms", None)?.unsigned_abs());
            faults.add(rule(Fault::Delay(time), query)?);
        }
        "lose-answers" => faults.add(rule(Fault::ResponseLost, query)?),
        "compact" => faults.compact().await.map_err(Status::internal)?,
        "forget-window" => faults.forget_window(resource).await.map_err(Status::internal)?,
        "cut-watches" => faults.cut_watches(resource),
        "stall-watches" => faults.stall_watches(resource, is_on(query)),
        "lag" => faults.lag(resource, is_on(query)).await.map_err(Status::internal)?,
        "unready" => faults.make_unready(resource, query.text("cause")),
        other => {
            return Err(Status::bad_request(format!(
                "there is no switch {other:?}: use fail, delay, lose-answers, compact, forget-window, cut-watches, stall-watches, lag \
                 or unready"
            )));
        }
    }
    Ok(())
}

fn is_on(query: &Query) -> bool {
    query.get("on").is_none() || query.flag("on")
}

fn failure(query: &Query) -> Result<Fault, Status> {
    Ok(match query.text("code") {
        "403" => Fault::Forbidden,
        "409" => Fault::Conflict,
        "429" => Fault::TooManyRequests { retry_after: whole(query, "retryAfter", Some(1))? as u32 },
        "500" => Fault::InternalError,
        "503" => Fault::Unavailable,
        "504" => Fault::Timeout,
        other => {
            let why = format!("code={other} is not among 403, 409, 429, 500, 503 and 504");
            return Err(Status::bad_request(why));
        }
    })
}

fn rule(fault: Fault, query: &Query) -> Result<FaultRule, Status> {
    let mut rule = FaultRule::new(fault).times(whole(query, "times", Some(1))?.unsigned_abs());
    if let Some(resource) = query.get("resource").filter(|resource| !resource.is_empty()) {
        rule = rule.resource(resource);
    }
    match query.text("verb") {
        "" => Ok(rule),
        text => {
            let verb = Verb::ALL.into_iter().find(|verb| verb.as_str() == text);
            let verb = verb.ok_or_else(|| {
                Status::bad_request(format!("there is no verb {text:?}: use get, list, watch, …"))
            })?;
            Ok(rule.verb(verb))
        }
    }
}

/// A number in the query, within reason.
fn whole(query: &Query, field: &str, default: Option<i64>) -> Result<i64, Status> {
    let number = query.number(field)?.or(default).filter(|number| (0..=MOST).contains(number));
    number.ok_or_else(|| Status::bad_request(format!("{field} must be a number from 0 to {MOST}")))
}

fn state(faults: &Faults) -> Value {
    let rules: Vec<Value> = faults
        .rules()
        .iter()
        .map(|rule| json!({"fault": format!("{:?}", rule.fault()), "left": rule.remaining()}))
        .collect();
    json!({"rules": rules})
}
