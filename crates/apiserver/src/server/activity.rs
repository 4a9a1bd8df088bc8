//! Whether a connection is in use, and until when it may stay open.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::limits::ServerLimits;
use super::slots::Slot;
use crate::http::ResponseBody;

/// Responses of HTTP/2 are handed over in pieces of this size, so that a slow reader shows progress inside a large one.
const PIECE: usize = 16 * 1024;

/// One connection and how it is used.
///
/// 1. It is busy while the server works on a request, or while a response waits for the server. An open watch is always busy.
/// 2. It is not busy while all open responses are unread, that is, wait for the client to take what was written. It then has the write
///    timeout, which restarts with each piece that the client reads. On HTTP/1 the socket has this timeout, and responses are busy.
/// 3. Without open responses it has the idle timeout, also before its first request: clients open connections in advance.
/// 4. A request head that has begun has the header timeout. It counts from the first byte of the head, not from the last request.
/// 5. PING, SETTINGS and WINDOW_UPDATE frames are not use.
#[derive(Debug)]
pub(super) struct Activity {
    slot: Slot,
    opened: Instant,
    /// Milliseconds from `opened` to the first byte of a head that is incomplete, plus one; zero if there is none.
    head_begun: AtomicU64,
    /// Notified when a head begins, because the deadline becomes earlier.
    head_begins: Notify,
    busy: AtomicUsize,
    unread: AtomicUsize,
    /// Milliseconds from `opened` to the last use. Written before `busy` falls, so that a connection that is not busy has been idle
    /// since then.
    last_use: AtomicU64,
    /// Whether the socket waits for the client.
    write_pending: Arc<AtomicBool>,
}

/// How often a connection is checked at a shutdown.
const QUIET_CHECK: Duration = Duration::from_millis(50);

impl Activity {
    pub(super) fn new(slot: Slot, write_pending: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            slot,
            opened: Instant::now(),
            head_begun: AtomicU64::new(0),
            head_begins: Notify::new(),
            busy: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            last_use: AtomicU64::new(0),
            write_pending,
        })
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Notes a request, which keeps the connection busy until the result is dropped.
    pub(super) fn request(self: &Arc<Self>) -> Busy {
        self.head_ended();
        let mut busy = Busy { activity: Arc::clone(self), state: State::Ended };
        busy.set(State::Busy);
        busy
    }

    /// Notes bytes of a client that has no open request: the head of its next request begins.
    ///
    /// Bytes that arrive during a request are not noted, because they may be its body. A head that begins with them has the idle timeout.
    pub(super) fn bytes_received(&self) {
        let in_use = self.busy.load(Ordering::Acquire) + self.unread.load(Ordering::Acquire) > 0;
        if in_use || self.head_begun.load(Ordering::Acquire) > 0 {
            return;
        }
        self.head_begun.store(self.elapsed().saturating_add(1), Ordering::Release);
        self.head_begins.notify_one();
    }

    /// Notes that a head, or the preface of HTTP/2, is complete.
    pub(super) fn head_ended(&self) {
        self.head_begun.store(0, Ordering::Release);
    }

    /// Milliseconds since the connection was opened.
    fn elapsed(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Completes when the connection has to end: unauthenticated for too long, idle for too long, or too slow with a request head.
    pub(super) async fn expired(&self, limits: &ServerLimits) {
        loop {
            let deadline = self.deadline(limits);
            if deadline <= Instant::now() {
                return;
            }
            // While the connection is busy the deadline moves on, and is checked again at the earliest possible one.
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => {}
                () = self.head_begins.notified() => {}
            }
        }
    }

    /// Completes when no request is running and no response is being sent, at two checks in a row.
    pub(super) async fn quiet(&self) {
        let mut quiet_checks = 0;
        while quiet_checks < 2 {
            tokio::time::sleep(QUIET_CHECK).await;
            let in_use = self.busy.load(Ordering::Acquire) + self.unread.load(Ordering::Acquire) > 0;
            let in_use = in_use || self.write_pending.load(Ordering::Relaxed);
            quiet_checks = if in_use { 0 } else { quiet_checks + 1 };
        }
    }

    fn count(&self, state: State) -> Option<&AtomicUsize> {
        match state {
            State::Busy => Some(&self.busy),
            State::Unread => Some(&self.unread),
            State::Ended => None,
        }
    }

    fn deadline(&self, limits: &ServerLimits) -> Instant {
        let mut deadline = if self.busy.load(Ordering::Acquire) > 0 {
            let soonest = limits.idle_timeout.min(limits.write_timeout);
            after(Instant::now(), soonest.max(Duration::from_secs(1)))
        } else {
            let unread = self.unread.load(Ordering::Acquire) > 0;
            let timeout = if unread { limits.write_timeout } else { limits.idle_timeout };
            after(self.at(self.last_use.load(Ordering::Acquire)), timeout)
        };
        if self.slot.lacks_credential() {
            deadline = deadline.min(after(self.opened, limits.unauthenticated_lifetime));
        }
        if let Some(begun) = self.head_begun.load(Ordering::Acquire).checked_sub(1) {
            deadline = deadline.min(after(self.at(begun), limits.header_timeout));
        }
        deadline
    }

    /// The point in time this many milliseconds after the connection was opened.
    fn at(&self, milliseconds: u64) -> Instant {
        after(self.opened, Duration::from_millis(milliseconds))
    }
}

/// A point in time that any duration leads to.
fn after(start: Instant, time: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    start.checked_add(time).unwrap_or_else(|| start + FAR)
}

/// One request or response of a connection.
#[derive(Debug)]
pub(super) struct Busy {
    activity: Arc<Activity>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for the server.
    Busy,
    /// Waits for the client.
    Unread,
    Ended,
}

impl Busy {
    fn set(&mut self, state: State) {
        let before = std::mem::replace(&mut self.state, state);
        if before == state {
            return;
        }
        self.activity.last_use.store(self.activity.elapsed(), Ordering::Release);
        // Counted in the new state first: the connection never looks less used than it is.
        if let Some(count) = self.activity.count(state) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        if let Some(count) = self.activity.count(before) {
            count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.set(State::Ended);
    }
}

/// A response body whose reading is noted as activity of the connection.
pub(super) struct TrackedBody {
    body: ResponseBody,
    /// The rest of the last frame of `body`.
    rest: Bytes,
    busy: Busy,
    /// Whether it is noticed here that the client does not read.
    detects_unread: bool,
}

impl TrackedBody {
    pub(super) fn new(body: ResponseBody, busy: Busy, multiplexed: bool) -> Self {
        // On HTTP/1 the socket shows it. The client of a watch may be slow: with HTTP/2 it requests more only when it has read half of its
        // window, often a megabyte, and that can take any time. Watches have limits of their own.
        let detects_unread = multiplexed && !matches!(body, ResponseBody::Watch(_));
        Self { body, rest: Bytes::new(), busy, detects_unread }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if !this.detects_unread {
            return Pin::new(&mut this.body).poll_frame(cx);
        }
        // A poll for more means that the client read what was sent.
        this.busy.set(State::Busy);
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => this.rest = frame.into_data().unwrap_or_default(),
                None => return Poll::Ready(None),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        this.busy.set(State::Unread);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
