//! The parts of requests that the network reads and rewrites.

use super::Network;
use crate::{
    faults::{PROBE, RequestFault, RequestInfo},
    selection::Part,
    totals::Fault,
};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use kube::client::Body;
use serde_json::json;

/// The parts of a request on which faults depend.
pub(super) fn info(request: &Request<Body>) -> RequestInfo {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| pairs(query).find(|(key, _)| *key == name).map(|(_, value)| value);
    RequestInfo {
        write: request.method() != Method::GET,
        watch: value("watch") == Some("true"),
        streaming: value("sendInitialEvents") == Some("true"),
        version: value("resourceVersion").and_then(|version| version.parse().ok()),
        continued: value("continue").is_some(),
        probe: value("limit").and_then(|limit| limit.parse().ok()) == Some(PROBE) || names_object(request),
    }
}

/// Whether a request reads one object, and not a collection.
pub(super) fn names_object(request: &Request<Body>) -> bool {
    let mut segments = request.uri().path().split('/').skip_while(|segment| *segment != "namespaces");
    // The namespace, the resource and the name.
    request.method() == Method::GET && segments.nth(3).is_some()
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter_map(|pair| pair.split_once('='))
}

/// The same request with another resource version.
fn at_version(mut request: Request<Body>, version: u64, exact: bool) -> Request<Body> {
    let uri = request.uri();
    let kept = pairs(uri.query().unwrap_or_default()).filter(|(key, _)| !key.starts_with("resourceVersion"));
    let mut query: Vec<String> = kept.map(|(key, value)| format!("{key}={value}")).collect();
    query.push(format!("resourceVersion={version}"));
    if exact {
        query.push("resourceVersionMatch=Exact".into());
    }
    let rewritten = format!("{}?{}", uri.path(), query.join("&")).parse::<Uri>();
    *request.uri_mut() = rewritten.expect("it was a valid URI before");
    request
}

/// A `Status` as JSON, sometimes with a text as its `retryAfterSeconds`.
pub(super) fn status(code: u16, reason: &str, retry_after: Option<&str>) -> String {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "simulated", "reason": reason, "code": code,
    });
    let mut text = status.to_string();
    if let Some(retry_after) = retry_after {
        text.insert_str(text.len() - 1, &format!(r#","details":{{"retryAfterSeconds":{retry_after}}}"#));
    }
    text
}

/// Adds headers that make no sense, and very long ones.
pub(super) fn add_strange_headers(headers: &mut HeaderMap) {
    let long = HeaderValue::from_str(&"x".repeat(60_000)).expect("a valid value");
    for name in ["x-long", "warning", "date", "age"] {
        headers.append(name, long.clone());
    }
    for value in ["99999999999999999999", "-1", "nonsense"] {
        headers.append("retry-after", HeaderValue::from_static(value));
        headers.append("expires", HeaderValue::from_static(value));
    }
    let not_text = HeaderValue::from_bytes(b"\xff\xfe\x80").expect("a valid value");
    headers.append("server", not_text);
    for number in 0..200_u32 {
        headers.append("x-repeated", HeaderValue::from(number));
    }
}

impl Network {
    /// Changes the resource version of a request: to an older one, as if a replica that is behind responded, or to
    /// one from which events are repeated.
    pub(super) fn rewrite(
        &self,
        request: Request<Body>,
        info: RequestInfo,
        fault: Option<RequestFault>,
        part: &Part,
    ) -> Request<Body> {
        let Some(from) = info.version else { return request };
        let truth = self.truth.lock();
        let history = &truth.history;
        match fault {
            Some(RequestFault::Duplicate(count)) if from > 0 && from <= history.version => {
                let earlier = history.rewind(from, count, part);
                drop(truth);
                at_version(request, earlier, false)
            }
            Some(RequestFault::Stale(by)) if !info.watch && from < history.version => {
                let earlier = history.version.saturating_sub(by).max(from).max(history.compacted);
                drop(truth);
                self.log.record_fault(Fault::StaleList);
                at_version(request, earlier, true)
            }
            _ => request,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(uri: &str) -> Request<Body> {
        Request::get(uri).body(Vec::new().into()).unwrap()
    }

    #[test]
    fn the_query_of_a_request_is_read() {
        let list = info(&get("/api/v1/configmaps?limit=2&resourceVersion=0"));
        assert!(!list.watch && !list.continued && !list.write);
        assert_eq!(list.version, Some(0));
        assert!(info(&get("/api/v1/configmaps?continue=abc&limit=2")).continued);
        assert!(
            names_object(&get("/api/v1/namespaces/a/configmaps/x"))
                && !names_object(&get("/api/v1/namespaces/a/configmaps"))
        );
        let watch = info(&get("/api/v1/configmaps?resourceVersion=&sendInitialEvents=true&watch=true"));
        assert!(watch.watch && watch.streaming);
        assert_eq!(watch.version, None);
    }

    #[test]
    fn only_the_version_is_rewritten() {
        let exact =
            at_version(get("/things?limit=2&resourceVersion=9&resourceVersionMatch=NotOlderThan"), 7, true);
        assert_eq!(exact.uri(), "/things?limit=2&resourceVersion=7&resourceVersionMatch=Exact");
        let watch = at_version(get("/things?resourceVersion=9&watch=true"), 7, false);
        assert_eq!(watch.uri(), "/things?watch=true&resourceVersion=7");
    }
}
