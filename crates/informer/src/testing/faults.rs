//! Faults of a [`FakeSource`].

use super::{FakeSource, State, URL, status};
use kube_informer_wire::{
    Bookmark, ListOptions, ListWatchError, Malformed, ObjectKey, Status, WatchEvent, WatchOptions,
};
use std::{collections::VecDeque, time::Duration};

/// A request to a [`FakeSource`].
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// A list, or a page of one.
    List(ListOptions),
    /// A watch, or a streaming list.
    Watch(WatchOptions),
    /// One object.
    Get(ObjectKey),
}

/// How a request fails.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// The server responds with an error, such as 410, 429, 500 or 403.
    Status(Status),
    /// The request fails in another way: the login page of a proxy, a truncated body.
    Fail(ListWatchError),
    /// The connection is refused.
    Refuse,
    /// The server never responds.
    Silence,
    /// The response is delayed.
    Delay(Duration),
    /// The body breaks off after this many items or events.
    BreakAfter(usize),
}

impl Fault {
    /// 429 with `Retry-After`.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        let mut status = status(429, "TooManyRequests", "slow down");
        status.details.retry_after_seconds = retry_after_seconds;
        Self::Status(status)
    }

    /// 410: the version or page has expired.
    pub fn expired() -> Self {
        Self::Status(status(410, "Expired", "too old resource version"))
    }

    /// 403.
    pub fn forbidden() -> Self {
        Self::Status(status(403, "Forbidden", "not allowed"))
    }

    /// 500.
    pub fn internal() -> Self {
        Self::Status(status(500, "InternalError", "broken"))
    }
}

#[derive(Default)]
pub(super) struct Faults {
    lists: VecDeque<Fault>,
    watches: VecDeque<Fault>,
    gets: VecDeque<Fault>,
    /// Pages after the first one fail with 410.
    pub(super) pages_expire: bool,
    pub(super) no_end_bookmark: bool,
    pub(super) no_streaming: bool,
    /// A 410 is sent as HTTP status, not in the stream.
    pub(super) http_410: bool,
    /// Events are held back.
    stalled: Option<Vec<super::Change>>,
    /// Number of events to drop.
    pub(super) swallow: usize,
    pub(super) break_after: Option<usize>,
}

impl State {
    /// Records a request and returns its fault.
    pub(super) fn begin(&mut self, request: Request) -> Option<Fault> {
        let fault = match &request {
            Request::List(_) => self.faults.lists.pop_front(),
            Request::Watch(_) => self.faults.watches.pop_front(),
            Request::Get(_) => self.faults.gets.pop_front(),
        };
        self.requests.push(request);
        fault
    }

    /// Holds an event back or drops it. Returns whether it did.
    pub(super) fn held_back(&mut self, change: &super::Change) -> bool {
        if self.faults.swallow > 0 {
            self.faults.swallow -= 1;
            return true;
        }
        match &mut self.faults.stalled {
            Some(held) => {
                held.push(change.clone());
                true
            }
            None => false,
        }
    }
}

impl FakeSource {
    /// The next list fails; called repeatedly, the ones after it.
    pub fn fail_list(&self, fault: Fault) -> &Self {
        self.lock().faults.lists.push_back(fault);
        self
    }

    /// The next watch or streaming list fails; called repeatedly, the ones after it.
    pub fn fail_watch(&self, fault: Fault) -> &Self {
        self.lock().faults.watches.push_back(fault);
        self
    }

    /// The next request of one object fails; called repeatedly, the ones after it.
    pub fn fail_get(&self, fault: Fault) -> &Self {
        self.lock().faults.gets.push_back(fault);
        self
    }

    /// Removes all pending faults of requests.
    pub fn heal(&self) -> &Self {
        let mut state = self.lock();
        state.faults.lists.clear();
        state.faults.watches.clear();
        state.faults.gets.clear();
        drop(state);
        self
    }

    /// Ends all watches cleanly.
    pub fn cut(&self) -> &Self {
        self.lock().watchers.clear();
        self
    }

    /// Breaks the connection of all watches.
    pub fn break_connections(&self) -> &Self {
        self.end_watches(|| {
            Err(ListWatchError::Broken { message: "connection reset".into(), url: URL.into() })
        })
    }

