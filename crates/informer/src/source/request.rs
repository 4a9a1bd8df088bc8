//! HTTP requests.

use super::own_connection::LongStream;
use http::{
    HeaderValue, Request,
    header::{ACCEPT, ACCEPT_ENCODING},
};
use kube::client::Body;
use kube_informer_wire::ListWatchError;

/// The `Accept` header of a request.
pub(super) struct Accept(&'static str);

/// The content that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Protobuf, or JSON if the server prefers that.
    Protobuf,
    Json,
    /// Metadata only, in JSON.
    Metadata,
}

impl Accept {
    pub(super) fn list(content: Content) -> Self {
        Self(match content {
            Content::Metadata => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            Content::Protobuf => PROTOBUF,
            Content::Json => "application/json",
        })
    }

    pub(super) fn watch(content: Content) -> Self {
        Self(match content {
            Content::Metadata => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
            Content::Protobuf => PROTOBUF,
            Content::Json => "application/json",
        })
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

pub(super) fn list(url: &str, accept: Accept) -> Result<Request<Body>, ListWatchError> {
    Request::get(url).header(ACCEPT, accept.0).body(Body::empty()).map_err(|_| too_long(url))
}

pub(super) fn watch(url: &str, accept: Accept) -> Result<Request<Body>, ListWatchError> {
    let mut request = list(url, accept)?;
    // Servers compress a stream as several gzip members, of which many clients read only the first.
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request.extensions_mut().insert(LongStream);
    Ok(request)
}

/// The error of a URL that is too long.
fn too_long(url: &str) -> ListWatchError {
    let path = url.split('?').next().unwrap_or_default();
    let message = format!("the URL has {} bytes; use a shorter selector", url.len());
    ListWatchError::Invalid { message, url: path.into() }
}
