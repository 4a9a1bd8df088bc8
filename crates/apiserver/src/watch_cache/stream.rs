//! The stream of one watch. It has no task of its own: all work happens when it is polled.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::time::Instant;

use super::error::ReadError;
use super::event::{Bookmark, Event, WatchEvent, WatchItem};
use super::initial::InitialState;
use super::registration::{Registration, Signal};
use super::schedule::{Due, Schedule};
use super::watch::storage_error;
use super::watchers::Position;
use crate::storage::{ChangeStream, Stored};

/// The most events copied from the window per acquisition of the lock.
const BATCH: usize = 100;

/// The events of one watch.
///
/// 1. If requested, it begins with the initial state in key order, each object at its own resource version, and then the bookmark that
///    marks its end.
/// 2. Then it yields every change the request selects, once, in the order of revisions.
/// 3. A bookmark at `r` follows every event up to `r`.
/// 4. An error is the last item. The stream ends without an error when its timeout expires, when the cache reinitializes, when watches
///    are cut, and when it is read so slowly that the window moves past it.
#[must_use = "a watch yields events only when its stream is polled"]
pub struct WatchStream {
    source: Source,
}

enum Source {
    Cached(Box<CachedWatch>),
    Storage(Box<StorageWatch>),
    /// The watch has ended; the error, if any, is still to be yielded.
    Ended(Option<ReadError>),
}

impl WatchStream {
    pub(super) fn from_cache(watch: CachedWatch) -> Self {
        Self { source: Source::Cached(Box::new(watch)) }
    }

    pub(super) fn from_storage(watch: StorageWatch) -> Self {
        Self { source: Source::Storage(Box::new(watch)) }
    }

    pub(super) fn failed(error: ReadError) -> Self {
        Self { source: Source::Ended(Some(error)) }
    }
}

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.source {
            Source::Cached(_) => "WatchStream(cached)",
            Source::Storage(_) => "WatchStream(storage)",
            Source::Ended(_) => "WatchStream(ended)",
        })
    }
}

impl Stream for WatchStream {
    type Item = WatchItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        let item = match &mut self.source {
            Source::Cached(watch) => watch.poll(cx),
            Source::Storage(watch) => watch.poll(cx),
            Source::Ended(error) => return Poll::Ready(error.take().map(WatchItem::Error)),
        };
        // Removes an ended watch from the cache at once, not only when its owner drops the stream.
        if matches!(item, Poll::Ready(None | Some(WatchItem::Error(_)))) {
            self.source = Source::Ended(None);
        }
        item
    }
}

/// A watch that reads the window of a cache.
pub(super) struct CachedWatch {
    registration: Registration,
    /// The stream yields changes and bookmarks after this revision.
    after: u64,
    initial: Option<InitialState>,
    /// The revision of the initial state, until the bookmark that marks its end is sent.
    end_mark: Option<u64>,
    batch: std::vec::IntoIter<Arc<Event>>,
    schedule: Schedule,
}

/// The result of reading the window when the batch of a watch is empty.
enum Refill {
    /// The batch has new events.
    Events,
    Item(WatchItem),
    Wait,
    End,
}

impl CachedWatch {
    pub(super) fn new(
        registration: Registration,
        after: u64,
        initial: Option<InitialState>,
        end_mark: Option<u64>,
        schedule: Schedule,
    ) -> Self {
        Self { registration, after, initial, end_mark, batch: Vec::new().into_iter(), schedule }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        loop {
            match self.registration.poll_stalled(cx) {
                Signal::Continue => {}
                Signal::Stalled => return self.schedule.poll_end(cx).map(|()| None),
                Signal::End => return Poll::Ready(None),
            }
            if self.initial.is_some() && self.schedule.due(Instant::now()) == Due::End {
                return Poll::Ready(None);
            }
            if let Some(item) = self.next_buffered() {
                return Poll::Ready(Some(item));
            }
            match self.refill(cx) {
                Refill::Events => {}
                Refill::Item(item) => return Poll::Ready(Some(item)),
                Refill::End => return Poll::Ready(None),
                Refill::Wait => std::task::ready!(self.schedule.poll(cx)),
            }
        }
    }

