//! The HTTP response of a verb, in the negotiated representation.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY};
use http::{Extensions, Response, StatusCode};
use serde_json::{Value, json};

use super::body::{ItemView, ListBody, ResponseBody, WatchBody};
use super::dispatch::LARGE;
use super::error::HttpError;
use super::frames::Frames;
use super::gzip::{Gzip, THRESHOLD};
use super::list_encoder::{ItemSource, ListEncoder};
use super::negotiate::{Format, Representation, View};
use super::table::{TableMaker, of_scale, partial};
use super::warnings::warn;
use crate::api::Api;
use crate::registry::{Object, Resource};
use crate::status::Status;
use crate::verbs::{self, Content, Shown};
use crate::watch_cache::{ListResponse, WatchStream};
use crate::work::Work;
use kube_informer_types::protobuf::{self, ListWriter};

/// The negotiated form of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseOptions {
    pub(crate) representation: Representation,
    pub(crate) gzip: bool,
}

/// A response of a verb that is to be encoded.
pub(crate) struct Responder<'r> {
    pub(crate) api: &'r Arc<Api>,
    pub(crate) resource: &'r Arc<Resource>,
    pub(crate) options: ResponseOptions,
    /// Those of the request.
    pub(crate) extensions: &'r Extensions,
}

impl Responder<'_> {
    /// Encodes a response, in the CPU pool if that takes long.
    pub(crate) async fn respond(
        &self,
        verbs::Response { content, warnings }: verbs::Response,
    ) -> Response<ResponseBody> {
        let options = self.options;
        let encoded = match content {
            Content::Object { code, object } => self.object(code, object).await,
            Content::OtherKind { code, object } => Ok(whole(code, encode(&self.other_kind(object)), options)),
            Content::List(list) => self.list(list).await,
            Content::Watch(stream) => Ok(self.watch(stream)),
            Content::Deleted { target, uid } => {
                Ok(respond_status(&Status::deleted(&target, uid.as_deref()), options.representation.format))
            }
            Content::Created => Ok(respond_status(&Status::created(), options.representation.format)),
        };
        let mut response =
            encoded.unwrap_or_else(|error| respond_error(&error, options.representation.format));
        let deprecation = self.resource.deprecation();
        warn(&mut response, deprecation.into_iter().chain(warnings.iter().map(String::as_str)));
        response
    }

    /// The requested view of a Scale; others have no views.
    fn other_kind(&self, value: Value) -> Value {
        if value["kind"] != "Scale" {
            return value;
        }
        match (self.options.representation.view, Object::new(value.clone())) {
            (View::Table(options), Some(scale)) => of_scale(&scale, &self.api.writes.clock, options),
            (View::Metadata, Some(scale)) => partial(&scale),
            _ => value,
        }
    }

    fn watch(&self, stream: WatchStream) -> Response<ResponseBody> {
        let Representation { view, format, .. } = self.options.representation;
        let frames = Frames::new(&self.api.writes.clock, self.resource, view, format);
        let sent = self.api.metrics.watch_events(self.resource);
        let body = ResponseBody::Watch(Box::new(WatchBody::new(self.api, frames, stream, sent)));
        let protobuf = format == Format::Protobuf;
        let content_type = if protobuf { protobuf::WATCH_MEDIA_TYPE } else { "application/json" };
        new(StatusCode::OK, content_type, body)
    }

    async fn object(&self, code: u16, object: Shown) -> Result<Response<ResponseBody>, HttpError> {
        let representation = self.options.representation;
        let is_stored_form = representation.is_stored_form() && self.resource.conversion.is_none();
        let size = match &object {
            Shown::Stored(stored) => stored.document.encoded_len(),
            Shown::Made(_) => usize::MAX,
        };
        match &object {
            Shown::Stored(stored) if is_stored_form && size > LARGE && !self.options.gzip => {
                let code = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
                return Ok(new(code, "application/json", ResponseBody::shared(stored, &self.resource.head)));
            }
            _ => {}
        }
        let (api, resource, options) = (Arc::clone(self.api), Arc::clone(self.resource), self.options);
        let encode = move || {
            let json = object_json(&api, &resource, &object, options.representation.view)?;
            Ok(Some(whole(code, json, options)))
        };
        if is_stored_form || size <= LARGE {
            self.encode_here(encode)
        } else {
            self.encode_in_pool(encode).await
        }
    }

    async fn list(&self, list: ListResponse) -> Result<Response<ResponseBody>, HttpError> {
        let (options, resource) = (self.options, self.resource);
        let Representation { view, format, pretty } = options.representation;
        let mut metadata = list_metadata(&list);
        let (kind, api_version, view) = match view {
            View::Table(table) => {
                let maker = TableMaker::new(self.api.writes.clock.clone(), Arc::clone(resource), table);
                let document = maker.empty(metadata);
                let rows = ItemSource::Table(maker);
                let encoder = ListEncoder::text(document, "rows", list.items, rows, options.representation);
                return self.encoded_list(encoder).await;
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
        if format == Format::Json && !pretty {
            let body = ListBody::new(list_head(kind, &api_version, &metadata), list.items, view);
            return Ok(match options.gzip && body.estimated_len() > THRESHOLD {
                true => zipped("application/json", Gzip::list(body)),
                false => new(StatusCode::OK, "application/json", ResponseBody::List(body)),
            });
        }
        let encoder = if format == Format::Protobuf {
            let writer = ListWriter::new(&api_version, kind, &metadata);
            let writer = writer.map_err(|error| HttpError::NoProtobufForm { content: "list", error })?;
            ListEncoder::protobuf(writer, list.items, view)
        } else {
            let document = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
            ListEncoder::text(document, "items", list.items, ItemSource::Items(view), options.representation)
        };
        self.encoded_list(encoder).await
    }

    async fn encoded_list(&self, mut encoder: ListEncoder) -> Result<Response<ResponseBody>, HttpError> {
        let large = encoder.remaining() > LARGE;
        let step = move || encoder.step();
        let body = if large { self.encode_in_pool(step).await? } else { self.encode_here(step)? };
        Ok(finished(StatusCode::OK, content_type(self.options.representation), body, self.options))
    }

    /// Encodes in the CPU pool, or here if the server has none.
    async fn encode_in_pool<T: Send + 'static>(
        &self,
        step: impl FnMut() -> Result<Option<T>, HttpError> + Send + 'static,
    ) -> Result<T, HttpError> {
        let Some(pool) = &self.api.cpu_pool else { return self.encode_here(step) };
        let work = self.extensions.get::<Work>().cloned().unwrap_or_default();
        pool.run_in_steps(self.extensions, &work, step).await
    }

    fn encode_here<T>(&self, mut step: impl FnMut() -> Result<Option<T>, HttpError>) -> Result<T, HttpError> {
        loop {
            if let Some(encoded) = step()? {
                return Ok(encoded);
            }
        }
    }
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
        View::Table(options) => {
            TableMaker::new(api.writes.clock.clone(), Arc::clone(resource), options).of_object(&object, true)
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

fn list_metadata(list: &ListResponse) -> Value {
    let mut metadata = json!({"resourceVersion": list.revision.to_string()});
    if let Some(token) = &list.continue_token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    if let Some(shards) = &list.shards {
        metadata["shardInfo"] = json!({"selector": shards.to_string()});
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

fn content_type(representation: Representation) -> &'static str {
    match representation.format {
        Format::Json => "application/json",
        Format::Yaml => "application/yaml",
        Format::Protobuf => protobuf::MEDIA_TYPE,
    }
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
    let mut response = new(StatusCode::OK, content_type, ResponseBody::Gzip(Box::new(gzip)));
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
