//! Headers and parameters that every request may have.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::cluster::{APPLY, Cluster, MERGE};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request with headers. Returns the code and the text of the response.
async fn send(c: &Cluster, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(kube::client::Body::from(body.as_bytes().to_vec())).expect("a request");
    let response = c.client.send(request).await.expect("a response");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a complete response").to_bytes();
    (code, String::from_utf8(bytes.to_vec()).expect("text"))
}

async fn cluster() -> Cluster {
    let c = Cluster::new().await;
    assert_eq!(c.post(MAPS, json!({"metadata": {"name": "m"}, "data": {"k": "v"}})).await.0, 201);
    c
}

#[tokio::test(start_paused = true)]
async fn responses_are_indented_on_request_and_for_people() {
    let c = cluster().await;
    for (query, agent, pretty) in [
        ("", "kubectl/v1.36", false),
        ("pretty=true", "kubectl/v1.36", true),
        ("pretty", "kubectl/v1.36", true),
        ("pretty=0", "curl/8.0", false),
        ("pretty=false", "curl/8.0", false),
        ("", "curl/8.0", true),
        ("", "Mozilla/5.0 (X11)", true),
        ("", "Wget/1.21", true),
        ("", "python-requests/2", false),
    ] {
        for path in [format!("{MAPS}/m?{query}"), format!("{MAPS}?{query}")] {
            let (_, text) = send(&c, "GET", &path, &[("User-Agent", agent)], "").await;
            assert_eq!(text.starts_with("{\n  \""), pretty, "{path} {agent}: {text:.60}");
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{path}");
        }
    }
    // One event is one line.
    let path = format!("{MAPS}?watch=1&pretty=true&timeoutSeconds=1");
    let (_, text) = send(&c, "GET", &path, &[("User-Agent", "curl/8.0")], "").await;
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_manager_is_named_by_the_parameter_or_the_client() {
    let c = cluster().await;
    for (i, (query, agent, manager)) in [
        ("?fieldManager=mine", "kubectl/v1.36 (linux/amd64)", "mine"),
        ("", "kubectl/v1.36 (linux/amd64)", "kubectl"),
        ("", "my-program", "my-program"),
        ("?fieldManager=", "agent/1", "agent"),
        ("", "", "unknown"),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({"metadata": {"name": format!("m{i}")}, "data": {"a": "b"}}).to_string();
        let headers = [("Content-Type", "application/json"), ("User-Agent", agent)];
        let (code, text) = send(&c, "POST", &format!("{MAPS}{query}"), &headers, &body).await;
        let made: Value = serde_json::from_str(&text).expect("JSON");
        let entry = &made["metadata"]["managedFields"][0];
        assert_eq!((code, &entry["manager"]), (201, &json!(manager)), "{query} {agent}: {text}");
        assert_eq!(entry["operation"], "Update");
    }
    let long = format!("{MAPS}?fieldManager={}", "m".repeat(129));
    assert_eq!(c.post(&long, json!({"metadata": {"name": "x"}})).await.0, 422);
    let odd = format!("{MAPS}?fieldManager=a%07b");
    assert_eq!(c.post(&odd, json!({"metadata": {"name": "x"}})).await.0, 422);
    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let (code, status) = c.patch(&format!("{MAPS}/m"), APPLY, apply).await;
    assert_eq!(code, 422, "an apply has to name its manager: {status}");
    let (code, status) = c.patch(&format!("{MAPS}/m?force=true"), MERGE, json!({})).await;
    assert_eq!(code, 422, "only an apply can be forced: {status}");
}

/// kube-apiserver ignores parameters and headers that it does not know, and so do clients rely on it.
#[tokio::test(start_paused = true)]
async fn unknown_parameters_and_conditional_headers_change_nothing() {
    let c = cluster().await;
    let (_, plain) = c.get(&format!("{MAPS}/m")).await;
    for query in ["unknown=1", "limit=", "watch=true", "labelSelector=x%3Dy", "%zz=%", "=&&="] {
        let (code, object) = c.get(&format!("{MAPS}/m?{query}")).await;
        assert_eq!((code, &object), (200, &plain), "{query}");
    }
    for header in [
        ("If-Match", "\"1\""),
        ("If-None-Match", "*"),
        ("If-Modified-Since", "Thu, 01 Jan 2099 00:00:00 GMT"),
        ("Range", "bytes=0-1"),
    ] {
        let (code, text) = send(&c, "GET", &format!("{MAPS}/m"), &[header], "").await;
        assert_eq!(
            (code, serde_json::from_str::<Value>(&text).ok()),
            (200, Some(plain.clone())),
            "{header:?}"
        );
    }
    // A condition on a write has no effect either: versions are in the object.
    let headers = [("If-Match", "\"stale\""), ("Content-Type", MERGE)];
    let (code, _) = send(&c, "PATCH", &format!("{MAPS}/m"), &headers, r#"{"data": {"k": "2"}}"#).await;
    assert_eq!(code, 200);
}

#[tokio::test(start_paused = true)]
async fn accept_headers_are_negotiated_as_by_kube_apiserver() {
    let c = cluster().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, code, content_type) in [
        ("", 200, "application/json"),
        ("*/*", 200, "application/json"),
        ("application/*", 200, "application/json"),
        ("application/json; charset=utf-8", 200, "application/json"),
        ("application/yaml", 200, "application/yaml"),
        ("text/html, application/yaml;q=0.9, */*;q=0.1", 200, "application/yaml"),
        ("application/yaml;q=0.1, application/json;q=0.2", 200, "application/json"),
        ("application/vnd.kubernetes.protobuf", 200, "application/vnd.kubernetes.protobuf"),
        ("application/vnd.kubernetes.protobuf, application/json", 200, "application/vnd.kubernetes.protobuf"),
        ("application/cbor, application/json", 200, "application/json"),
        ("application/cbor", 406, ""),
        ("text/html", 406, ""),
        ("application/json;q=0", 406, ""),
        (table, 200, "application/json"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", 406, ""),
        ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", 200, "application/json"),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", 200, "application/yaml"),
        ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", 406, ""),
    ] {
        let mut request = http::Request::get(MAPS);
        if !accept.is_empty() {
            request = request.header("Accept", accept);
        }
        let request = request.body(kube::client::Body::empty()).expect("a request");
        let response = c.client.send(request).await.expect("a response");
        assert_eq!(response.status().as_u16(), code, "{accept}");
        if code == 200 {
            let found = response.headers()["content-type"].to_str().expect("ASCII");
            assert_eq!(found, content_type, "{accept}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn timeouts_are_read_and_bounded() {
    let c = cluster().await;
    for (timeout, code) in
        [("1s", 200), ("0", 200), ("1h", 200), ("", 200), ("soon", 400), ("-1s", 400), ("5", 400)]
    {
        assert_eq!(c.get(&format!("{MAPS}/m?timeout={timeout}")).await.0, code, "{timeout}");
    }
    for (seconds, code) in [("1", 200), ("", 200), ("x", 400), ("1.5", 400), ("99999999999999999999", 400)] {
        let (found, status) = c.get(&format!("{MAPS}?timeoutSeconds={seconds}")).await;
        assert_eq!(found, code, "{seconds}: {status}");
    }
    // A watch ends when its time is over, and a negative time is none.
    let mut watch = c.watch(&format!("{MAPS}?watch=1&timeoutSeconds=5")).await;
    assert_eq!(watch.next().await.expect("the state")["type"], "ADDED");
    assert_eq!(watch.next().await, None);
    let mut watch = c.watch(&format!("{MAPS}?watch=1&timeoutSeconds=-5")).await;
    assert_eq!(watch.next().await.expect("the state")["type"], "ADDED");
}

/// A page size does not apply to a watch, which has no pages.
#[tokio::test(start_paused = true)]
async fn a_watch_ignores_limits_and_rejects_tokens_with_a_match() {
    let c = cluster().await;
    assert_eq!(c.post(MAPS, json!({"metadata": {"name": "n"}})).await.0, 201);
    let mut watch = c.watch(&format!("{MAPS}?watch=1&limit=1")).await;
    for _ in 0..2 {
        assert_eq!(watch.next().await.expect("the state")["type"], "ADDED");
    }
    let streaming =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let (code, status) = c.get(&format!("{MAPS}?{streaming}&continue=x")).await;
    assert_eq!(code, 422, "{status}");
    let mut watch = c.watch(&format!("{MAPS}?{streaming}&limit=1")).await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = watch.next().await.expect("an event");
        seen.push(event["type"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(seen, ["ADDED", "ADDED", "BOOKMARK"]);
}

/// Every path knows which methods it has, and the rest are refused in the same way.
#[tokio::test(start_paused = true)]
async fn methods_that_a_path_does_not_have_are_refused() {
    let c = cluster().await;
    let one = format!("{MAPS}/m");
    for (method, path, code) in [
        ("POST", one.as_str(), 405),
        ("PUT", MAPS, 405),
        ("PATCH", MAPS, 405),
        ("OPTIONS", MAPS, 405),
        ("TRACE", MAPS, 405),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("GET", "/api/v1/configmaps", 200),
        ("GET", "/api/v1/configmaps/m", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/namespaces/default/nodes/n", 404),
        ("POST", "/api/v1/watch/configmaps", 405),
        ("GET", "/api/v2/configmaps", 404),
        ("GET", "/apis/unknown.example.com/v1/things", 404),
        ("GET", "/apis/apps/v1/unknown", 404),
        ("GET", "/nothing", 404),
        ("POST", "/version", 405),
        ("DELETE", "/healthz", 405),
        ("TRACE", "/readyz", 405),
        ("POST", "/metrics", 405),
        ("TRACE", "/metrics", 405),
        ("POST", "/openapi/v2", 405),
        ("PUT", "/openapi/v3", 405),
        ("TRACE", "/openapi/v3/api/v1", 405),
    ] {
        let (found, text) = send(&c, method, path, &[("Content-Type", "application/json")], "").await;
        assert_eq!(found, code, "{method} {path}: {text}");
    }
    let (code, text) = send(&c, "HEAD", &one, &[], "").await;
    assert_eq!((code, text.as_str()), (405, ""), "resources have no HEAD");
}
