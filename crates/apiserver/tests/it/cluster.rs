//! A server in this process, and helpers to send JSON requests to it.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::BodyExt;
use kube_embedded_apiserver::{ApiServer, LocalServer};
use serde_json::Value;

pub(crate) struct Cluster {
    pub(crate) server: LocalServer,
    pub(crate) client: kube::Client,
}

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

impl Cluster {
    pub(crate) async fn new() -> Self {
        let server = ApiServer::builder().seed(5).in_process().await.expect("the server starts");
        let client = server.client();
        Self { server, client }
    }

    pub(crate) async fn request(&self, method: &str, path: &str, media: &str, body: Value) -> (u16, Value) {
        let response = self.send(method, path, &[("Content-Type", media)], body).await;
        read(response).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.request("GET", path, "", Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.request("POST", path, "application/json", body).await
    }

    /// Sends a POST with these headers.
    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: Value) -> (u16, Value) {
        read(self.send("POST", path, headers, body).await).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.request("PUT", path, "application/json", body).await
    }

    pub(crate) async fn patch(&self, path: &str, media: &str, body: Value) -> (u16, Value) {
        self.request("PATCH", path, media, body).await
    }

    pub(crate) async fn delete(&self, path: &str, body: Value) -> (u16, Value) {
        self.request("DELETE", path, "application/json", body).await
    }

    /// Sends a JSON request and also returns the `Warning` headers of the response.
    pub(crate) async fn request_with_warnings(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> (u16, Value, Vec<String>) {
        self.send_text(method, path, "application/json", body.to_string()).await
    }

    /// Sends a body as it is and also returns the `Warning` headers of the response.
    pub(crate) async fn send_text(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> (u16, Value, Vec<String>) {
        let response = self.send_bytes(method, path, &[("Content-Type", media)], body.into()).await;
        let text = |value: &http::HeaderValue| value.to_str().expect("ASCII").to_owned();
        let warnings = response.headers().get_all("Warning").iter().map(text).collect();
        let (status, body) = read(response).await;
        (status, body, warnings)
    }

    /// Sends a GET with an `Accept` header.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> (u16, Value) {
        let response = self.send("GET", path, &[("Accept", accept)], Value::Null).await;
        read(response).await
    }

    /// Sends a GET, and returns the body as text.
    pub(crate) async fn read_text(&self, path: &str, accept: &str) -> String {
        let bytes = self.open(path, accept).await.collect().await.expect("a complete response").to_bytes();
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    /// Sends a GET, and does not read the response.
    pub(crate) async fn open(&self, path: &str, accept: &str) -> kube::client::Body {
        let response = self.send("GET", path, &[("Accept", accept)], Value::Null).await;
        assert_eq!(response.status(), 200, "{path}");
        response.into_body()
    }

    /// Opens a watch.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.send("GET", path, &[], Value::Null).await;
        assert_eq!(response.status(), 200, "{path}");
        Watch { body: response.into_body(), events: VecDeque::new() }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> http::Response<kube::client::Body> {
        let body: Bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        self.send_bytes(method, path, headers, body).await
    }

    async fn send_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> http::Response<kube::client::Body> {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let request = request.body(kube::client::Body::from(body.to_vec())).expect("a request");
        self.client.send(request).await.expect("a response")
    }
}

async fn read(response: http::Response<kube::client::Body>) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a complete response").to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// An open watch.
pub(crate) struct Watch {
    body: kube::client::Body,
    events: VecDeque<Value>,
}

impl Watch {
    /// Returns the next event, or `None` after the server ended the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        while self.events.is_empty() {
            let frame = self.body.frame().await?.expect("a frame");
            let bytes = frame.into_data().expect("data");
            let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
            self.events
                .extend(lines.map(|line| serde_json::from_slice::<Value>(line).expect("one event a line")));
        }
        self.events.pop_front()
    }

    /// Returns the next event, which may come in several pieces.
    pub(crate) async fn next_large(&mut self) -> Value {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            let frame = self.body.frame().await.expect("an event").expect("a frame");
            line.extend_from_slice(&frame.into_data().expect("data"));
        }
        serde_json::from_slice(&line).expect("one event")
    }
}
