//! Request bodies that are read to their end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

/// The longest time for the rest of a body.
const MAX_TIME: Duration = Duration::from_secs(2);

/// A request body that notes whether it was read.
///
/// A server that closes an HTTP/1 connection with unread data resets it, and the client may lose the response: a 413 or 404 would look
/// like a network failure. The rest of a body is therefore read and discarded, up to a limit.
pub(super) struct RequestBody<B> {
    body: B,
    polled: bool,
}

impl<B> RequestBody<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, polled: false }
    }
}

impl<B: Body<Data = Bytes> + Unpin> RequestBody<B> {
    /// Reads and discards the rest, up to `limit` bytes. A body that was not read at all is left alone if the client waits for
    /// `100 Continue`: it sends nothing without that.
    pub(super) async fn discard(&mut self, limit: usize, expects_continue: bool) {
        if self.body.is_end_stream() || (expects_continue && !self.polled) {
            return;
        }
        let mut left = limit;
        let rest = async {
            while let Some(Ok(frame)) = self.body.frame().await {
                let len = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(len) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        let _ = tokio::time::timeout(MAX_TIME, rest).await;
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.polled = true;
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rest_is_discarded_unless_the_client_waits() {
        let mut body = RequestBody::new(Full::new(Bytes::from_static(b"rest")));
        body.discard(100, true).await;
        assert!(!body.is_end_stream(), "the client waits for 100 Continue");
        body.discard(100, false).await;
        assert!(body.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_body_is_given_up() {
        let pieces = futures_util::stream::repeat_with(|| {
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(&[0; 1000])))
        });
        let mut body = RequestBody::new(http_body_util::StreamBody::new(pieces));
        body.discard(1_000_000, false).await;
        let silent = futures_util::stream::pending::<Result<Frame<Bytes>, std::convert::Infallible>>();
        RequestBody::new(http_body_util::StreamBody::new(silent)).discard(10, false).await;
    }
}
