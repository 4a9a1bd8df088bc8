//! The open watches.

use crate::{
    encode,
    script::Cut,
    store::{Change, Selection},
};
use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::io;
use tokio::sync::mpsc;

/// The open watches.
#[derive(Default)]
pub(super) struct Streams(Vec<Stream>);

struct Stream {
    selection: Selection,
    /// Whether it is past its initial events.
    live: bool,
    sender: mpsc::UnboundedSender<Result<Frame<Bytes>, io::Error>>,
}

/// The body of a watch.
pub(super) type Body = StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, io::Error>>>;

impl Streams {
    /// Opens a watch that starts with these events.
    pub(super) fn open(&mut self, selection: Selection, live: bool, events: Vec<Bytes>) -> Body {
        let (sender, receiver) = mpsc::unbounded_channel();
        let stream = Stream { selection, live, sender };
        events.into_iter().for_each(|event| stream.send(event));
        self.0.push(stream);
        StreamBody::new(Box::pin(futures_util::stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        })))
    }

    /// The number of watches that are past their initial events.
    pub(super) fn live(&mut self) -> usize {
        self.0.retain(|stream| !stream.sender.is_closed());
        self.0.iter().filter(|stream| stream.live).count()
    }

    /// Sends each watch the event of a change, if its selection has one.
    pub(super) fn change(&mut self, change: &Change) {
        for stream in &self.0 {
            if let Some((kind, pod)) = change.event(&stream.selection) {
                stream.send(encode::event(kind, &pod));
            }
        }
    }

    /// Sends the same line on each watch.
    pub(super) fn send(&mut self, line: &Bytes) {
        self.0.iter().for_each(|stream| stream.send(line.clone()));
    }

    pub(super) fn cut(&mut self, cut: Cut) {
        for stream in self.0.drain(..) {
            if cut == Cut::Broken {
                stream.send(Bytes::from_static(br#"{"type":"MODIFIED","object":{"kind":"Pod","api"#));
                // An error means that the client has closed the connection.
                let _ = stream.sender.send(Err(io::ErrorKind::ConnectionReset.into()));
            }
        }
    }
}

impl Stream {
    fn send(&self, line: Bytes) {
        // An error means that the client has closed the connection. It will open another one.
        let _ = self.sender.send(Ok(Frame::data(line)));
    }
}
