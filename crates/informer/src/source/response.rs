//! The response to a request, up to its body.

use crate::time::timeout;
use bytes::Bytes;
use http::{
    HeaderMap, Request, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube_informer_wire::{ListWatchError, MediaType, Status};
use std::{error::Error, io, sync::Arc, time::Duration};

/// The body of a successful response.
pub(super) struct ResponseBody {
    pub(super) body: Body,
    pub(super) media_type: MediaType,
    /// Path and query of the request.
    pub(super) url: Arc<str>,
}

/// Limits on the body of an error response. A longer or slower body is ignored, and the error is described by the HTTP
/// status code alone.
const ERROR_BODY_BYTES: usize = 64 << 10;
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// Sends a request and checks status and headers of the response.
pub(super) async fn send(
    client: &kube::Client,
    request: Request<Body>,
    url: Arc<str>,
) -> Result<ResponseBody, ListWatchError> {
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return Err(connect_error(&error, url)),
    };
    let (head, body) = response.into_parts();
    let media_type = match (head.status, media_type(&head.headers)) {
        (StatusCode::OK, Some(media_type)) => media_type,
        (status, known) if status.is_success() || status.is_redirection() && known.is_none() => {
            return Err(ListWatchError::NotJson { content_type: content_type(&head.headers), url });
        }
        (status, known) => return Err(api_error(status, known, &head.headers, body, url).await),
    };
    if head.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "the response is compressed; enable the `gzip` feature of kube";
        return Err(ListWatchError::Malformed { message: message.into(), url });
    }
    Ok(ResponseBody { body, media_type, url })
}

/// The media type of a response without its parameters; empty if there is none.
fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().chars().take(100).collect()
}

/// The encoding of the body, if it is one of Kubernetes. A response without a content type is taken for JSON.
fn media_type(headers: &HeaderMap) -> Option<MediaType> {
    match content_type(headers).to_ascii_lowercase().as_str() {
        "" | "application/json" => Some(MediaType::Json),
        "application/vnd.kubernetes.protobuf" => Some(MediaType::Protobuf),
        other => other.ends_with("+json").then_some(MediaType::Json),
    }
}

/// The error that an error response describes.
async fn api_error(
    status: StatusCode,
    media_type: Option<MediaType>,
    headers: &HeaderMap,
    body: Body,
    url: Arc<str>,
) -> ListWatchError {
    let text = match timeout(ERROR_BODY_TIME, Limited::new(body, ERROR_BODY_BYTES).collect()).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    let code = status.as_u16();
    let parsed = match media_type {
        Some(MediaType::Protobuf) => Status::parse_protobuf(&text),
        _ => Status::parse(&text),
    };
    let mut status = parsed.unwrap_or_else(|| Status::from_code(code));
    // The code of the response takes precedence: a proxy may have changed it for a reason.
    status.code = code;
    ListWatchError::Api { status: Box::new(status), retry_after: retry_after(headers), url }
}

/// `Retry-After` in seconds; servers of this API never send a date. More seconds than fit 64 bits are as many as fit.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// The error of a request without a response.
fn connect_error(error: &kube::Error, url: Arc<str>) -> ListWatchError {
    ListWatchError::Connect { refused: is_refused(error), message: describe(error), url }
}

/// Whether the cause of an error is a refused connection.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// An error and its sources.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error as text without credentials: kube's own text about a failed login quotes the output of the login command.
pub(super) fn describe(error: &kube::Error) -> String {
    const MAX_CHARS: usize = 300;
    if causes(error).any(|cause| cause.is::<kube::client::AuthError>())
        || matches!(error, kube::Error::Auth(_))
    {
        return "cannot get credentials; check the user entry of the kubeconfig or the service account"
            .into();
    }
    // The outermost text of kube repeats its cause.
    let mut texts: Vec<String> = Vec::new();
    for cause in causes(error).skip(usize::from(error.source().is_some())) {
        let text = cause.to_string();
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ").chars().take(MAX_CHARS).collect()
}
