//! The HTTP response of a verb, in the negotiated representation.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::{ItemView, ListBody, ResponseBody, WatchBody};
use super::error::HttpError;
use super::frames::Frames;
use super::gzip::{Gzip, THRESHOLD};
use super::negotiate::{Format, Representation, View};
use super::table::{TableMaker, partial};
use super::warnings::warn;
use crate::api::Api;
use crate::protobuf::{self, ProtobufError};
use crate::registry::Resource;
use crate::status::Status;
use crate::storage::Stored;
use crate::verbs::{self, Content, Shown};
use crate::watch_cache::ListResponse;

/// The negotiated form of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseOptions {
    pub(crate) representation: Representation,
    pub(crate) gzip: bool,
}

pub(crate) fn respond(
    api: &Arc<Api>,
    resource: &Arc<Resource>,
    verbs::Response { content, warnings }: verbs::Response,
    options: ResponseOptions,
) -> Response<ResponseBody> {
    let made = match content {
        Content::Object { code, object } => object_json(api, resource, &object, options.representation.view)
            .map(|json| whole(code, json, options)),
        Content::Scale { code, scale } => Ok(whole(code, encode(&scale), options)),
        Content::List(list) => respond_list(api, resource, list, options),
        Content::Watch(stream) => {
            let Representation { view, format, .. } = options.representation;
            let frames = Frames::new(&api.writes.clock, resource, view, format);
            let sent = api.metrics.watch_events(resource);
            let body = ResponseBody::Watch(Box::new(WatchBody::new(api, frames, stream, sent)));
            let protobuf = format == Format::Protobuf;
            let content_type = if protobuf { protobuf::WATCH_MEDIA_TYPE } else { "application/json" };
            Ok(new(StatusCode::OK, content_type, body))
        }
        Content::Deleted { target, uid } => {
            Ok(respond_status(&Status::deleted(&target, uid.as_deref()), options.representation.format))
        }
        Content::Created => Ok(respond_status(&Status::created(), options.representation.format)),
    };
    let mut response = made.unwrap_or_else(|error| respond_error(&error, options.representation.format));
    let deprecation = resource.deprecation();
    warn(&mut response, warnings.iter().map(String::as_str).chain(deprecation));
    response
}

fn object_json(
    api: &Arc<Api>,
    resource: &Arc<Resource>,
    shown: &Shown,
    view: View,
) -> Result<Bytes, HttpError> {
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

/// The response to a failed request.
pub(crate) fn respond_error(error: &HttpError, format: Format) -> Response<ResponseBody> {
    respond_status(&error.into(), format)
}

pub(crate) fn respond_status(status: &Status, format: Format) -> Response<ResponseBody> {
    let options =
        ResponseOptions { representation: Representation { format, ..Representation::JSON }, gzip: false };
    let mut response = whole(status.code().as_u16(), status.to_json().into(), options);
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// A response without an object.
pub(crate) fn respond_text(
    code: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<ResponseBody> {
    new(code, content_type, ResponseBody::whole(text))
}

fn respond_list(
    api: &Arc<Api>,
    resource: &Arc<Resource>,
    list: ListResponse,
    options: ResponseOptions,
) -> Result<Response<ResponseBody>, HttpError> {
    let mut metadata = list_metadata(&list);
    let (kind, api_version, view) = match options.representation.view {
        View::Table(include) => {
            let maker = TableMaker::new(api.writes.clock.clone(), Arc::clone(resource), include);
            return Ok(whole(200, encode(&maker.of_list(&list.items, metadata)?), options));
        }
        View::Whole => {
            // Items of custom resources have a type; those of built-in resources have that of the list.
            let typed = resource.custom.is_some().then(|| resource.head.clone());
            if typed.is_some() && list.continue_token.is_none() {
                metadata["continue"] = "".into(); // custom resources write empty fields
            }
            let view = ItemView::Whole(typed, resource.conversion.clone());
            (resource.list_kind.as_str(), resource.api_version(), view)
        }
        View::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned(), ItemView::Metadata),
    };
    if options.representation.format == Format::Protobuf {
        let body = protobuf_list(kind, &api_version, &metadata, &list.items, &view);
        let body = body.map_err(|error| HttpError::NoProtobufForm { content: "list", error })?;
        return Ok(finished(StatusCode::OK, protobuf::MEDIA_TYPE, body, options));
    }
    let mut body = ListBody::new(list_head(kind, &api_version, &metadata), list.items, view);
    let streamed = Representation { view: View::Whole, ..options.representation }.is_stored_form();
    Ok(match (streamed, options.gzip && body.estimated_len() > THRESHOLD) {
        (true, false) => new(StatusCode::OK, "application/json", ResponseBody::List(body)),
        (true, true) => zipped("application/json", Gzip::list(body)),
        (false, _) => {
            let mut json = Vec::new();
            while let Some(piece) = body.next_piece() {
                json.extend_from_slice(&piece);
            }
            whole(200, json.into(), options)
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

fn whole(code: u16, json: Bytes, options: ResponseOptions) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let (content_type, body) = match options.representation {
        Representation { format: Format::Json, pretty: false, .. } => ("application/json", json),
        Representation { format: Format::Json, pretty: true, .. } => {
            ("application/json", reencode(&json, serde_json::to_string_pretty))
        }
        Representation { format: Format::Protobuf, .. } => match protobuf::encode(&json) {
            Ok(bytes) => (protobuf::MEDIA_TYPE, bytes),
            Err(error) => {
                tracing::error!(%error, "a response has no protobuf form and is sent as JSON");
                ("application/json", json)
            }
        },
        Representation { format: Format::Yaml, .. } => {
            ("application/yaml", reencode(&json, serde_saphyr::to_string))
        }
    };
    finished(code, content_type, body, options)
}

fn finished(
    code: StatusCode,
    content_type: &'static str,
    body: Bytes,
    options: ResponseOptions,
) -> Response<ResponseBody> {
    if options.gzip && body.len() > THRESHOLD && code.is_success() {
        return zipped(content_type, Gzip::whole(body));
    }
    new(code, content_type, ResponseBody::whole(body))
}

fn reencode<E>(json: &[u8], print: impl FnOnce(&Value) -> Result<String, E>) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    print(&value).unwrap_or_default().into()
}

fn zipped(content_type: &'static str, gzip: Gzip) -> Response<ResponseBody> {
    let mut response = new(StatusCode::OK, content_type, ResponseBody::Zipped(Box::new(gzip)));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

fn new(code: StatusCode, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn encode(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}
