//! The stream of one watch. Nothing runs for it: it does its work when it is polled.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::time::Instant;

use super::error::ReadError;
use super::event::{Bookmark, Event, WatchEvent, WatchItem};
use super::filter::Filter;
use super::initial::InitialState;
use super::schedule::{Due, Schedule};
use super::seat::{Seat, Signal};
use super::watch::expired;
use super::watchers::Position;
use crate::storage::{ChangeStream, Stored};

/// Events copied from the window per hold of its lock.
const BATCH: usize = 100;

/// The events of one watch.
///
/// 1. First the initial state in key order, if asked for, each object at its own version; then, if asked for, the bookmark that marks its end.
/// 2. Then every change the request selects, once, in the order of revisions, each above the one before.
/// 3. A bookmark at `r` follows every event up to `r`.
/// 4. After an error nothing follows. The stream ends without one when its time is over, when the cache is filled anew, when watches are
///    cut, and when it has been read too slowly for the window.
pub struct WatchStream {
    source: Source,
}

enum Source {
    Cached(Box<CachedWatch>),
    Stored(Box<StoredWatch>),
    /// One last item, or none.
    Last(Option<ReadError>),
}

impl WatchStream {
    pub(super) fn cached(watch: CachedWatch) -> Self {
        Self { source: Source::Cached(Box::new(watch)) }
    }

    pub(super) fn stored(watch: StoredWatch) -> Self {
        Self { source: Source::Stored(Box::new(watch)) }
    }

    pub(super) fn failed(error: ReadError) -> Self {
        Self { source: Source::Last(Some(error)) }
    }
}

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.source {
            Source::Cached(_) => "WatchStream(cached)",
            Source::Stored(_) => "WatchStream(stored)",
            Source::Last(_) => "WatchStream(ended)",
        })
    }
}

impl Stream for WatchStream {
    type Item = WatchItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        let item = match &mut self.source {
            Source::Cached(watch) => watch.poll(cx),
            Source::Stored(watch) => watch.poll(cx),
            Source::Last(error) => return Poll::Ready(error.take().map(WatchItem::Error)),
        };
        // An ended watch leaves the cache at once, not when its owner gets around to dropping it.
        if matches!(item, Poll::Ready(None | Some(WatchItem::Error(_)))) {
            self.source = Source::Last(None);
        }
        item
    }
}

/// A watch that reads the window of a cache.
pub(super) struct CachedWatch {
    seat: Seat,
    /// Only changes above this revision are shown; a bookmark at it says nothing new.
    after: u64,
    initial: Option<InitialState>,
    /// The revision of the initial state, until its end is marked.
    end_mark: Option<u64>,
    batch: std::vec::IntoIter<Arc<Event>>,
    schedule: Schedule,
}

/// What the cache has for a watch that ran dry.
enum Refill {
    More,
    Item(WatchItem),
    Wait,
    End,
}

impl CachedWatch {
    pub(super) fn new(
        seat: Seat,
        after: u64,
        initial: Option<InitialState>,
        end_mark: Option<u64>,
        schedule: Schedule,
    ) -> Self {
        Self { seat, after, initial, end_mark, batch: Vec::new().into_iter(), schedule }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        loop {
            match self.seat.ask(cx) {
                Signal::Go => {}
                Signal::Hold => return self.schedule.poll_end(cx).map(|()| None),
                Signal::End => return Poll::Ready(None),
            }
            if self.initial.is_some() && self.schedule.due(Instant::now()) == Due::End {
                return Poll::Ready(None);
            }
            if let Some(item) = self.at_hand() {
                return Poll::Ready(Some(item));
            }
            match self.refill(cx) {
                Refill::More => {}
                Refill::Item(item) => return Poll::Ready(Some(item)),
                Refill::End => return Poll::Ready(None),
                Refill::Wait => std::task::ready!(self.schedule.poll(cx)),
            }
        }
    }

    /// What can be shown without asking the cache.
    fn at_hand(&mut self) -> Option<WatchItem> {
        if let Some(initial) = &mut self.initial {
            if let Some(stored) = initial.next(&self.seat.filter) {
                return Some(WatchItem::Event(WatchEvent::state(stored)));
            }
            self.initial = None;
        }
        if let Some(revision) = self.end_mark.take() {
            return Some(WatchItem::Bookmark(Bookmark { revision, initial_events_end: true }));
        }
        let (filter, after) = (&self.seat.filter, self.after);
        self.batch.find_map(|event| show(filter, after, &event)).map(WatchItem::Event)
    }

    fn refill(&mut self, cx: &mut Context<'_>) -> Refill {
        let now = Instant::now();
        let due = self.schedule.due(now);
        if due == Due::End {
            return Refill::End;
        }
        let (mut state, revision) = self.seat.shared.lock_at();
        let state = &mut *state;
        let slot = self.seat.slot;
        let position = state.watchers.position(slot);
        if position == Position::Closed {
            return Refill::End;
        }
        if let Position::Reading(from) | Position::Draining(from) = position {
            let Some(events) = state.window.read(from, BATCH) else {
                state.watchers.overtaken += 1;
                return Refill::End;
            };
            if !events.is_empty() {
                state.watchers.advance(slot, from + events.len() as u64);
                self.batch = events.into_iter();
                return Refill::More;
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
pub(super) struct StoredWatch {
    seat: Seat,
    changes: ChangeStream,
    initial: std::vec::IntoIter<Arc<Stored>>,
    end_mark: Option<u64>,
    schedule: Schedule,
}

impl StoredWatch {
    pub(super) fn new(
        seat: Seat,
        changes: ChangeStream,
        initial: Vec<Arc<Stored>>,
        end_mark: Option<u64>,
        schedule: Schedule,
    ) -> Self {
        Self { seat, changes, initial: initial.into_iter(), end_mark, schedule }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchItem>> {
        match self.seat.ask(cx) {
            Signal::Go => {}
            Signal::Hold => return self.schedule.poll_end(cx).map(|()| None),
            Signal::End => return Poll::Ready(None),
        }
        if self.schedule.due(Instant::now()) == Due::End {
            return Poll::Ready(None);
        }
        if let Some(stored) = self.initial.next() {
            return Poll::Ready(Some(WatchItem::Event(WatchEvent::state(stored))));
        }
        if let Some(revision) = self.end_mark.take() {
            return Poll::Ready(Some(WatchItem::Bookmark(Bookmark { revision, initial_events_end: true })));
        }
        loop {
            if self.schedule.due(Instant::now()) == Due::End || self.seat.rest(cx) == Signal::End {
                return Poll::Ready(None);
            }
            match self.changes.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(change))) => {
                    if let Some(event) = show(&self.seat.filter, 0, &Arc::new(Event::new(change))) {
                        return Poll::Ready(Some(WatchItem::Event(event)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(WatchItem::Error(expired(error)))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => std::task::ready!(self.schedule.poll(cx)),
            }
        }
    }
}

/// An event as a filter sees it: what enters is added, what leaves is deleted.
fn show(filter: &Filter, after: u64, event: &Arc<Event>) -> Option<WatchEvent> {
    let change = &event.change;
    let selects = |stored: &Option<Arc<Stored>>| stored.as_ref().is_some_and(|stored| filter.selects(stored));
    if change.revision <= after {
        return None;
    }
    WatchEvent::seen(event, selects(&change.previous), selects(&change.current))
}
