//! Bodies of responses: whole, a list in pieces, or a watch.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_core::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use prometheus::IntCounter;
use serde_json::{Map, Value};
use tokio::task::coop::poll_proceed;

use super::frames::{Frames, write_metadata};
use super::gzip::Gzip;
use super::negotiate::Format;
use super::watch_permits::WatchPermit;
use crate::api::Api;
use crate::registry::Conversion;
use crate::storage::{Stored, TypeHead};
use crate::watch_cache::{WatchItem, WatchStream};

/// List items are written in pieces of about this size, so that a large list never exists as one body.
pub(crate) const PIECE: usize = 64 * 1024;

/// Larger objects are sent from their stored bytes, so that a slow client holds no private copy.
pub(crate) const SHARE_ABOVE: usize = 16 * 1024;

/// The body of a response.
pub(crate) enum ResponseBody {
    Whole(Option<Bytes>),
    /// One stored object: its beginning, and the stored bytes.
    Shared(VecDeque<Bytes>),
    List(ListBody),
    Gzip(Box<Gzip>),
    Watch(Box<WatchBody>),
}

/// A list: a head, items spliced from their stored bytes, and a closing.
pub(crate) struct ListBody {
    head: Option<Bytes>,
    items: std::vec::IntoIter<Arc<Stored>>,
    view: ItemView,
    /// Stored bytes of a large item, sent before the next piece.
    shared: Option<Bytes>,
    first: bool,
    done: bool,
}

/// The part of each item that a list contains.
#[derive(Debug, Clone)]
pub(crate) enum ItemView {
    /// The whole object; with `apiVersion` and `kind` if a head is given, converted if a conversion is given.
    Whole(Option<TypeHead>, Option<Conversion>),
    /// The metadata, as `PartialObjectMetadata`.
    Metadata,
}

/// Events of one watch.
pub(crate) struct WatchBody {
    stream: WatchStream,
    frames: Frames,
    /// Pieces of the current event.
    pieces: VecDeque<Bytes>,
    /// Ready when the server shuts down.
    closing: BoxFuture<'static, ()>,
    /// Counts frames, for `/metrics`.
    sent: IntCounter,
    /// Keeps the server running while the watch is open.
    _api: Arc<Api>,
    _permit: Option<WatchPermit>,
    done: bool,
}

/// One event of a watch.
#[derive(Debug)]
pub(crate) enum WholeEvent {
    /// A JSON object and a line feed.
    Json(Bytes),
    /// A protobuf message without its length.
    Protobuf(Bytes),
}

/// The length before each protobuf event of a stream.
const LENGTH_BYTES: usize = 4;

impl ListBody {
    /// `head` reaches up to and including `"items":[`.
    pub(crate) fn new(head: Bytes, items: Vec<Arc<Stored>>, view: ItemView) -> Self {
        Self { head: Some(head), items: items.into_iter(), view, shared: None, first: true, done: false }
    }

    /// Approximate size of the items in bytes.
    pub(crate) fn estimated_len(&self) -> usize {
        self.items.as_slice().iter().map(|item| item.document.encoded_len() + 2).sum()
    }

    /// Approximate size of the next piece in bytes. Reads only its items, so that the list is not measured again for
    /// each piece.
    fn next_len(&self) -> usize {
        let mut len = 1024;
        for item in self.items.as_slice() {
            let item = item.document.encoded_len();
            if item > SHARE_ABOVE || len >= PIECE {
                break;
            }
            len += item + 2;
        }
        len
    }

    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        if let Some(shared) = self.shared.take() {
            return Some(shared);
        }
        if self.done {
            return None;
        }
        let mut piece = Vec::with_capacity(self.next_len());
        while piece.len() < PIECE {
            let Some(item) = self.items.next() else {
                self.done = true;
                piece.extend_from_slice(b"]}\n");
                break;
            };
            if !std::mem::take(&mut self.first) {
                piece.push(b',');
            }
            self.shared = self.view.write_shared(&item, &mut piece);
            if self.shared.is_some() {
                break;
            }
        }
        Some(piece.into())
    }
}

