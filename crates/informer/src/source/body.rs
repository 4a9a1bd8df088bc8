//! Bodies as streams of parts and events.

use super::answer::{Answer, describe};
use crate::time::{self, timeout_at};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use http_body_util::BodyExt;
use kube::client::Body;
use kube_informer_wire::{
    BodyError, ListPart, ListSplitter, ListStream, ListWatchError, WatchEvent, WatchSplitter, WatchStream,
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long a watch without a timeout of its own may last: the most an API server allows unless told otherwise.
pub(super) const LONGEST_WATCH: Duration = Duration::from_secs(3600);

/// How long after its timeout a watch may keep silent, at most, before it counts as dead.
const GRACE: Duration = Duration::from_secs(15);

/// The parts of a list; ends with an error unless the list is complete.
pub(super) fn list(answer: Answer, splitter: ListSplitter, patience: Duration) -> ListStream {
    Box::pin(parts(answer, splitter, Silence::Within(patience)))
}

/// The events of a watch; ends when the server ends it, or with an error.
pub(super) fn watch(
    answer: Answer,
    splitter: WatchSplitter,
    timeout: Duration,
    patience: Duration,
) -> WatchStream {
    let started = Instant::now();
    let end = time::after(started, timeout);
    let silence = Silence::Until { end, grace: patience.min(GRACE), started };
    Box::pin(parts(answer, splitter, silence))
}

/// When a body has been silent for too long. Only time spent waiting for the server counts: a reader who takes
/// his time does not make the server silent.
enum Silence {
    /// The next bytes of a list must come within this time.
    Within(Duration),
    /// A watch ends by itself at this time; after it, bytes must keep coming.
    Until { end: Option<Instant>, grace: Duration, started: Instant },
}

impl Silence {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Within(patience) => time::after(Instant::now(), *patience),
            Self::Until { end, grace, .. } => time::after(Instant::now().max((*end)?), *grace),
        }
    }

    fn error(&self, url: Arc<str>) -> ListWatchError {
        match self {
            Self::Within(after) => ListWatchError::Silent { what: "more of the list", after: *after, url },
            Self::Until { started, .. } => {
                ListWatchError::Silent { what: "end of the watch", after: started.elapsed(), url }
            }
        }
    }
}

/// What the two splitters have in common.
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
struct Reading<S> {
    body: Body,
    splitter: S,
    url: Arc<str>,
    silence: Silence,
}

fn parts<S: Split>(
    answer: Answer,
    splitter: S,
    silence: Silence,
) -> impl Stream<Item = Result<S::Part, ListWatchError>> + Send {
    let reading = Box::new(Reading { body: answer.body, splitter, url: answer.url, silence });
    stream::unfold(Some(reading), |reading| async move {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(part)) => Some((Ok(part), Some(reading))),
            Ok(None) => Some((reading.finish().transpose()?, None)),
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl<S: Split> Reading<S> {
    /// The next part; `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<S::Part>, ListWatchError> {
        loop {
            let part = self.splitter.next().map_err(|error| malformed(&error, &self.url))?;
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
            match timeout_at(self.silence.deadline(), self.body.frame()).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Ok(Some(data)),
                    // Trailers say nothing of interest.
                    Ok(_) | Err(_) => {}
                },
                Ok(Some(Err(error))) => {
                    return Err(ListWatchError::Broken {
                        message: describe(&error),
                        url: Arc::clone(&self.url),
                    });
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(self.silence.error(Arc::clone(&self.url))),
            }
        }
    }

    /// The body has ended: is it complete, and did it end with a part?
    fn finish(self) -> Result<Option<S::Part>, ListWatchError> {
        self.splitter.finish().map_err(|error| malformed(&error, &self.url))
    }
}

fn malformed(error: &BodyError, url: &Arc<str>) -> ListWatchError {
    ListWatchError::Malformed { message: error.to_string(), url: Arc::clone(url) }
}