    /// Returns the next item that does not need the lock of the cache.
    fn next_buffered(&mut self) -> Option<WatchItem> {
        if let Some(initial) = &mut self.initial {
            if let Some(stored) = initial.next(&self.registration.filter) {
                return Some(WatchItem::Event(WatchEvent::initial(
                    stored,
                    &self.registration.shared.encodings,
                )));
            }
            self.initial = None;
        }
        if let Some(revision) = self.end_mark.take() {
            return Some(WatchItem::Bookmark(Bookmark { revision, initial_events_end: true }));
        }
        let (registration, after) = (&self.registration, self.after);
        self.batch.find_map(|event| visible_event(registration, after, &event)).map(WatchItem::Event)
    }

    fn refill(&mut self, cx: &mut Context<'_>) -> Refill {
        let now = Instant::now();
        let due = self.schedule.due(now);
        if due == Due::End {
            return Refill::End;
        }
        let (mut state, revision) = self.registration.shared.lock_at();
        let state = &mut *state;
        let slot = self.registration.slot;
        let position = state.watchers.position(slot);
        if position == Position::Closed {
            return Refill::End;
        }
        if let Position::Reading(from) | Position::Draining(from) = position {
            let Some(events) = state.window.read(from, BATCH) else {
                state.watchers.terminated += 1;
                return Refill::End;
            };
            if !events.is_empty() {
                state.watchers.advance(slot, from + events.len() as u64);
                self.batch = events.into_iter();
                return Refill::Events;
            }
        }
        if matches!(position, Position::Draining(_)) {
            return Refill::End;
        }
        state.watchers.park(slot, Position::Idle, cx);
        if due == Due::Bookmark {
            self.schedule.bookmark_done(now);
            if revision > self.after {
                return Refill::Item(WatchItem::Bookmark(Bookmark { revision, initial_events_end: false }));
            }
        }
        Refill::Wait
    }
}

/// A watch that reads the store.
pub(super) struct StorageWatch {
    registration: Registration,
    changes: ChangeStream,
    initial: std::vec::IntoIter<Arc<Stored>>,
    end_mark: Option<u64>,
    schedule: Schedule,
}

impl StorageWatch {
    pub(super) fn new(
        registration: Registration,
        changes: ChangeStream,
        initial: Vec<Arc<Stored>>,
        end_mark: Option<u64>,
        schedule: Schedule,
    ) -> Self {
        Self { registration, changes, initial: initial.into_iter(), end_mark, schedule }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        match self.registration.poll_stalled(cx) {
            Signal::Continue => {}
            Signal::Stalled => return self.schedule.poll_end(cx).map(|()| None),
            Signal::End => return Poll::Ready(None),
        }
        if self.schedule.due(Instant::now()) == Due::End {
            return Poll::Ready(None);
        }
        if let Some(stored) = self.initial.next() {
            return Poll::Ready(Some(WatchItem::Event(WatchEvent::initial(
                stored,
                &self.registration.shared.encodings,
            ))));
        }
        if let Some(revision) = self.end_mark.take() {
            return Poll::Ready(Some(WatchItem::Bookmark(Bookmark { revision, initial_events_end: true })));
        }
        loop {
            if self.schedule.due(Instant::now()) == Due::End
                || self.registration.poll_closed(cx) == Signal::End
            {
                return Poll::Ready(None);
            }
            match self.changes.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(change))) => {
                    let event = Arc::new(Event::new(change));
                    if let Some(event) = visible_event(&self.registration, 0, &event) {
                        return Poll::Ready(Some(WatchItem::Event(event)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(WatchItem::Error(storage_error(error))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => std::task::ready!(self.schedule.poll(cx)),
            }
        }
    }
}

/// Returns the event as a watcher with this filter sees it: an object that starts to match is added, one that stops to match is deleted.
fn visible_event(registration: &Registration, after: u64, event: &Arc<Event>) -> Option<WatchEvent> {
    let (change, filter) = (&event.change, &registration.filter);
    let selects = |stored: &Option<Arc<Stored>>| stored.as_ref().is_some_and(|stored| filter.selects(stored));
    if change.revision <= after {
        return None;
    }
    let (previous, current) = (selects(&change.previous), selects(&change.current));
    WatchEvent::new(event, previous, current, &registration.shared.encodings)
}
