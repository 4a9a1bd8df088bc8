//! One request per connection, with a minimal client.

use std::net::SocketAddr;

use base64::Engine;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;

/// Sends the `request` of a scenario. Does not read the body of the response.
pub(crate) async fn send(address: SocketAddr, request: &Value) -> Result<http::Response<Incoming>, String> {
    let failed = |e: &dyn std::fmt::Display| format!("exchange: {e}");
    let stream = TcpStream::connect(address).await.map_err(|e| failed(&e))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
    tokio::spawn(connection);
    sender.send_request(build(address, request)?).await.map_err(|e| failed(&e))
}

fn build(address: SocketAddr, request: &Value) -> Result<http::Request<Full<Bytes>>, String> {
    let text = |field: &str| request.get(field).and_then(Value::as_str);
    let mut builder =
        http::Request::builder().method(text("method").unwrap_or("GET")).uri(text("path").unwrap_or("/"));
    builder = builder.header("Host", address.to_string());
    let headers = request.get("headers").and_then(Value::as_object).cloned().unwrap_or_default();
    let typed = headers.keys().any(|k| k.eq_ignore_ascii_case("content-type"));
    for (name, value) in &headers {
        builder = builder.header(name, value.as_str().unwrap_or_default());
    }
    let body: Bytes = if let Some(body) = request.get("json") {
        if !typed {
            builder = builder.header("Content-Type", "application/json");
        }
        serde_json::to_vec(body).map_err(|e| e.to_string())?.into()
    } else if let Some(body) = text("text") {
        body.to_owned().into()
    } else {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text("base64").unwrap_or_default());
        bytes.map_err(|e| e.to_string())?.into()
    };
    builder.body(Full::new(body)).map_err(|e| e.to_string())
}

/// Reads the parts of a response that are compared.
pub(crate) async fn read(response: http::Response<Incoming>) -> Result<Map<String, Value>, String> {
    let mut got = head(&response);
    let body = response.into_body().collect().await.map_err(|e| format!("body: {e}"))?.to_bytes();
    if body.starts_with(b"k8s\0") {
        got.insert("protobuf".into(), super::stream::envelope(&body)?);
    } else if let Ok(json) = serde_json::from_slice::<Value>(&body) {
        got.insert("body".into(), json);
    } else {
        got.insert("text".into(), String::from_utf8_lossy(&body).into_owned().into());
    }
    Ok(got)
}

/// Returns status and headers; repeated headers become a list.
pub(crate) fn head(response: &http::Response<Incoming>) -> Map<String, Value> {
    let mut headers = Map::new();
    for name in response.headers().keys() {
        let mut values =
            response.headers().get_all(name).iter().map(|v| json!(String::from_utf8_lossy(v.as_bytes())));
        let first = values.next().unwrap_or_default();
        let rest: Vec<Value> = values.collect();
        let value = if rest.is_empty() { first } else { Value::Array([vec![first], rest].concat()) };
        headers.insert(name.as_str().to_owned(), value);
    }
    Map::from_iter([
        ("status".to_owned(), json!(response.status().as_u16())),
        ("headers".to_owned(), Value::Object(headers)),
    ])
}
