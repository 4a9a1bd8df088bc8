//! Responses of a [`FakeSource`].

use super::{Change, ChangeKind, FakeSource, State, URL, Watcher, bookmark_object, encode, status};
use futures_util::{StreamExt, stream};
use kube_informer_wire::{
    Bookmark, ListMeta, ListOptions, ListPart, ListStream, ListWatchError, Origin, WatchEvent, WatchOptions,
    WatchStream,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

impl FakeSource {
    pub(super) fn list(
        &self,
        options: &ListOptions,
        namespace: Option<&str>,
    ) -> Result<ListStream, ListWatchError> {
        let mut state = self.lock();
        let (start, version) = state.list_start(options)?;
        let limit = options.limit.map_or(usize::MAX, |limit| limit as usize);
        let now = || state.objects.values().cloned().collect();
        let objects: Vec<Value> = state.paged_lists.get(&version).cloned().unwrap_or_else(now);
        let matching: Vec<&Value> = objects.iter().filter(|object| is_in(object, namespace)).collect();
        let page: Vec<ListPart> = matching
            .iter()
            .skip(start)
            .take(limit)
            .map(|object| encode(&self.origin, object).map_or_else(ListPart::Malformed, ListPart::Item))
            .collect();
        let end = start + page.len();
        let more = matching.len() > end;
        let meta = ListMeta {
            resource_version: Some(version.into()),
            continue_token: more.then(|| format!("{version}:{end}")),
            remaining: more.then(|| (matching.len() - end) as u64),
        };
        if more {
            // Later pages are of the same state as the first one.
            state.paged_lists.insert(version, objects);
        }
        let mut parts: Vec<Result<ListPart, ListWatchError>> = vec![Ok(ListPart::Meta(meta))];
        parts.extend(page.into_iter().map(Ok));
        state.faults.break_off(&mut parts);
        Ok(stream::iter(parts).boxed())
    }

    pub(super) fn watch(
        &self,
        options: &WatchOptions,
        namespace: Option<&str>,
    ) -> Result<WatchStream, ListWatchError> {
        let mut state = self.lock();
        let asked = options.resource_version.as_deref().unwrap_or_default();
        let initial = options.send_initial_events == Some(true) || matches!(asked, "" | "0");
        if options.send_initial_events.is_some() && state.faults.no_streaming {
            return Err(api_error(422, "Invalid", "sendInitialEvents: Forbidden: not supported"));
        }
        let from: u64 = asked.parse().unwrap_or(0);
        let (sender, receiver) = mpsc::unbounded_channel();
        let open = if initial {
            self.send_state(&state, options, namespace, &sender);
            true
        } else {
            self.send_history(&state, from, namespace, &sender)?
        };
        if open {
            state.watchers.push(Watcher { namespace: namespace.map(str::to_owned), events: sender });
        }
        let broken = state.faults.break_after.take();
        let events =
            stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
        Ok(match broken {
            None => events.boxed(),
            Some(after) => events.take(after).chain(stream::once(async { Err(broken_off()) })).boxed(),
        })
    }

    fn send_state(&self, state: &State, options: &WatchOptions, namespace: Option<&str>, to: &Sender) {
        for object in state.objects.values().filter(|object| is_in(object, namespace)) {
            let _ = to
                .send(Ok(encode(&self.origin, object).map_or_else(WatchEvent::Malformed, WatchEvent::Added)));
        }
        if options.allow_bookmarks && !state.faults.no_end_bookmark {
            let end = bookmark_object(state.version, true).to_string();
            let bookmark = Bookmark::parse(end.as_bytes());
            let _ = to.send(Ok(bookmark.map_or_else(WatchEvent::Malformed, WatchEvent::Bookmark)));
        }
    }

    /// Returns whether the watch stays open.
    fn send_history(
        &self,
        state: &State,
        from: u64,
        namespace: Option<&str>,
        to: &Sender,
    ) -> Result<bool, ListWatchError> {
        if from < state.floor {
            let message = format!("too old resource version: {from} ({})", state.floor);
            if state.faults.http_410 {
                return Err(api_error(410, "Expired", &message));
            }
            let _ = to.send(Ok(WatchEvent::Error(status(410, "Expired", &message))));
            return Ok(false);
        }
        for change in
            state.history.iter().filter(|change| change.version > from && is_in(&change.object, namespace))
        {
            let _ = to.send(Ok(event(&self.origin, change)));
        }
        Ok(true)
    }
}

type Sender = mpsc::UnboundedSender<Result<WatchEvent, ListWatchError>>;

impl State {
    /// Sends a change to every watch that covers it.
    pub(super) fn announce(&mut self, change: &Change) {
        if self.held_back(change) {
            return;
        }
        let origin = Arc::clone(&self.origin);
        self.watchers.retain(|watcher| {
            !is_in(&change.object, watcher.namespace.as_deref())
                || watcher.events.send(Ok(event(&origin, change))).is_ok()
        });
    }

    /// Where a list starts and which version it shows.
    fn list_start(&self, options: &ListOptions) -> Result<(usize, u64), ListWatchError> {
        if let Some(token) = &options.continue_token {
            let (version, start) = token.split_once(':').unwrap_or_default();
            let version = version.parse().unwrap_or(0);
            if self.faults.pages_expire || version < self.floor {
                return Err(api_error(410, "Expired", "The provided continue parameter is too old"));
            }
            return Ok((start.parse().unwrap_or(0), version));
        }
        let asked: u64 = options.resource_version.as_deref().unwrap_or_default().parse().unwrap_or(0);
        if asked > self.version {
            let message = format!("Timeout: Too large resource version: {asked}, current: {}", self.version);
            return Err(api_error(504, "Timeout", &message));
        }
        Ok((0, self.version))
    }
}

impl super::Faults {
    fn break_off(&mut self, parts: &mut Vec<Result<ListPart, ListWatchError>>) {
        if let Some(after) = self.break_after.take() {
            parts.truncate(after);
            parts.push(Err(broken_off()));
        }
    }
}

fn event(origin: &Arc<Origin>, change: &Change) -> WatchEvent {
    match (encode(origin, &change.object), change.kind) {
        (Err(malformed), _) => WatchEvent::Malformed(malformed),
        (Ok(object), ChangeKind::Added) => WatchEvent::Added(object),
        (Ok(object), ChangeKind::Modified) => WatchEvent::Modified(object),
        (Ok(object), ChangeKind::Deleted) => WatchEvent::Deleted(object),
    }
}

fn is_in(object: &Value, namespace: Option<&str>) -> bool {
    namespace.is_none() || object.pointer("/metadata/namespace").and_then(Value::as_str) == namespace
}

fn api_error(code: u16, reason: &str, message: &str) -> ListWatchError {
    ListWatchError::api(status(code, reason, message), URL)
}

fn broken_off() -> ListWatchError {
    ListWatchError::Broken { message: "connection reset".into(), url: URL.into() }
}
