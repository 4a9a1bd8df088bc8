//! From an answer to an HTTP response in the representation the client wants.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Response, StatusCode};
use serde_json::Value;

use super::body::{AnswerBody, ListBody, WatchBody};
use super::gzip::{Gzip, THRESHOLD};
use super::negotiate::{Format, Representation};
use crate::engine::Engine;
use crate::registry::Resource;
use crate::status::Status;
use crate::verbs::{Answer, Shown};
use crate::watch_cache::ListAnswer;

/// How this client wants this answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) representation: Representation,
    pub(crate) gzip: bool,
}

pub(crate) fn respond(
    engine: &Engine,
    resource: &Arc<Resource>,
    answer: Answer,
    wish: Wish,
) -> Response<AnswerBody> {
    match answer {
        Answer::Object { code, object, warnings } => {
            let json = match object {
                Shown::Stored(stored) => stored.json(&resource.head),
                Shown::Made(object) => encode(object.value()),
            };
            let mut response = whole(code, json, wish);
            for warning in &warnings {
                if let Ok(value) = HeaderValue::from_str(&warning_text(warning)) {
                    response.headers_mut().append(WARNING, value);
                }
            }
            response
        }
        Answer::Scale { code, scale } => whole(code, encode(&scale), wish),
        Answer::List(list) => respond_list(resource, list, wish),
        Answer::Watch(stream) => {
            let body = AnswerBody::Watch(Box::new(WatchBody::new(engine, Arc::clone(resource), stream)));
            new(StatusCode::OK, "application/json", body)
        }
        Answer::Status(status) => respond_status(&status, wish.representation.format),
    }
}

pub(crate) fn respond_status(status: &Status, format: Format) -> Response<AnswerBody> {
    let wish = Wish { representation: Representation { format, pretty: false }, gzip: false };
    let mut response = whole(status.code().as_u16(), status.to_json().into(), wish);
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// An answer that is not about an object.
pub(crate) fn respond_text(
    code: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<AnswerBody> {
    new(code, content_type, AnswerBody::whole(text))
}

fn respond_list(resource: &Resource, list: ListAnswer, wish: Wish) -> Response<AnswerBody> {
    let head = list_head(resource, &list);
    let body = ListBody::new(head.into(), list.items);
    let plain = wish.representation == Representation::JSON;
    match (plain, wish.gzip && body.estimated_len() > THRESHOLD) {
        (true, false) => new(StatusCode::OK, "application/json", AnswerBody::List(body)),
        (true, true) => zipped("application/json", Gzip::list(body)),
        (false, _) => {
            let mut body = body;
            let mut json = Vec::new();
            while let Some(piece) = body.next_piece() {
                json.extend_from_slice(&piece);
            }
            whole(200, json.into(), wish)
        }
    }
}

/// A list up to its items. Items of built-in kinds go without kind and apiVersion.
fn list_head(resource: &Resource, list: &ListAnswer) -> String {
    let text = |s: &str| serde_json::to_string(s).unwrap_or_default();
    let mut head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{{\"resourceVersion\":\"{}\"",
        text(&format!("{}List", resource.kind)),
        text(&resource.api_version()),
        list.revision
    );
    if let Some(token) = &list.continue_token {
        head.push_str(&format!(",\"continue\":{}", text(token)));
    }
    if let Some(remaining) = list.remaining {
        head.push_str(&format!(",\"remainingItemCount\":{remaining}"));
    }
    head.push_str("},\"items\":[");
    head
}

fn whole(code: u16, json: Bytes, wish: Wish) -> Response<AnswerBody> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let (content_type, body) = match wish.representation {
        Representation { format: Format::Json, pretty: false } => ("application/json", json),
        Representation { format: Format::Json, pretty: true } => {
            ("application/json", reencode(&json, serde_json::to_string_pretty))
        }
        Representation { format: Format::Yaml, .. } => {
            ("application/yaml", reencode(&json, serde_saphyr::to_string))
        }
    };
    if wish.gzip && body.len() > THRESHOLD && code.is_success() {
        return zipped(content_type, Gzip::whole(body));
    }
    new(code, content_type, AnswerBody::whole(body))
}

fn reencode<E>(json: &[u8], print: impl FnOnce(&Value) -> Result<String, E>) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    print(&value).unwrap_or_default().into()
}

fn zipped(content_type: &'static str, gzip: Gzip) -> Response<AnswerBody> {
    let mut response = new(StatusCode::OK, content_type, AnswerBody::Zipped(Box::new(gzip)));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

fn new(code: StatusCode, content_type: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn encode(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// RFC 7234: code, agent, quoted text. What a header cannot hold is left out.
fn warning_text(text: &str) -> String {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let printable: String = quoted.chars().filter(|c| !c.is_control() && c.is_ascii()).collect();
    format!("299 - \"{printable}\"")
}
