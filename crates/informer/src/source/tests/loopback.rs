//! Our own client over real sockets.

use super::*;
use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

/// A server that responds to every request with one event naming the HTTP version, and then keeps the watch open.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&connections);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                match tls.clone() {
                    Some(tls) => serving.spawn(async move {
                        if let Ok(socket) = tls.accept(socket).await {
                            serve(socket).await;
                        }
                    }),
                    None => serving.spawn(serve(socket)),
                };
            }
        });
        Self { address, connections, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let service = service_fn(async |request: Request<Incoming>| Ok::<_, Infallible>(respond(&request)));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(250);
    // A client that goes away is the usual end of a connection here.
    let _ = builder.serve_connection(TokioIo::new(socket), service).await;
}

fn respond(request: &Request<Incoming>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let name = match request.version() {
        Version::HTTP_2 => "http2",
        _ => "http1",
    };
    let event = format!("{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"{name}\"}}}}}}\n");
    let events = futures_util::stream::iter([Ok(Frame::data(Bytes::from(event)))]);
    let body = StreamBody::new(events.chain(futures_util::stream::pending())).boxed_unsync();
    Response::builder().header("content-type", JSON).body(body).unwrap()
}

/// A certificate for the loopback address, and a server that holds it.
fn tls(protocols: &[&[u8]]) -> (TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

async fn first_name(source: &KubeSource) -> (String, WatchStream) {
    let mut watch = source.watch(WatchOptions::default()).await.unwrap();
    match watch.next().await {
        Some(Ok(WatchEvent::Added(object))) => (object.name().to_owned(), watch),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn plain_http_is_version_1() {
    let server = Server::start(None).await;
    let config = kube::Config::new(format!("http://{}", server.address).parse().unwrap());
    let source = KubeSource::new(informer_client(config).unwrap(), pods(), None);
    let (name, _first) = first_name(&source).await;
    let (_, _second) = first_name(&source).await;
    assert_eq!((name.as_str(), server.connections()), ("http1", 2));
}

#[tokio::test]
async fn watches_share_an_http2_connection_until_it_is_full() {
    let (acceptor, certificate) = tls(&[b"h2", b"http/1.1"]);
    let server = Server::start(Some(acceptor)).await;
    let mut config = kube::Config::new(format!("https://{}", server.address).parse().unwrap());
    config.root_cert = Some(vec![certificate.to_vec()]);
    let source = KubeSource::new(informer_client(config).unwrap(), pods(), None);
    let mut watches = Vec::new();
    for _ in 0..100 {
        let (name, watch) = first_name(&source).await;
        assert_eq!(name, "http2");
        watches.push(watch);
    }
    assert_eq!(server.connections(), 1);
    watches.push(first_name(&source).await.1);
    assert_eq!(server.connections(), 2);
    // A watch that ends makes room again.
    watches.clear();
    drop(first_name(&source).await);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn without_http2_it_is_version_1_over_tls() {
    let (acceptor, certificate) = tls(&[b"http/1.1"]);
    let server = Server::start(Some(acceptor)).await;
    let mut config = kube::Config::new(format!("https://{}", server.address).parse().unwrap());
    config.root_cert = Some(vec![certificate.to_vec()]);
    let source = KubeSource::new(informer_client(config).unwrap(), pods(), None);
    assert_eq!(first_name(&source).await.0, "http1");
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_is_not_reached() {
    let (acceptor, _) = tls(&[b"h2"]);
    let (_, other) = tls(&[]);
    let server = Server::start(Some(acceptor)).await;
    let mut config = kube::Config::new(format!("https://{}", server.address).parse().unwrap());
    config.root_cert = Some(vec![other.to_vec()]);
    let source = KubeSource::new(informer_client(config).unwrap(), pods(), None);
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(matches!(&error, ListWatchError::Connect { refused: false, .. }), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_refused_connection_is_an_error_of_its_own() {
    // Bound, so that no other process gets the port, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let mut config = kube::Config::new(format!("http://{address}").parse().unwrap());
    config.default_retry = false;
    let ours = informer_client(config.clone()).unwrap();
    let theirs = kube::Client::try_from(config).unwrap();
    for client in [ours, theirs] {
        let source = KubeSource::new(client, pods(), None);
        let error = source.list(ListOptions::default()).await.err().unwrap();
        assert!(error.is_connection_refused(), "{error:?}");
        let error = source.watch(WatchOptions::default()).await.err().unwrap();
        assert!(error.is_connection_refused(), "{error:?}");
    }
}

/// Accepts one connection, reads the head of a request and sends some bytes. Returns the head, and what the client still sends.
async fn respond_once(listener: TcpListener, response: &'static str, close: bool) -> (String, Option<usize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    socket.write_all(response.as_bytes()).await.unwrap();
    let rest = if close { None } else { Some(socket.read(&mut [0; 64]).await.unwrap()) };
    (String::from_utf8(head).unwrap(), rest)
}

/// A source that asks a server which responds once.
async fn source_of(response: &'static str, close: bool) -> (KubeSource, JoinHandle<(String, Option<usize>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config =
        kube::Config::new(format!("http://{}/base", listener.local_addr().unwrap()).parse().unwrap());
    let server = tokio::spawn(respond_once(listener, response, close));
    (KubeSource::new(informer_client(config).unwrap(), pods(), None), server)
}

const EVENT: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
    2f\r\n{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\r\n\
    5\r\n\"}}}\n\r\n";

#[tokio::test]
async fn a_watch_over_plain_http_closes_its_connection_when_it_is_dropped() {
    let (source, server) = source_of(EVENT, false).await;
    let (name, watch) = first_name(&source).await;
    assert_eq!(name, "a");
    drop(watch);
    let (head, rest) = server.await.unwrap();
    assert!(head.starts_with("GET /base/api/v1/pods?"), "{head}");
    assert!(head.to_lowercase().contains("\r\nhost: 127.0.0.1:"), "{head}");
    assert_eq!(rest, Some(0), "the end of the connection");
}

#[tokio::test]
async fn a_watch_that_is_cut_in_the_middle_is_broken() {
    let (source, server) = source_of(EVENT, true).await;
    let (_, mut watch) = first_name(&source).await;
    let end = watch.next().await;
    assert!(matches!(&end, Some(Err(ListWatchError::Broken { .. }))), "{end:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_watch_that_gets_no_response_is_a_failed_connection() {
    let (source, server) = source_of("", true).await;
    let error = source.watch(WatchOptions::default()).await.err().unwrap();
    assert!(matches!(&error, ListWatchError::Connect { refused: false, .. }), "{error:?}");
    assert!(error.to_string().contains("closed the connection before it responded"), "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_watch_that_is_rejected_has_the_status_of_the_server() {
    const GONE: &str = "HTTP/1.1 410 Gone\r\ncontent-type: application/json\r\ncontent-length: 66\r\n\r\n\
        {\"kind\":\"Status\",\"status\":\"Failure\",\"code\":410,\"reason\":\"Expired\"}";
    let (source, server) = source_of(GONE, false).await;
    let error = source.watch(WatchOptions::default()).await.err().unwrap();
    assert!(error.is_expired(), "{error:?}");
    assert_eq!(server.await.unwrap().1, Some(0), "the end of the connection");
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_is_broken() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let _ = socket.read(&mut request).await.unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"ite\r\n";
        socket.write_all(answer.as_bytes()).await.unwrap();
    });
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let source = KubeSource::new(informer_client(config).unwrap(), pods(), None);
    let (_, error) = drain(source.list(ListOptions::default()).await).await;
    assert!(matches!(&error, Some(ListWatchError::Broken { .. })), "{error:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_proxy_of_an_unsupported_scheme_is_rejected_without_its_password() {
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.proxy_url = Some("ftp://user:hunter2@proxy:1".parse().unwrap());
    let error = informer_client(config).err().unwrap();
    assert!(matches!(error, ClientError::Proxy { .. }));
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}
