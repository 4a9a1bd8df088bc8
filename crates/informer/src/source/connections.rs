//! As many HTTP/2 connections as the open streams need.

use super::own_connection::{self, Driven};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Frame, SizeHint};
use hyper::{
    body::Incoming,
    rt::{Read, Write},
};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, Connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use kube_informer_wire::BoxFuture;
use kube_informer_wire::sync::lock;
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};
use tower::{BoxError, Service};

/// Streams on one connection. Servers allow about 250, and a watch beyond that waits for another one to end, which may
/// take an hour.
const STREAMS_PER_CONNECTION: usize = 100;

const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(15);

/// Flow control windows of one stream and of a connection. The second is the sum of the first, so that streams which are
/// not being read do not block the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS_PER_CONNECTION as u32;

/// A service that sends requests over HTTP/2 connections of at most [`STREAMS_PER_CONNECTION`] streams each.
///
/// A client of hyper has one HTTP/2 connection, or as many of HTTP/1.1 as are needed; so this is a set of clients.
#[derive(Clone)]
pub(super) struct Connections<C> {
    connector: C,
    lanes: Arc<Mutex<Vec<Lane<C>>>>,
}

/// A client, and a token of which each of its streams holds a copy.
struct Lane<C> {
    client: Client<C, Body>,
    token: Arc<()>,
}

impl<C> Lane<C> {
    fn streams(&self) -> usize {
        Arc::strong_count(&self.token) - 1
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Connections<C> {
    pub(super) fn new(connector: C) -> Self {
        Self { connector, lanes: Arc::default() }
    }

    /// A client with room for one more stream, and the token for that.
    fn lane(&self) -> (Client<C, Body>, Arc<()>) {
        let mut lanes = lock(&self.lanes);
        let mut first = true;
        // The first is kept for the next request; others are dropped with their last stream.
        lanes.retain(|lane| std::mem::take(&mut first) || lane.streams() > 0);
        let free = lanes.iter().position(|lane| lane.streams() < STREAMS_PER_CONNECTION);
        let free = free.unwrap_or_else(|| {
            lanes.push(Lane { client: self.client(), token: Arc::default() });
            lanes.len() - 1
        });
        (lanes[free].client.clone(), Arc::clone(&lanes[free].token))
    }

    fn client(&self) -> Client<C, Body> {
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PONG_WITHIN)
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(self.connector.clone())
    }
}

impl<C> Service<Request<Body>> for Connections<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + Unpin + 'static,
    C::Error: Into<BoxError>,
{
    type Response = Response<ConnectionBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ConnectionBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if own_connection::is_for(&request) {
            let connector = self.connector.clone();
            return Box::pin(async move {
                let response = own_connection::send(connector, request).await?;
                Ok(response.map(ConnectionBody::Own))
            });
        }
        let (client, token) = self.lane();
        Box::pin(async move {
            let response = client.request(request).await?;
            Ok(response.map(|body| ConnectionBody::Shared { body, _token: token }))
        })
    }
}

/// The body of a response.
pub(super) enum ConnectionBody {
    /// Counts as a stream of its connection until it is dropped.
    Shared {
        body: Incoming,
        _token: Arc<()>,
    },
    Own(Driven),
}

impl http_body::Body for ConnectionBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Shared { body, .. } => Pin::new(body).poll_frame(context),
            Self::Own(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Shared { body, .. } => body.is_end_stream(),
            Self::Own(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Shared { body, .. } => body.size_hint(),
            Self::Own(body) => body.size_hint(),
        }
    }
}
