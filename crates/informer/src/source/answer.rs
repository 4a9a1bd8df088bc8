//! What comes before a body: the HTTP status, the headers, and the failures that show there.

use crate::time::timeout;
use bytes::Bytes;
use http::{
    HeaderMap, Request, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube_informer_wire::{ListWatchError, Status};
use std::{error::Error, io, sync::Arc, time::Duration};

/// An answer that promises to be JSON; its body is still to be read.
pub(super) struct Answer {
    pub(super) body: Body,
    /// Path and query of what was asked.
    pub(super) url: Arc<str>,
}

/// Most of the body of a refusal that is read: a `Status` is much smaller.
const REFUSAL_BYTES: usize = 64 << 10;
/// How long the body of a refusal may take. What it would say is worth no more.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(5);

impl Answer {
    /// Sends a request and judges the answer by its headers.
    pub(super) async fn to(
        client: &kube::Client,
        request: Request<Body>,
        url: Arc<str>,
        patience: Duration,
    ) -> Result<Self, ListWatchError> {
        let response = match timeout(patience, client.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(unreachable(&error, url)),
            Err(_) => return Err(ListWatchError::Silent { what: "answer", after: patience, url }),
        };
        let (head, body) = response.into_parts();
        let json = is_json(&head.headers);
        match head.status {
            StatusCode::OK if json => {}
            status if status.is_success() || status.is_redirection() && !json => {
                return Err(ListWatchError::NotJson { content_type: content_type(&head.headers), url });
            }
            status => return Err(refusal(status, &head.headers, body, url).await),
        }
        if head.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let message =
                "it is compressed and the client does not undo that; enable the `gzip` feature of kube";
            return Err(ListWatchError::Malformed { message: message.into(), url });
        }
        Ok(Self { body, url })
    }
}

/// The media type of an answer without its parameters; empty if there is none.
fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().chars().take(100).collect()
}

/// Whether the body promises to be JSON. An answer without a Content-Type gets the benefit of the doubt.
fn is_json(headers: &HeaderMap) -> bool {
    let media_type = content_type(headers).to_ascii_lowercase();
    matches!(media_type.as_str(), "" | "application/json") || media_type.ends_with("+json")
}

/// The server said no: what did it say?
async fn refusal(status: StatusCode, headers: &HeaderMap, body: Body, url: Arc<str>) -> ListWatchError {
    let said = match timeout(REFUSAL_PATIENCE, Limited::new(body, REFUSAL_BYTES).collect()).await {
        Ok(Ok(collected)) => collected.to_bytes(),
        // What is too long, too slow or broken is no explanation.
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    let code = status.as_u16();
    let mut status = Status::parse(&said).unwrap_or_else(|| Status::from_code(code));
    // The code of the answer decides: a proxy may have changed it for a reason.
    status.code = code;
    ListWatchError::Api { status: Box::new(status), retry_after: retry_after(headers), url }
}

/// `Retry-After` in seconds; servers of this API never send a date. Seconds beyond 64 bits are as many as fit.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// No answer at all.
fn unreachable(error: &kube::Error, url: Arc<str>) -> ListWatchError {
    ListWatchError::Connect { refused: is_refused(error), message: describe(error), url }
}

/// Whether somewhere below an error nobody listened at the address.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// An error and what it came from.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// What went wrong, in words that hold no credential: kube's own text about a failed login quotes the output of
/// the login command.
pub(super) fn describe(error: &kube::Error) -> String {
    const LONGEST: usize = 300;
    if causes(error).any(|cause| cause.is::<kube::client::AuthError>())
        || matches!(error, kube::Error::Auth(_))
    {
        return "cannot get credentials; check the user entry of the kubeconfig or the service account"
            .into();
    }
    // The outermost text of kube repeats its cause.
    let mut words: Vec<String> = Vec::new();
    for cause in causes(error).skip(usize::from(error.source().is_some())) {
        let text = cause.to_string();
        if words.last().is_none_or(|last| !last.contains(&text)) {
            words.push(text);
        }
    }
    words.join(": ").chars().take(LONGEST).collect()
}
