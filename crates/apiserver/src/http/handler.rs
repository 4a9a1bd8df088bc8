//! One request, from its head to its response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH, USER_AGENT};
use http::{Extensions, HeaderMap, Method, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::SignedDuration;

use super::body::ResponseBody;
use super::discovery;
use super::error::HttpError;
use super::gzip::accepts_gzip;
use super::metrics;
use super::negotiate::{Format, Subject, negotiate};
use super::openapi;
use super::probes;
use super::respond::{ResponseOptions, respond, respond_error, respond_status, respond_text};
use super::route::{ResourcePath, Route};
use super::switches;
use super::warnings::warn;
use crate::api::Api;
use crate::caches::Caches;
use crate::faults::{Fault, Faults};
use crate::metrics::Record;
use crate::protobuf::{self, ProtobufError};
use crate::registry::{Lifecycle, Missing, Resource, Subresource, is_built_in};
use crate::server::AccessError;
use crate::status::Status;
use crate::verb::Verb;
use crate::verbs::error::{RequestError, Target, VerbError};
use crate::verbs::list::scope;
use crate::verbs::options::{ListOptions, Query};
use crate::verbs::patch::PatchType;
use crate::verbs::{self, Request};
use crate::watch_cache::RevisionOption;
use crate::work::Work;

/// The longest duration of a request that is not a watch.
const DEADLINE: Duration = Duration::from_secs(60);
/// A body or a stored object beyond this is processed in the CPU pool. Below it, changing threads would take longer than the work.
const LARGE: usize = 32 * 1024;

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
    let query = Query::parse(parts.uri.query());
    let head = parts.method == http::Method::HEAD;
    let header = |name| parts.headers.get(name).and_then(|v| v.to_str().ok());
    let (accept, known) = (header(ACCEPT), header(IF_NONE_MATCH));
    let mut record = Record::new(&api.metrics, &parts.method);
    let route = Route::parse(parts.uri.path());
    let mut response = match route {
        Route::CoreVersions | Route::Groups | Route::Group(_) | Route::GroupVersion(..) | Route::Version
            if !matches!(parts.method, Method::GET | Method::HEAD) =>
        {
            respond_error(&RequestError::MethodNotAllowed.into(), Format::Json)
        }
        Route::Root => discovery::paths(&api.resources.snapshot().registry),
        Route::Resource(path) => serve_resource(&api, &parts, path, query, body, &mut record).await?,
        Route::OpenApiIndex => openapi::index(&api.resources.snapshot().registry),
        Route::OpenApi(group, version) => {
            openapi::document(&api.resources.snapshot().registry, &group, &version, query.text("hash"))
                .unwrap_or_else(page_not_found)
        }
        Route::Version => probes::version(),
        Route::Metrics => metrics::scrape(&api.metrics, &api.caches, &*api.storage).await,
        Route::Faults(switch) if api.fault_endpoints => {
            switches::flip(&Faults::new(&api), &parts.method, switch.as_deref(), &query).await
        }
        Route::Health(endpoint, check) => probes::health(&api, endpoint, check.as_deref(), &query).await,
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
    };
    record.finish(response.status());
    if head {
        *response.body_mut() = ResponseBody::whole(Bytes::new());
    }
    Ok(response)
}

