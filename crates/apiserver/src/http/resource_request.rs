//! A request to a resource, from its path to its response.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use super::body::ResponseBody;
use super::dispatch::execute;
use super::error::HttpError;
use super::gzip::accepts_gzip;
use super::handler::{ResponseLost, no_such_resource, page_not_found};
use super::negotiate::{Format, Refused, Subject, negotiate};
use super::request_head::{content_type, deadline, read_body, user_agent, wants_pretty};
use super::respond::{Responder, ResponseOptions, respond_error};
use super::route::ResourcePath;
use super::warnings::warn;
use crate::api::Api;
use crate::authentication::{User, bearer_token, impersonate};
use crate::faults::Fault;
use crate::metrics::Record;
use crate::registry::{Missing, Resource, Subresource};
use crate::verb::Verb;
use crate::verbs::error::{RequestError, Target};
use crate::verbs::options::Query;
use crate::verbs::{self, Request};
use crate::work::Work;
use kube_informer_types::protobuf;

/// Serves a request to a resource.
pub(super) async fn serve<B>(
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
    let options = match response_options(parts, &path, verb, &query, &resource) {
        Ok(options) => options,
        Err(refused) => return Ok(respond_error(&refused.error.into(), refused.format)),
    };
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
        Ok(response) => {
            let responder = Responder { api, resource: &resource, options, extensions: &parts.extensions };
            responder.respond(response).await
        }
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

/// The negotiated form of the response.
fn response_options(
    parts: &http::request::Parts,
    path: &ResourcePath,
    verb: Verb,
    query: &Query,
    resource: &Resource,
) -> Result<ResponseOptions, Refused> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let typed = protobuf::knows(&resource.api_version(), &resource.kind);
    let mut representation = negotiate(header(ACCEPT), subject(verb, path, resource), query, typed)?;
    representation.pretty = verb != Verb::Watch && wants_pretty(&parts.headers, query);
    Ok(ResponseOptions { representation, gzip: accepts_gzip(header(ACCEPT_ENCODING)) })
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
            user: user(api, parts)?,
            work: Work::default(),
        };
        Ok(execute(api, verb, request, &parts.extensions).await?)
    };
    if verb == Verb::Watch {
        return work.await;
    }
    tokio::time::timeout(deadline, work).await.unwrap_or(Err(HttpError::DeadlineExceeded))
}

/// The user that access control found, or that it impersonates. Requests without a connection, from this process, need no credential
/// but may have one.
fn user(api: &Api, parts: &http::request::Parts) -> Result<User, HttpError> {
    let known = parts.extensions.get::<User>().cloned();
    let token = || bearer_token(&parts.headers).and_then(|token| api.authenticator.user_of(token));
    let caller = known.or_else(token).unwrap_or_else(User::anonymous);
    Ok(impersonate(&parts.headers, caller)?)
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
        Some(_) => return Err(missing_subresource(path, resource)),
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

/// The error for a subresource that the resource does not have. Those that need a kubelet are named: clients of a cluster know them.
fn missing_subresource(path: &ResourcePath, resource: &Resource) -> RequestError {
    const OF_KUBELETS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
    match path.subresource.as_deref() {
        Some(name) if resource.custom.is_none() && OF_KUBELETS.contains(&name) => {
            RequestError::NeedsKubelet { resource: resource.plural.clone(), subresource: name.to_owned() }
        }
        _ => RequestError::NoSuchResource,
    }
}

/// The content of the response, for negotiation.
fn subject(verb: Verb, path: &ResourcePath, resource: &Resource) -> Subject {
    match verb {
        _ if !resource.is_stored() => Subject::Action,
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
