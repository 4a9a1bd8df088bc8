//! A request of a replica.

use http::{Method, Request, header, request::Parts};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

/// A request of a replica, read as a whole.
pub(super) struct Call {
    head: Parts,
    bytes: Vec<u8>,
    pub(super) method: Method,
    pub(super) resource: String,
    /// Empty for a collection.
    pub(super) name: String,
    pub(super) watch: bool,
    /// Whether it is a server-side apply.
    pub(super) apply: bool,
    pub(super) body: Value,
}

impl Call {
    pub(super) async fn read(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        let bytes = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut words = head.uri.path().split('/').skip_while(|word| *word != "v1").skip(1).peekable();
        if words.next_if_eq(&"namespaces").is_some() {
            words.next();
        }
        let resource = words.next().unwrap_or_default().to_owned();
        let in_body = || body["metadata"]["name"].as_str().map(str::to_owned);
        let name = words.next().map(str::to_owned).or_else(in_body).unwrap_or_default();
        let watch = head.uri.query().is_some_and(|query| query.contains("watch="));
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let apply = content_type.is_some_and(|value| value.contains("apply-patch"));
        let method = head.method.clone();
        Self { head, bytes, method, resource, name, watch, apply, body }
    }

    pub(super) fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    /// Whether it is a write that needs a lease.
    pub(super) fn is_controller_write(&self) -> bool {
        self.is_write() && matches!(self.resource.as_str(), "sites" | "configmaps")
    }

    pub(super) fn is_lease_write(&self) -> bool {
        self.is_write() && self.resource == "leases"
    }

    /// The request, to be forwarded.
    pub(super) fn request(&self) -> Request<Body> {
        Request::from_parts(self.head.clone(), Body::from(self.bytes.clone()))
    }
}