    /// Ends all watches with an error event.
    pub fn error_in_stream(&self, status: Status) -> &Self {
        self.end_watches(|| Ok(WatchEvent::Error(status.clone())))
    }

    fn end_watches(&self, end: impl Fn() -> Result<WatchEvent, ListWatchError>) -> &Self {
        let mut state = self.lock();
        for watcher in state.watchers.drain(..) {
            let _ = watcher.events.send(end());
        }
        drop(state);
        self
    }

    /// Expires the history: a watch from an earlier version, and a page of an earlier list, fails with 410.
    pub fn expire_history(&self) -> &Self {
        let mut state = self.lock();
        state.history.clear();
        state.paged_lists.clear();
        state.floor = state.version;
        drop(state);
        self
    }

    /// Whether a 410 of a watch is sent as HTTP status instead of in the stream.
    pub fn expire_over_http(&self, http: bool) -> &Self {
        self.lock().faults.http_410 = http;
        self
    }

    /// Whether every page after the first fails with 410.
    pub fn expire_pages(&self, expire: bool) -> &Self {
        self.lock().faults.pages_expire = expire;
        self
    }

    /// Whether streaming lists lack the bookmark at their end.
    pub fn skip_end_bookmark(&self, skip: bool) -> &Self {
        self.lock().faults.no_end_bookmark = skip;
        self
    }

    /// Whether streaming lists are rejected with 422, as by older servers.
    pub fn refuse_streaming_lists(&self, refuse: bool) -> &Self {
        self.lock().faults.no_streaming = refuse;
        self
    }

    /// Holds back all events until [`resume`](Self::resume); watches stay open.
    pub fn stall(&self) -> &Self {
        self.lock().faults.stalled.get_or_insert_default();
        self
    }

    /// Sends the events that were held back.
    pub fn resume(&self) -> &Self {
        let mut state = self.lock();
        for change in state.faults.stalled.take().unwrap_or_default() {
            state.announce(&change);
        }
        drop(state);
        self
    }

    /// Drops the next event; the stream goes on.
    pub fn drop_next_event(&self) -> &Self {
        self.lock().faults.swallow += 1;
        self
    }

    /// Sends a bookmark with the current version to all watches.
    pub fn bookmark(&self) -> &Self {
        let version = self.lock().version;
        self.send(|| {
            WatchEvent::Bookmark(Bookmark { resource_version: version.into(), initial_events_end: false })
        })
    }

    /// Sends a malformed event to all watches.
    pub fn send_malformed(&self) -> &Self {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version;
        drop(state);
        self.send(|| WatchEvent::Malformed(Malformed::new("garbage").at(Some(version.into()))))
    }

    /// Sends an event once more, like a watch that resumed at an earlier version.
    pub fn repeat_event(&self, version: u64) -> &Self {
        let mut state = self.lock();
        let repeated = state.history.iter().find(|change| change.version == version).cloned();
        if let Some(change) = repeated {
            state.announce(&change);
        }
        drop(state);
        self
    }

    /// Whether an object exists.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.lock().objects.contains_key(key)
    }

    /// Sends any event to all watches: a repetition, an unknown object, an old version.
    pub fn send(&self, event: impl Fn() -> WatchEvent) -> &Self {
        self.lock().watchers.retain(|watcher| watcher.events.send(Ok(event())).is_ok());
        self
    }

    pub(super) async fn inject(&self, fault: Option<Fault>) -> Result<(), ListWatchError> {
        match fault {
            None => Ok(()),
            Some(Fault::Status(status)) => Err(ListWatchError::api(status, URL)),
            Some(Fault::Fail(error)) => Err(error),
            Some(Fault::Refuse) => {
                Err(ListWatchError::Connect { refused: true, message: "refused".into(), url: URL.into() })
            }
            Some(Fault::Silence) => std::future::pending().await,
            Some(Fault::Delay(delay)) => {
                crate::time::sleep(delay).await;
                Ok(())
            }
            Some(Fault::BreakAfter(parts)) => {
                self.lock().faults.break_after = Some(parts);
                Ok(())
            }
        }
    }
}
