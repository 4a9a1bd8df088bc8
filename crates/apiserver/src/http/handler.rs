//! One request, from its head to its response.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::body::ResponseBody;
use super::discovery;
use super::metrics;
use super::negotiate::Format;
use super::openapi;
use super::probes;
use super::request_head::deadline;
use super::resource_request;
use super::respond::{respond_error, respond_status, respond_text};
use super::route::Route;
use super::snapshots;
use super::switches;
use crate::api::Api;
use crate::faults::Faults;
use crate::metrics::Record;
use crate::registry::is_built_in;
use crate::server::AccessError;
use crate::status::Status;
use crate::verbs::error::{RequestError, VerbError};
use crate::verbs::options::Query;

/// The request was executed, and its response is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the response was lost (fault injected): read the object to find out whether the request was executed"
)]
pub(crate) struct ResponseLost;

/// The response to a request without access.
pub(crate) fn refuse<B>(
    api: &Api,
    request: &http::Request<B>,
    error: &AccessError,
) -> Response<ResponseBody> {
    let status = Status::from(error);
    Record::new(&api.metrics, request.method()).finish(status.code());
    respond_status(&status, Format::Json)
}

/// Serves one request in the caller's task. A watch continues in the body of the response.
pub(crate) async fn handle<B>(
    api: Arc<Api>,
    request: http::Request<B>,
) -> Result<Response<ResponseBody>, ResponseLost>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let head = parts.method == http::Method::HEAD;
    let mut record = Record::new(&api.metrics, &parts.method);
    let query = Query::parse(parts.uri.query());
    let mut response = match Route::parse(parts.uri.path()) {
        route if route.is_read_only() && !matches!(parts.method, Method::GET | Method::HEAD) => {
            respond_error(&RequestError::MethodNotAllowed.into(), Format::Json)
        }
        Route::Resource(path) => {
            resource_request::serve(&api, &parts, path, query, body, &mut record).await?
        }
        // Requests to resources check it with their other options, because watches have none.
        _ if deadline(&query).is_err() => {
            let text = query.text("timeout").to_owned();
            respond_error(&RequestError::InvalidTimeout(text).into(), Format::Json)
        }
        route => serve_other(&api, &parts, route, &query).await,
    };
    record.finish(response.status());
    if head {
        *response.body_mut() = ResponseBody::whole(Bytes::new());
    }
    Ok(response)
}

/// Serves a request that is not about objects.
async fn serve_other(api: &Api, parts: &Parts, route: Route, query: &Query) -> Response<ResponseBody> {
    let header = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    let (accept, known) = (header(ACCEPT), header(IF_NONE_MATCH));
    match route {
        Route::Root => discovery::paths(&api.resources.snapshot().registry),
        Route::OpenApiV2 => openapi::all(&api.resources.snapshot().registry, accept, known),
        Route::OpenApiIndex => openapi::index(&api.resources.snapshot().registry),
        Route::OpenApi(group, version) => {
            openapi::document(&api.resources.snapshot().registry, &group, &version, query.text("hash"))
                .unwrap_or_else(page_not_found)
        }
        Route::OpenIdConfiguration => {
            let document = api.authenticator.issuer.discovery();
            respond_text(StatusCode::OK, "application/json", document.to_string())
        }
        Route::OpenIdKeys => match api.authenticator.issuer.key_set() {
            Some(keys) => respond_text(StatusCode::OK, "application/jwk-set+json", keys.to_string()),
            None => respond_error(&VerbError::NoRandomness.into(), Format::Json),
        },
        Route::Version => probes::version(),
        Route::Metrics => metrics::scrape(&api.metrics, &api.caches, &*api.storage).await,
        Route::HealthMetrics => metrics::health(api).await,
        Route::Faults(switch) if api.fault_endpoints => {
            switches::flip(&Faults::new(api), &parts.method, switch.as_deref(), query).await
        }
        Route::Snapshots(snapshot) if api.fault_endpoints => {
            let snapshot = snapshot.as_ref().map(|(name, action)| (name.as_str(), *action));
            snapshots::serve(api, &parts.method, snapshot).await
        }
        Route::Health(endpoint, check) => probes::health(api, endpoint, check.as_deref(), query).await,
        Route::CoreVersions => discovery::core_versions(&api.resources.snapshot().registry, accept, known),
        Route::Groups => discovery::groups(&api.resources.snapshot().registry, accept, known),
        Route::Group(group) => {
            discovery::group(&api.resources.snapshot().registry, &group).unwrap_or_else(page_not_found)
        }
        Route::GroupVersion(group, version) => {
            discovery::resources(&api.resources.snapshot().registry, &group, &version)
                .unwrap_or_else(|| if is_built_in(&group) { no_such_resource() } else { page_not_found() })
        }
        _ => page_not_found(),
    }
}

pub(super) fn page_not_found() -> Response<ResponseBody> {
    respond_text(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

pub(super) fn no_such_resource() -> Response<ResponseBody> {
    respond_error(&RequestError::NoSuchResource.into(), Format::Json)
}
