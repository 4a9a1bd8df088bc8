//! From an answer to an HTTP response in the representation the client wants.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::{AnswerBody, ItemView, ListBody, WatchBody};
use super::frames::Frames;
use super::gzip::{Gzip, THRESHOLD};
use super::negotiate::{Format, Representation, View};
use super::table::{TableMaker, partial};
use crate::api::Api;
use crate::protobuf::{self, ProtobufError};
use crate::registry::Resource;
use crate::status::Status;
use crate::storage::Stored;
use crate::verbs::{self, Content, Shown};
use crate::watch_cache::ListResponse;

/// How this client wants this answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) representation: Representation,
    pub(crate) gzip: bool,
}

pub(crate) fn respond(
    api: &Arc<Api>,
    resource: &Arc<Resource>,
    verbs::Response { content, warnings }: verbs::Response,
    wish: Wish,
) -> Response<AnswerBody> {
    let made = match content {
        Content::Object { code, object } => {
            object_json(api, resource, &object, wish.representation.view).map(|json| whole(code, json, wish))
        }
        Content::Scale { code, scale } => Ok(whole(code, encode(&scale), wish)),
        Content::List(list) => respond_list(api, resource, list, wish),
        Content::Watch(stream) => {
            let Representation { view, format, .. } = wish.representation;
            let frames = Frames::new(&api.writes.clock, resource, view, format);
            let sent = api.metrics.watch_events(resource);
            let body = AnswerBody::Watch(Box::new(WatchBody::new(api, frames, stream, sent)));
            let protobuf = format == Format::Protobuf;
            let content_type = if protobuf { protobuf::WATCH_MEDIA_TYPE } else { "application/json" };
            Ok(new(StatusCode::OK, content_type, body))
        }
        Content::Status(status) => Err(status),
    };
    let mut response = made.unwrap_or_else(|status| respond_status(&status, wish.representation.format));
    warnings.iter().for_each(|text| warn(&mut response, text));
    response
}

/// Adds a `Warning` header.
pub(crate) fn warn(response: &mut Response<AnswerBody>, text: &str) {
    if let Ok(value) = HeaderValue::from_str(&warning_text(text)) {
        response.headers_mut().append(WARNING, value);
    }
}

fn object_json(api: &Arc<Api>, resource: &Arc<Resource>, shown: &Shown, view: View) -> Result<Bytes, Status> {
    let object = match (shown, view) {
        (Shown::Stored(stored), View::Whole) if resource.conversion.is_none() => {
            return Ok(stored.json(&resource.head));
        }
        (Shown::Made(object), View::Whole) => return Ok(encode(object.value())),
        (Shown::Stored(stored), _) => resource.decode(stored)?,
        (Shown::Made(object), _) => (**object).clone(),
    };
    Ok(encode(&match view {
        View::Table(include) => {
            TableMaker::new(api.writes.clock.clone(), Arc::clone(resource), include).of_object(&object, true)
        }
        View::Metadata => partial(&object),
        View::Whole => object.into_value(),
    }))
}

pub(crate) fn respond_status(status: &Status, format: Format) -> Response<AnswerBody> {
    let wish = Wish { representation: Representation { format, ..Representation::JSON }, gzip: false };
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

fn respond_list(
    api: &Arc<Api>,
    resource: &Arc<Resource>,
    list: ListResponse,
    wish: Wish,
) -> Result<Response<AnswerBody>, Status> {
    let mut metadata = list_metadata(&list);
    let (kind, api_version, view) = match wish.representation.view {
        View::Table(include) => {
            let maker = TableMaker::new(api.writes.clock.clone(), Arc::clone(resource), include);
            return Ok(whole(200, encode(&maker.of_list(&list.items, metadata)?), wish));
        }
        View::Whole => {
            // Items of custom kinds say what they are; those of built-in kinds leave that to the list.
            let typed = resource.custom.is_some().then(|| resource.head.clone());
            if typed.is_some() && list.continue_token.is_none() {
                metadata["continue"] = "".into(); // what has no type of its own leaves nothing out
            }
            let view = ItemView::Whole(typed, resource.conversion.clone());
            (resource.list_kind.as_str(), resource.api_version(), view)
        }
        View::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned(), ItemView::Metadata),
    };
    if wish.representation.format == Format::Protobuf {
        let body = protobuf_list(kind, &api_version, &metadata, &list.items, &view);
        let body =
            body.map_err(|error| Status::internal(format!("the list has no protobuf form: {error}")))?;
        return Ok(finished(StatusCode::OK, protobuf::MEDIA_TYPE, body, wish));
    }
    let mut body = ListBody::new(list_head(kind, &api_version, &metadata), list.items, view);
    let streamed = Representation { view: View::Whole, ..wish.representation }.is_stored_form();
    Ok(match (streamed, wish.gzip && body.estimated_len() > THRESHOLD) {
        (true, false) => new(StatusCode::OK, "application/json", AnswerBody::List(body)),
        (true, true) => zipped("application/json", Gzip::list(body)),
        (false, _) => {
            let mut json = Vec::new();
            while let Some(piece) = body.next_piece() {
                json.extend_from_slice(&piece);
            }
            whole(200, json.into(), wish)
        }
    })
}

/// One item after another: decoded, a long list would be many times its size.
fn protobuf_list(
    kind: &str,
    api_version: &str,
    metadata: &Value,
    items: &[Arc<Stored>],
    view: &ItemView,
) -> Result<Bytes, ProtobufError> {
    let mut list = protobuf::ListWriter::new(api_version, kind, metadata)?;
    let mut json = Vec::new();
    for item in items {
        json.clear();
        view.write(item, &mut json);
        list.push(&json)?;
    }
    Ok(list.finish())
}

fn list_metadata(list: &ListResponse) -> Value {
    let mut metadata = json!({"resourceVersion": list.revision.to_string()});
    if let Some(token) = &list.continue_token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// A list up to its items.
fn list_head(kind: &str, api_version: &str, metadata: &Value) -> Bytes {
    let (kind, api_version) = (Value::from(kind), Value::from(api_version));
    format!("{{\"kind\":{kind},\"apiVersion\":{api_version},\"metadata\":{metadata},\"items\":[").into()
}

fn whole(code: u16, json: Bytes, wish: Wish) -> Response<AnswerBody> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let (content_type, body) = match wish.representation {
        Representation { format: Format::Json, pretty: false, .. } => ("application/json", json),
        Representation { format: Format::Json, pretty: true, .. } => {
            ("application/json", reencode(&json, serde_json::to_string_pretty))
        }
        Representation { format: Format::Protobuf, .. } => match protobuf::encode(&json) {
            Ok(bytes) => (protobuf::MEDIA_TYPE, bytes),
            Err(error) => {
                tracing::error!(%error, "an answer has no protobuf form and goes out as JSON");
                ("application/json", json)
            }
        },
        Representation { format: Format::Yaml, .. } => {
            ("application/yaml", reencode(&json, serde_saphyr::to_string))
        }
    };
    finished(code, content_type, body, wish)
}

fn finished(code: StatusCode, content_type: &'static str, body: Bytes, wish: Wish) -> Response<AnswerBody> {
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
