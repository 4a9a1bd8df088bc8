//! Response bodies as streams of list parts and watch events.

use super::{
    encodings::Encodings,
    response::{ResponseBody, describe},
};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube_informer_wire::{
    BodyError, ListPart, ListSplitter, ListStream, ListWatchError, WatchEvent, WatchSplitter, WatchStream,
};
use std::sync::Arc;

/// The parts of a list; ends with an error unless the list is complete.
pub(super) fn list(body: ResponseBody, splitter: ListSplitter, encodings: &Arc<Encodings>) -> ListStream {
    Box::pin(parts(body, splitter, Arc::clone(encodings)))
}

/// The events of a watch; ends when the server ends it, or with an error.
pub(super) fn watch(body: ResponseBody, splitter: WatchSplitter, encodings: &Arc<Encodings>) -> WatchStream {
    Box::pin(parts(body, splitter, Arc::clone(encodings)))
}

/// A body of at most `max` bytes.
pub(super) async fn whole(body: ResponseBody, max: usize) -> Result<Bytes, ListWatchError> {
    let ResponseBody { body, url, .. } = body;
    match Limited::new(body, max).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(ListWatchError::Broken { message: error.to_string(), url }),
    }
}

/// The common interface of the two splitters.
trait Split: Send + 'static {
    type Part: Send;
    fn feed(&mut self, chunk: Bytes);
    fn next(&mut self) -> Result<Option<Self::Part>, BodyError>;
    fn finish(self) -> Result<Option<Self::Part>, BodyError>;
}

impl Split for ListSplitter {
    type Part = ListPart;

    fn feed(&mut self, chunk: Bytes) {
        self.feed(chunk);
    }

    fn next(&mut self) -> Result<Option<ListPart>, BodyError> {
        self.next_part()
    }

    fn finish(self) -> Result<Option<ListPart>, BodyError> {
        self.finish().map(|()| None)
    }
}

impl Split for WatchSplitter {
    type Part = WatchEvent;

    fn feed(&mut self, chunk: Bytes) {
        self.feed(chunk);
    }

    fn next(&mut self) -> Result<Option<WatchEvent>, BodyError> {
        self.next_event()
    }

    fn finish(self) -> Result<Option<WatchEvent>, BodyError> {
        self.finish()
    }
}

/// A body that is being read.
struct Reader<S> {
    body: Body,
    splitter: S,
    encodings: Arc<Encodings>,
    url: Arc<str>,
}

fn parts<S: Split>(
    body: ResponseBody,
    splitter: S,
    encodings: Arc<Encodings>,
) -> impl Stream<Item = Result<S::Part, ListWatchError>> + Send {
    let reader = Box::new(Reader { body: body.body, splitter, encodings, url: body.url });
    stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(part)) => Some((Ok(part), Some(reader))),
            Ok(None) => Some((reader.finish().transpose()?, None)),
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl<S: Split> Reader<S> {
    /// The next part; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<S::Part>, ListWatchError> {
        loop {
            let part = self.splitter.next().map_err(|error| failed(&error, &self.encodings, &self.url))?;
            if part.is_some() {
                return Ok(part);
            }
            match self.chunk().await? {
                Some(chunk) => self.splitter.feed(chunk),
                None => return Ok(None),
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ListWatchError> {
        loop {
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    // Empty data and trailers are skipped.
                    Ok(_) | Err(_) => {}
                },
                Some(Err(error)) => {
                    return Err(ListWatchError::Broken {
                        message: describe(&error),
                        url: Arc::clone(&self.url),
                    });
                }
                None => return Ok(None),
            }
        }
    }

    /// The last part, if the end of the body completes one. An incomplete body is an error.
    fn finish(self) -> Result<Option<S::Part>, ListWatchError> {
        let Self { splitter, encodings, url, .. } = self;
        splitter.finish().map_err(|error| failed(&error, &encodings, &url))
    }
}

fn failed(error: &BodyError, encodings: &Encodings, url: &Arc<str>) -> ListWatchError {
    if *error == BodyError::UnknownFields {
        encodings.fall_back();
        return ListWatchError::UnknownFields { url: Arc::clone(url) };
    }
    ListWatchError::Malformed { message: error.to_string(), url: Arc::clone(url) }
}
