//! Malformed requests: the right `Status`, and nothing is stored.

use serde_json::{Value, json};

use crate::golden::exchange::{read, send};
use kube_embedded_apiserver::ApiServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

struct Response {
    status: u64,
    reason: String,
    message: String,
}

async fn fetch(server: &ApiServer, request: Value) -> Response {
    let response = send(server.address(), &request).await.expect("a response");
    let got = read(response).await.expect("a complete response");
    let body = got.get("body").cloned().unwrap_or_default();
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    Response {
        status: got["status"].as_u64().unwrap_or_default(),
        reason: text("reason"),
        message: text("message"),
    }
}

async fn stored_maps(server: &ApiServer) -> usize {
    let response = send(server.address(), &json!({"path": "/api/v1/configmaps"})).await.expect("a response");
    read(response).await.expect("a complete response")["body"]["items"]
        .as_array()
        .map_or(usize::MAX, Vec::len)
}

fn post(text: impl Into<String>) -> Value {
    json!({"method": "POST", "path": MAPS, "headers": {"Content-Type": "application/json"}, "text": text.into()})
}

#[tokio::test]
async fn malformed_bodies_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    let named = |extra: &str| format!(r#"{{"metadata":{{"name":"a"}}{extra}}}"#);
    for (body, status, reason) in [
        (String::new(), 400, "BadRequest"),
        ("{".to_owned(), 400, "BadRequest"),
        (named("") + "x", 400, "BadRequest"),
        ("[]".to_owned(), 400, "BadRequest"),
        ("null".to_owned(), 422, "Invalid"),
        ("\"text\"".to_owned(), 400, "BadRequest"),
        (r#"{"metadata":[]}"#.to_owned(), 400, "BadRequest"),
        (r#"{"metadata":{"name":7}}"#.to_owned(), 400, "BadRequest"),
        (r#"{"metadata":{"name":"a","labels":{"k":{}}}}"#.to_owned(), 400, "BadRequest"),
        (named(r#","data":{"k":[]}"#), 400, "BadRequest"),
        (named(r#","kind":"Secret""#), 400, "BadRequest"),
        (named(r#","apiVersion":"v9""#), 400, "BadRequest"),
        (named(r#","apiVersion":"a/b/c""#), 400, "BadRequest"),
        ("[".repeat(50_000), 400, "BadRequest"),
        (r#"{"metadata":{"name":"a","namespace":"other"}}"#.to_owned(), 400, "BadRequest"),
        (r#"{"metadata":{}}"#.to_owned(), 422, "Invalid"),
        (r#"{"metadata":{"name":"../etc"}}"#.to_owned(), 422, "Invalid"),
        (r#"{"metadata":{"name":"a","labels":{"bad key":"v"}}}"#.to_owned(), 422, "Invalid"),
        (r#"{"metadata":{"name":"a","labels":{"k":"-"}}}"#.to_owned(), 422, "Invalid"),
        (r#"{"metadata":{"name":"a","finalizers":["nope"]}}"#.to_owned(), 422, "Invalid"),
        (r#"{"metadata":{"name":"a","ownerReferences":[{}]}}"#.to_owned(), 422, "Invalid"),
        (
            format!(r#"{{"metadata":{{"name":"a","annotations":{{"k":"{}"}}}}}}"#, "v".repeat(300_000)),
            422,
            "Invalid",
        ),
        (format!(r#"{{"metadata":{{"generateName":"{}"}}}}"#, "A".repeat(500)), 422, "Invalid"),
        (named(r#","data":{"bad key!":"v"}"#), 422, "Invalid"),
        ("x".repeat(3 * 1024 * 1024 + 1), 413, "RequestEntityTooLarge"),
    ] {
        let response = fetch(&server, post(body.clone())).await;
        assert_eq!(
            (response.status, response.reason.as_str()),
            (status, reason),
            "{:.80}: {}",
            body,
            response.message
        );
    }
    assert_eq!(stored_maps(&server).await, 0);
}

#[tokio::test]
async fn unsupported_media_types_and_methods_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    let body = r#"{"metadata":{"name":"a"}}"#;
    let with_type = |method: &str, path: &str, media: &str| json!({"method": method, "path": path, "headers": {"Content-Type": media}, "text": body});
    for (request, status, reason) in [
        (with_type("POST", MAPS, "text/csv"), 415, "UnsupportedMediaType"),
        (with_type("POST", MAPS, "application/vnd.kubernetes.protobuf"), 400, "BadRequest"),
        (with_type("PATCH", &format!("{MAPS}/a"), "application/json"), 415, "UnsupportedMediaType"),
        (with_type("PUT", MAPS, "application/json"), 405, "MethodNotAllowed"),
        (with_type("TRACE", MAPS, "application/json"), 405, "MethodNotAllowed"),
        (with_type("POST", &format!("{MAPS}/a"), "application/json"), 405, "MethodNotAllowed"),
        (json!({"path": MAPS, "headers": {"Accept": "image/png"}}), 406, "NotAcceptable"),
        (json!({"path": "/api/v1/nonsense"}), 404, "NotFound"),
        (json!({"path": "/apis/apps/v9/deployments"}), 404, "NotFound"),
        (json!({"path": "/api/v1/configmaps/a"}), 404, "NotFound"),
        (json!({"path": "/api/v1/namespaces/default/nodes"}), 404, "NotFound"),
        (json!({"path": format!("{MAPS}/a/nonsense")}), 404, "NotFound"),
    ] {
        let response = fetch(&server, request.clone()).await;
        assert_eq!(
            (response.status, response.reason.as_str()),
            (status, reason),
            "{request}: {}",
            response.message
        );
    }
    for path in
        ["/apis/example.com/v1/things", "/%2e%2e/secrets", "/api/v1/namespaces/a%2Fb/pods", "/etc/passwd"]
    {
        assert_eq!(fetch(&server, json!({"path": path})).await.status, 404, "{path}");
    }
    assert_eq!(stored_maps(&server).await, 0);
}

#[tokio::test]
async fn malformed_selectors_and_tokens_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    let token = |json: &str| {
        use base64::Engine;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
    };
    let start = |rv: i64, start: &str| {
        token(&format!(r#"{{"v":"meta.k8s.io/v1","rv":{rv},"start":{}}}"#, json!(start)))
    };
    for query in [
        "labelSelector=a+in+(".to_owned(),
        "labelSelector=%3D%3D%3D".to_owned(),
        format!("labelSelector={}", "a,".repeat(15_000)),
        format!("labelSelector=a+in+({})", "%28".repeat(2_000)),
        "labelSelector=x%3E%3Enotanumber".to_owned(),
        "labelSelector=a%00b%3D1".to_owned(),
        "fieldSelector=metadata.name".to_owned(),
        "fieldSelector=metadata.name%3D%5Cx".to_owned(),
        "fieldSelector=spec.secret%3D1".to_owned(),
        "continue=%25%25%25".to_owned(),
        format!("continue={}", token("{}")),
        format!("continue={}", token("not json")),
        format!("continue={}", start(0, "default/a\0")),
        format!("continue={}", start(1001, "")),
        format!("continue={}", start(1001, "../../secrets/default/s")),
        format!("continue={}", token(r#"{"v":"meta.k8s.io/v9","rv":1001,"start":"a"}"#)),
        format!("continue={}&resourceVersion=5", start(1001, "default/a\0")),
        format!("continue={}", "A".repeat(30_000)),
        "limit=1e9".to_owned(),
        "limit=99999999999999999999".to_owned(),
        "timeoutSeconds=x&watch=1".to_owned(),
        "timeout=x".to_owned(),
        "resourceVersion=-1".to_owned(),
        "resourceVersion=1.5".to_owned(),
    ] {
        let response = fetch(&server, json!({"path": format!("{MAPS}?{query}")})).await;
        // A request line above the limit is rejected without a Status.
        let rejected =
            response.status == 400 && response.reason == "BadRequest" || matches!(response.status, 414 | 431);
        assert!(rejected, "{query:.100}: {} {} {}", response.status, response.reason, response.message);
    }
}

#[tokio::test]
async fn malformed_patches_and_options_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    assert_eq!(fetch(&server, post(r#"{"metadata":{"name":"a"},"data":{"k":"1"}}"#)).await.status, 201);
    let path = format!("{MAPS}/a");
    let patch = |kind: &str, body: Value| json!({"method": "PATCH", "path": path, "headers": {"Content-Type": format!("application/{kind}+json")}, "json": body});
    let many: Vec<Value> = vec![json!({"op": "remove", "path": "/x"}); 10_001];
    for (request, status) in [
        (patch("merge-patch", json!([])), 400),
        (patch("merge-patch", json!("x")), 400),
        (patch("merge-patch", json!({"data": {"k": 1}})), 422),
        (patch("merge-patch", json!({"metadata": null})), 400),
        (patch("merge-patch", json!({"metadata": {"name": "b"}})), 400),
        (patch("merge-patch", json!({"metadata": {"namespace": "b"}})), 400),
        (patch("merge-patch", json!({"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}})), 422),
        (patch("merge-patch", json!({"metadata": {"resourceVersion": "1"}})), 409),
        (patch("merge-patch", json!({"metadata": {"resourceVersion": "x"}})), 500),
        (patch("merge-patch", json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})), 422),
        (patch("json-patch", json!({})), 400),
        (patch("json-patch", json!([{"op": "replace", "path": "", "value": 1}])), 422),
        (patch("json-patch", json!([{"op": "move", "from": "/data", "path": "/data/k"}])), 422),
        (patch("json-patch", Value::Array(many)), 413),
        (patch("strategic-merge-patch", json!({"$patch": "explode"})), 500),
        (json!({"method": "PUT", "path": path, "json": {"metadata": {"name": "b"}}}), 400),
        (json!({"method": "PUT", "path": path, "json": {"metadata": {}}}), 400),
        (
            json!({"method": "PUT", "path": format!("{path}?dryRun=Some"), "json": {"metadata": {"name": "a"}}}),
            422,
        ),
        (json!({"method": "DELETE", "path": path, "json": {"kind": "Pod"}}), 400),
        (json!({"method": "DELETE", "path": path, "json": {"gracePeriodSeconds": "x"}}), 400),
        (json!({"method": "DELETE", "path": path, "json": {"propagationPolicy": "Sideways"}}), 422),
        (
            json!({"method": "DELETE", "path": format!("{path}?propagationPolicy=Orphan&orphanDependents=true")}),
            422,
        ),
        (json!({"method": "DELETE", "path": format!("{path}?dryRun=All&dryRun=Some")}), 422),
    ] {
        let response = fetch(&server, request.clone()).await;
        assert_eq!(response.status, status, "{:.200}: {}", request.to_string(), response.message);
    }
    let response = send(server.address(), &json!({"path": path})).await.expect("a response");
    assert_eq!(read(response).await.expect("a complete response")["body"]["data"], json!({"k": "1"}));
}
