//! A stream that notes when the head of a request begins.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::Activity;

/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reports received bytes to the [`Activity`] of their connection, so that a head has a deadline from its first byte on.
///
/// On HTTP/2 this is only the preface: later bytes may be PINGs and the like, which an idle connection sends too.
#[derive(Debug)]
pub(super) struct HeadTimer<S> {
    stream: S,
    activity: Arc<Activity>,
    protocol: Protocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// This many bytes were received, all of them of the preface.
    Unknown(usize),
    Http1,
    Http2,
}

impl Protocol {
    fn after(self, received: &[u8]) -> Self {
        let Self::Unknown(known) = self else { return self };
        let rest = &PREFACE[known..];
        if received.starts_with(rest) {
            Self::Http2
        } else if rest.starts_with(received) {
            Self::Unknown(known + received.len())
        } else {
            Self::Http1
        }
    }
}

impl<S> HeadTimer<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, protocol: Protocol::Unknown(0) }
    }

    fn note(&mut self, received: &[u8]) {
        if received.is_empty() || self.protocol == Protocol::Http2 {
            return;
        }
        self.protocol = self.protocol.after(received);
        match self.protocol {
            Protocol::Http2 => self.activity.head_ended(),
            Protocol::Http1 | Protocol::Unknown(_) => self.activity.bytes_received(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.note(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimer<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preface_may_come_in_any_pieces() {
        for size in 1..=PREFACE.len() {
            let after = PREFACE.chunks(size).fold(Protocol::Unknown(0), Protocol::after);
            assert_eq!(after, Protocol::Http2, "{size}");
        }
        let whole = Protocol::Unknown(0).after(&[PREFACE, b"more"].concat());
        assert_eq!(whole, Protocol::Http2);
        assert_eq!(Protocol::Unknown(0).after(b"PRI * HTTP/2"), Protocol::Unknown(12));
        assert_eq!(Protocol::Unknown(12).after(b"GET"), Protocol::Http1);
        assert_eq!(Protocol::Unknown(0).after(b"POST / HTTP/1.1"), Protocol::Http1);
    }
}
