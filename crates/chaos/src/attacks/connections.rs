//! HTTP/2 connections of an attacker.

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// An HTTP/2 connection that acknowledges PINGs and does not widen its windows.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    address: SocketAddr,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.context("no HTTP/2")?;
        tokio::spawn(connection);
        Ok(Self { sender, address })
    }

    /// Sends a GET. The body of the response is not read.
    pub(super) async fn get(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<http::Response<Incoming>> {
        let mut request = http::Request::builder().uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(self.sender.send_request(request.body(Empty::new())?).await?)
    }
}