fn page_not_found() -> Response<ResponseBody> {
    respond_text(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

fn no_such_resource() -> Response<ResponseBody> {
    respond_error(&RequestError::NoSuchResource.into(), Format::Json)
}

async fn serve_resource<B>(
    api: &Arc<Api>,
    parts: &http::request::Parts,
    path: ResourcePath,
    query: Query,
    body: B,
    record: &mut Record<'_>,
) -> Result<Response<ResponseBody>, ResponseLost>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let resource = match api.resources.snapshot().registry.find(&path.group, &path.version, &path.resource) {
        Ok(resource) => Arc::clone(resource),
        Err(Missing::Group) => return Ok(page_not_found()),
        Err(Missing::Resource) => return Ok(no_such_resource()),
    };
    let (verb, subresource) = match operation(parts, &path, &resource, &query) {
        Ok(operation) => operation,
        Err(error) => return Ok(respond_error(&error.into(), Format::Json)),
    };
    record.target(verb, &resource, &path, subresource);
    let accept = parts.headers.get(ACCEPT).and_then(|v| v.to_str().ok());
    let typed = protobuf::knows(&resource.api_version(), &resource.kind);
    let mut representation = match negotiate(accept, subject(verb, &path), &query, typed) {
        Ok(representation) => representation,
        Err(refused) => return Ok(respond_error(&refused.error.into(), refused.format)),
    };
    representation.pretty = verb != Verb::Watch && wants_pretty(&parts.headers, &query);
    let gzip = accepts_gzip(parts.headers.get(ACCEPT_ENCODING).and_then(|v| v.to_str().ok()));
    let options = ResponseOptions { representation, gzip };
    let permit = (verb == Verb::Watch).then(|| api.watch_permits.acquire(&parts.extensions));
    let permit = match permit.transpose() {
        Ok(permit) => permit,
        Err(error) => return Ok(respond_error(&error.into(), options.representation.format)),
    };
    let fault = api.faults.draw(verb, &resource.plural);
    let executed =
        run(api, (verb, subresource), parts, path, Arc::clone(&resource), query, body, fault).await;
    if fault == Some(Fault::ResponseLost) {
        return Err(ResponseLost);
    }
    let mut response = match executed {
        Ok(response) => respond(api, &resource, response, options),
        Err(error) => {
            let mut response = respond_error(&error, options.representation.format);
            warn(&mut response, resource.deprecation());
            response
        }
    };
    if let (ResponseBody::Watch(watch), Some(permit)) = (response.body_mut(), permit) {
        watch.hold(permit);
    }
    Ok(response)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, each used once")]
async fn run<B>(
    api: &Arc<Api>,
    (verb, subresource): (Verb, Option<Subresource>),
    parts: &http::request::Parts,
    path: ResourcePath,
    resource: Arc<Resource>,
    query: Query,
    body: B,
    fault: Option<Fault>,
) -> Result<verbs::Response, HttpError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if api.shutdown.has_begun() {
        return Err(HttpError::ShuttingDown);
    }
    if let Some(fault) = fault {
        inject(fault, verb, &resource, &path).await?;
    }
    let deadline = deadline(&query)?;
    let work = async {
        let body = if verb.has_body() { read_body(body, api.limits.body_bytes).await? } else { Bytes::new() };
        let request = Request {
            namespace: path.namespace,
            name: path.name,
            subresource,
            user_agent: user_agent(&parts.headers),
            content_type: content_type(&parts.headers),
            resource,
            query,
            body,
            work: Work::default(),
        };
        Ok(execute(api, verb, request, &parts.extensions).await?)
    };
    if verb == Verb::Watch {
        return work.await;
    }
    tokio::time::timeout(deadline, work).await.unwrap_or(Err(HttpError::DeadlineExceeded))
}

/// Executes a request, in the CPU pool if there is one and the request is large.
async fn execute(
    api: &Arc<Api>,
    verb: Verb,
    mut request: Request,
    extensions: &Extensions,
) -> Result<verbs::Response, VerbError> {
    match &api.cpu_pool {
        Some(pool) if is_large(&api.caches, verb, &request).await => {
            let work = extensions.get::<Work>().cloned().unwrap_or_default();
            request.work = work.clone();
            pool.run(extensions, &work, process(Arc::clone(api), verb, request)).await
        }
        _ => process(Arc::clone(api), verb, request).await,
    }
}

/// Whether the body, or the object that the request changes, takes long to process.
async fn is_large(caches: &Caches, verb: Verb, request: &Request) -> bool {
    if request.body.len() > LARGE {
        return true;
    }
    if !matches!(verb, Verb::Update | Verb::Patch) {
        return false;
    }
    let Ok(cache) = caches.of(&request.resource).await else { return false };
    let stored = cache.get(&scope(request), RevisionOption::Any).await;
    stored.ok().flatten().is_some_and(|stored| stored.document.encoded_len() > LARGE)
}

async fn process(api: Arc<Api>, verb: Verb, request: Request) -> Result<verbs::Response, VerbError> {
    let request = with_json(request)?;
    let mark = api.controllers.mark();
    let response = dispatch(&api, verb, &request).await;
    if verb.has_body() {
        // A failed reconciliation stays queued; the write itself has happened.
        api.controllers.reconcile(mark).await;
    }
    response
}

async fn dispatch(api: &Api, verb: Verb, request: &Request) -> Result<verbs::Response, VerbError> {
    let (caches, writes) = (&*api.caches, &*api.writes);
    match (request.subresource, verb) {
        (Some(Subresource::Scale), Verb::Get) => return verbs::scale::get(caches, request).await,
        (Some(Subresource::Scale), Verb::Update) => return verbs::scale::update(writes, request).await,
        (Some(Subresource::Scale), Verb::Patch) => {
            return verbs::scale::patch(writes, request, PatchType::parse(request)?).await;
        }
        (Some(Subresource::Binding), _) => return verbs::pods::bind(writes, request).await,
        (Some(Subresource::Eviction), _) => return verbs::pods::evict(writes, request).await,
        _ => {}
    }
    match verb {
        Verb::Get => verbs::get::get(caches, request).await,
        Verb::List => verbs::list::list(caches, request, &ListOptions::parse(&request.query)?).await,
        Verb::Watch => verbs::watch::watch(caches, request, &ListOptions::parse(&request.query)?).await,
        Verb::Create => match request.resource.lifecycle {
            Lifecycle::Review(review) => {
                verbs::reviews::review(&api.resources.snapshot().registry, request, review)
            }
            _ => verbs::create::create(writes, request).await,
        },
        Verb::Update => verbs::update::update(writes, request).await,
        Verb::Patch => match PatchType::parse(request)? {
            PatchType::Apply => verbs::apply::apply(writes, request).await,
            PatchType::Patch(kind) => verbs::patch::patch(writes, request, kind).await,
        },
        Verb::Delete => verbs::delete::delete(writes, request).await,
        Verb::DeleteCollection => {
            let options = ListOptions::parse(&request.query)?;
            verbs::delete_collection::delete_collection(writes, caches, request, &options).await
        }
    }
}

/// The verb and the subresource of a request, if the resource has them.
fn operation(
    parts: &http::request::Parts,
    path: &ResourcePath,
    resource: &Resource,
    query: &Query,
) -> Result<(Verb, Option<Subresource>), RequestError> {
    let named_without_namespace = resource.namespaced && path.name.is_some() && path.namespace.is_none();
    if named_without_namespace || (!resource.namespaced && path.namespace.is_some()) {
        return Err(RequestError::NoSuchResource);
    }
    let subresource = match path.subresource.as_deref().map(Subresource::parse) {
        None => None,
        Some(Some(subresource)) if resource.has_subresource(subresource) => Some(subresource),
        Some(_) => return Err(RequestError::NoSuchResource),
    };
    let verb = Verb::of(&parts.method, path, query.flag("watch")).ok_or(RequestError::MethodNotAllowed)?;
    if verb == Verb::Create && resource.is_terminating() {
        return Err(RequestError::KindTerminating(verb));
    }
    let everywhere = resource.namespaced && path.namespace.is_none();
    let allowed = match subresource {
        None => {
            resource.has_verb(verb) && !(everywhere && matches!(verb, Verb::Create | Verb::DeleteCollection))
        }
        Some(subresource) => subresource.verbs().contains(&verb),
    };
    if allowed { Ok((verb, subresource)) } else { Err(RequestError::MethodNotAllowed) }
}

/// The content of the response, for negotiation.
fn subject(verb: Verb, path: &ResourcePath) -> Subject {
    match verb {
        Verb::Watch => Subject::Watch,
        Verb::List | Verb::DeleteCollection if path.subresource.is_none() => Subject::List,
        _ => Subject::Object,
    }
}

async fn inject(fault: Fault, verb: Verb, resource: &Resource, path: &ResourcePath) -> Result<(), HttpError> {
    if let Fault::Delay(time) = fault {
        tokio::time::sleep(time).await;
    }
    if !fault.is_failure() {
        return Ok(());
    }
    let target = Box::new(Target::new(resource, path.name.as_deref()));
    Err(HttpError::Injected { fault, verb, target, namespace: path.namespace.clone() })
}

async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, RequestError>
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
fn with_json(request: Request) -> Result<Request, RequestError> {
    if request.content_type != protobuf::MEDIA_TYPE || request.body.is_empty() {
        return Ok(request);
    }
    match protobuf::decode(&request.body) {
        Ok(value) => {
            let body = value.to_string().into();
            Ok(Request { content_type: "application/json".to_owned(), body, ..request })
        }
        Err(ProtobufError::UnknownKind { .. }) => Err(verbs::decode::unknown_format(&request.resource)),
        Err(error) => Err(RequestError::BodyNotDecoded(error)),
    }
}

fn user_agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned()
}

/// The media type of the body, without parameters.
fn content_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// `timeout=` may shorten the deadline, not lengthen it.
fn deadline(query: &Query) -> Result<Duration, RequestError> {
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
fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
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