impl ItemView {
    /// Appends the JSON of an item. Returns the end of a large one, which shares the stored bytes.
    fn write_shared(&self, item: &Stored, out: &mut Vec<u8>) -> Option<Bytes> {
        match self {
            Self::Whole(head, None) if item.document.encoded_len() > SHARE_ABOVE => {
                Some(item.document.write_shared(head.as_ref(), item.revision, out))
            }
            _ => {
                self.write(item, out);
                None
            }
        }
    }

    /// Appends the JSON of an item.
    pub(crate) fn write(&self, item: &Stored, out: &mut Vec<u8>) {
        match self {
            Self::Whole(head, None) => item.document.write(head.as_ref(), item.revision, out),
            Self::Whole(head, Some(conversion)) => write_converted(item, head.as_ref(), conversion, out),
            Self::Metadata => write_metadata(&item.document, item.revision, out),
        }
    }
}

fn write_converted(item: &Stored, head: Option<&TypeHead>, conversion: &Conversion, out: &mut Vec<u8>) {
    let mut json = Vec::with_capacity(item.document.encoded_len());
    item.document.write(head, item.revision, &mut json);
    let mut fields: Map<String, Value> = serde_json::from_slice(&json).unwrap_or_default();
    conversion.show(&mut fields, item.document.version());
    out.extend_from_slice(Value::Object(fields).to_string().as_bytes());
}

impl WatchBody {
    pub(crate) fn new(api: &Arc<Api>, frames: Frames, stream: WatchStream, sent: IntCounter) -> Self {
        let mut closing = api.shutdown.subscribe();
        let closing = Box::pin(async move {
            // An error means the server is gone, which ends watches as well.
            let _ = closing.wait_for(|closing| *closing).await;
        });
        Self {
            stream,
            frames,
            pieces: VecDeque::new(),
            closing,
            sent,
            _api: Arc::clone(api),
            _permit: None,
            done: false,
        }
    }

    /// Holds the permit while the watch is open.
    pub(crate) fn hold(&mut self, permit: WatchPermit) {
        self._permit = Some(permit);
    }

    /// The next event in one piece, for transports with messages. `None` after the last one.
    pub(crate) fn poll_whole_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<WholeEvent>> {
        let Some(first) = std::task::ready!(self.poll_event(cx)) else { return Poll::Ready(None) };
        let event = match self.pieces.is_empty() {
            true => first,
            false => {
                self.pieces.drain(..).fold(Vec::from(first), |all, piece| [all, piece.into()].concat()).into()
            }
        };
        Poll::Ready(Some(match self.frames.format() {
            Format::Protobuf => WholeEvent::Protobuf(event.slice(event.len().min(LENGTH_BYTES)..)),
            Format::Json | Format::Yaml => WholeEvent::Json(event),
        }))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(piece));
        }
        if self.done || self.closing.as_mut().poll(cx).is_ready() {
            self.done = true;
            return Poll::Ready(None);
        }
        let item = std::task::ready!(Pin::new(&mut self.stream).poll_next(cx));
        if matches!(item, None | Some(WatchItem::Error(_))) {
            self.done = true;
        }
        Poll::Ready(item.map(|item| {
            self.sent.inc();
            let (first, rest) = self.frames.frame(&item);
            self.pieces.extend(rest.into_iter().flatten());
            first
        }))
    }
}

impl ResponseBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()).filter(|b| !b.is_empty()))
    }

    /// A stored object, without a copy of its content.
    pub(crate) fn shared(stored: &Stored, head: &TypeHead) -> Self {
        let mut start = Vec::with_capacity(1024);
        let rest = stored.document.write_shared(Some(head), stored.revision, &mut start);
        Self::Shared([start.into(), rest].into())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Makes the task yield now and then: a client that reads fast would keep a thread busy with one long response.
        let budget = std::task::ready!(poll_proceed(cx));
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Shared(pieces) => pieces.pop_front(),
            Self::List(list) => list.next_piece(),
            Self::Gzip(zipped) => zipped.next_piece(),
            Self::Watch(watch) => std::task::ready!(watch.poll_event(cx)),
        };
        budget.made_progress();
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Shared(pieces) => pieces.is_empty(),
            Self::List(list) => list.head.is_none() && list.shared.is_none() && list.done,
            Self::Gzip(zipped) => zipped.is_done(),
            Self::Watch(watch) => watch.done && watch.pieces.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Shared(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Self::List(_) | Self::Gzip(_) | Self::Watch(_) => SizeHint::default(),
        }
    }
}
