//! Clients that want to keep others out. Each attack is small; the server's limits are smaller.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube_embedded_apiserver::{ApiServer, ServerLimits, Tls, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TOKEN: &str = "0123456789abcdef";
/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections of an attack, several times those of the server.
const ATTACKERS: usize = 60;

fn limits() -> ServerLimits {
    let mut limits = ServerLimits::default();
    limits.connections = 16;
    limits.unauthenticated_connections = 4;
    limits
}

/// An HTTP/2 connection that was answered a probe and goes on to acknowledge PINGs.
async fn probing(server: &ApiServer) -> Option<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(server.address()).await.ok()?;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let probe = http::Request::builder().uri(format!("{}/healthz", server.url())).body(Empty::new()).ok()?;
    let response = sender.send_request(probe).await.ok()?;
    response.into_body().collect().await.ok()?;
    Some(sender)
}

async fn list_namespaces(client: kube::Client) -> usize {
    let namespaces: Api<Namespace> = Api::all(client);
    let all = ListParams::default();
    let listed = tokio::time::timeout(PATIENCE, namespaces.list(&all)).await;
    listed.expect("the server answers in time").expect("a list").items.len()
}

#[tokio::test]
async fn unauthenticated_http2_connections_keep_nobody_out() {
    let tokens = Tokens::new([TOKEN]).expect("a token");
    let server =
        ApiServer::builder().tokens(tokens).limits(limits()).start().await.expect("the server starts");
    let early = server.client().expect("a client");
    assert_eq!(list_namespaces(early.clone()).await, 4);
    let attack = async {
        let mut held = Vec::new();
        for _ in 0..ATTACKERS {
            held.extend(probing(&server).await);
        }
        held
    };
    let held = tokio::time::timeout(PATIENCE, attack).await.expect("every connection is accepted");
    assert_eq!(held.len(), ATTACKERS, "each was answered once");
    assert_eq!(list_namespaces(early).await, 4, "a client from before the attack");
    assert_eq!(
        list_namespaces(server.client().expect("a client")).await,
        4,
        "a client that comes during the attack"
    );
    let open = held.iter().filter(|sender| !sender.is_closed()).count();
    assert!(open <= 4, "{open} unauthenticated connections are open");
}

#[tokio::test]
async fn connections_without_a_request_keep_nobody_out() {
    let tokens = Tokens::new([TOKEN]).expect("a token");
    let builder = ApiServer::builder().tls(Tls::self_signed()).tokens(tokens).limits(limits());
    let server = builder.start().await.expect("the server starts");
    let mut silent = Vec::new();
    for _ in 0..ATTACKERS {
        silent.push(TcpStream::connect(server.address()).await.expect("connected"));
    }
    assert_eq!(list_namespaces(server.client().expect("a client")).await, 4);
}

#[tokio::test]
async fn unread_pipelined_probes_keep_nobody_out() {
    let tokens = Tokens::new([TOKEN]).expect("a token");
    let server =
        ApiServer::builder().tokens(tokens).limits(limits()).start().await.expect("the server starts");
    let probes = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let attack = async {
        let mut unread = Vec::new();
        for _ in 0..ATTACKERS {
            let mut stream = TcpStream::connect(server.address()).await.expect("connected");
            stream.write_all(probes.as_bytes()).await.expect("sent");
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.expect("a response");
            unread.push(stream);
        }
        unread
    };
    let _unread = tokio::time::timeout(PATIENCE, attack).await.expect("every connection is accepted");
    assert_eq!(list_namespaces(server.client().expect("a client")).await, 4);
}
