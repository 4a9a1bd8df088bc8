//! A connection for one request, driven by the task that reads the response.

use super::relay::Relay;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderValue, Request, Response, Uri, header::HOST, uri::Scheme};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection},
    rt::{Read, Write},
};
use kube::client::Body;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tower::{BoxError, Service, ServiceExt};

/// A mark on requests whose responses are long streams.
///
/// Over HTTP/1.1 such a request occupies a connection until its response ends. If the connection is for this request only, the
/// task that reads the response can drive it. A connection of the pool has a task of its own, which wakes the reader for each
/// chunk, usually on another thread: a quarter of the CPU time of a large list (decision 0019).
#[derive(Debug, Clone, Copy)]
pub(super) struct LongStream;

/// The connection could not be opened, or no response was received.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    #[error("the server closed the connection before it responded")]
    Closed(#[source] hyper::Error),
}

/// Bytes of the read buffer of a connection. It stays as long as the watch: hyper would let it grow to half a megabyte during a
/// large list. Also the most that the head of a response may have.
const READ_BUFFER: usize = 64 << 10;

/// Whether a request gets a connection of its own: a long stream over plain HTTP, which is always version 1.1. TLS may
/// negotiate HTTP/2, where streams share a connection.
pub(super) fn is_for(request: &Request<Body>) -> bool {
    request.extensions().get::<LongStream>().is_some() && request.uri().scheme() == Some(&Scheme::HTTP)
}

/// Opens a connection, sends a request, and waits for the head of its response.
///
/// # Cancel safety
/// If the future is dropped, the connection is closed.
pub(super) async fn send<C>(connector: C, mut request: Request<Body>) -> Result<Response<Driven>, BoxError>
where
    C: Service<Uri>,
    C::Response: Read + Write + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
{
    let uri = request.uri().clone();
    let io = connector.oneshot(uri.clone()).await.map_err(|error| SendError::Connect(error.into()))?;
    let (mut sender, mut connection) =
        Builder::new().max_buf_size(READ_BUFFER).handshake(io).await.map_err(SendError::Closed)?;
    if let Some(authority) = uri.authority() {
        let host = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
        request.headers_mut().entry(HOST).or_insert(HeaderValue::from_str(host)?);
    }
    *request.uri_mut() = uri.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()));
    let mut response = pin!(sender.send_request(request));
    let mut open = true;
    let response = poll_fn(|task| {
        loop {
            if let Poll::Ready(response) = response.as_mut().poll(task) {
                return Poll::Ready(response);
            }
            // A connection that fails passes its error to the response before it ends.
            if !open || connection.poll_unpin(task).is_pending() {
                // What the connection has just read may be the response.
                return response.as_mut().poll(task);
            }
            open = false;
        }
    });
    let response = response.await.map_err(SendError::Closed)?;
    let connection = open.then(|| Box::pin(connection) as Pin<Box<dyn Drive>>);
    Ok(response.map(|body| Driven { body, connection, relay: Arc::default() }))
}

/// A connection of any transport.
trait Drive: Send {
    /// Reads and writes what is possible; ready at the end of the connection.
    fn poll_drive(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()>;
}

impl<T: Read + Write + Send + Unpin + 'static> Drive for Connection<T, Body> {
    fn poll_drive(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        self.poll(task).map(drop)
    }
}

/// A response body with the connection that it is read from.
///
/// Nothing is read unless the body is polled, so that a slow reader slows the server down. The connection is closed when
/// the body is dropped.
pub(super) struct Driven {
    body: Incoming,
    /// `None` once it has ended: the body has the rest, or the error.
    connection: Option<Pin<Box<dyn Drive>>>,
    relay: Arc<Relay>,
}

/// Maximum number of polls in a row without a frame, each after a wake-up, before other tasks run: a transport may wake
/// the task in every poll.
const MAX_POLLS: usize = 8;

impl Driven {
    /// Polls the body, drives the connection, and polls the body again.
    fn poll_once(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(task) {
                return Poll::Ready(frame);
            }
            let Some(connection) = &mut self.connection else { return Poll::Pending };
            if connection.as_mut().poll_drive(task).is_pending() {
                // What the connection has just read may be a frame.
                return Pin::new(&mut self.body).poll_frame(task);
            }
            self.connection = None;
        }
    }
}

impl http_body::Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let waker = Waker::from(Arc::clone(&this.relay));
        for _ in 0..MAX_POLLS {
            this.relay.begin();
            // After a frame the reader polls again before it waits: a wake-up until then can be ignored.
            if let Poll::Ready(frame) = this.poll_once(&mut Context::from_waker(&waker)) {
                return Poll::Ready(frame);
            }
            if this.relay.may_wait(task.waker()) {
                return Poll::Pending;
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
