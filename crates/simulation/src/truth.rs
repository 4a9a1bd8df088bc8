//! The state that everything is compared with, in both kinds of world: the history of the collection, and which part
//! of it each client has received.

use crate::{
    history::{EpochVersion, History},
    log::Log,
    retry_after::RetryAfter,
};
use kube_informer::{Kind, ObjectKey, Origin};
use kube_informer_wire::sync::lock;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};
use tokio::time::Instant;

/// A client of a server: one partition of one informer.
pub(crate) type ClientId = usize;

/// The true state of a world.
pub(crate) struct Truth {
    state: Mutex<TruthState>,
    pub(crate) log: Arc<Log>,
    origin: Arc<Origin>,
    /// Origins that factories created for their informers.
    factory_origins: Mutex<Vec<Weak<Origin>>>,
}

/// The collection and the clients that read it.
pub(crate) struct TruthState {
    pub(crate) history: History,
    clients: Vec<Client>,
    /// Versions that writes in flight may still take.
    reserved: u64,
}

/// Permission to write some versions. Until it is dropped, every other writer counts them as written.
pub(crate) struct WritePermit {
    truth: Arc<Truth>,
    versions: u64,
}

impl Drop for WritePermit {
    fn drop(&mut self) {
        self.truth.lock().reserved -= self.versions;
    }
}

#[derive(Default)]
struct Client {
    /// The states that the client may be in: the last one that it has certainly applied, then those that it received
    /// since. It may have dropped the latter, because its reader panicked or closed the stream.
    possible: Vec<EpochVersion>,
    /// The state that a list in flight shows.
    list_in_flight: Option<EpochVersion>,
    removed: bool,
    /// It has received a whole list.
    has_listed: bool,
    event_loss: EventLoss,
    /// Malformed items of the list in flight.
    malformed_items: Vec<KeyRange>,
    /// The longest `Retry-After` that the client honours, if it is checked.
    max_retry_after: Option<Duration>,
    /// When the client may send its next request.
    not_before: Option<Instant>,
    stale_items: Option<StaleItems>,
}

/// The keys that a malformed item of a list may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyRange {
    One(ObjectKey),
    /// The keys after the first and before the second; `None` is unbounded.
    Between(Option<ObjectKey>, Option<ObjectKey>),
}

/// Objects whose items in lists were malformed. The cache keeps its old state of them until it receives another one.
struct StaleItems {
    /// The state that the last of these lists showed.
    since: EpochVersion,
    ranges: Vec<KeyRange>,
    /// Objects of these ranges that a watch has shown since, and at which state.
    watched: BTreeMap<ObjectKey, EpochVersion>,
}

impl KeyRange {
    fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Between(after, before) => {
                after.as_ref().is_none_or(|after| after < key)
                    && before.as_ref().is_none_or(|before| key < before)
            }
        }
    }
}

/// What a stream has brought to its client last.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Received {
    /// A whole list, which the client has applied when it polls again.
    List(EpochVersion),
    /// Events, which it handles in groups: it has applied them when it has waited.
    Events(EpochVersion),
}

/// Whether a client lost a change because an event was malformed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum EventLoss {
    #[default]
    None,
    /// A malformed event arrived, the first one at this version.
    Unresolved(u64),
    /// A list of this state arrived since.
    Relisted(EpochVersion),
}

impl Truth {
    /// An empty collection at a version.
    pub(crate) fn new(kind: Kind, version: u64, log: &Arc<Log>) -> Arc<Self> {
        let state = TruthState { history: History::new(version), clients: Vec::new(), reserved: 0 };
        Arc::new(Self {
            state: Mutex::new(state),
            log: Arc::clone(log),
            origin: Arc::new(Origin::new(kind)),
            factory_origins: Mutex::default(),
        })
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Locks the state for one read or one change, never while a request to a server is in flight.
    pub(crate) fn lock(&self) -> MutexGuard<'_, TruthState> {
        lock(&self.state)
    }

    /// Permits a write of `versions` versions, unless [`TruthState::would_hide_restore`] forbids it.
    ///
    /// A server takes its time between a request and its commit, and several clients write at once. Without a
    /// permit that is held until the commit, two writers could both pass the check for the last allowed version.
    pub(crate) fn permit(self: &Arc<Self>, versions: u64) -> Option<WritePermit> {
        let mut state = self.lock();
        if state.would_hide_restore(versions) {
            return None;
        }
        state.reserved += versions;
        Some(WritePermit { truth: Arc::clone(self), versions })
    }

    /// Counts references to an origin that a factory created, too.
    pub(crate) fn track_origin(&self, origin: &Arc<Origin>) {
        lock(&self.factory_origins).push(Arc::downgrade(origin));
    }

    /// The number of references to origins: each object holds one, and so does each source of objects.
    pub(crate) fn origin_references(&self) -> usize {
        let created = lock(&self.factory_origins);
        Arc::strong_count(&self.origin) - 1 + created.iter().map(Weak::strong_count).sum::<usize>()
    }
}

impl TruthState {
    pub(crate) fn new_client(&mut self) -> ClientId {
        self.clients.push(Client::default());
        self.clients.len() - 1
    }

    /// Whether `by` more versions, after those of writes in flight, would hide from a client that the history it knows
    /// is no longer the server's. No client could detect that: versions would continue as if nothing had happened.
    pub(crate) fn would_hide_restore(&self, by: u64) -> bool {
        let clients = self.clients.iter().filter(|client| !client.removed);
        let mut states =
            clients.flat_map(|client| client.possible.iter().copied().chain(client.list_in_flight));
        let reached = self.history.version + self.reserved + by;
        states.any(|state| self.is_undone(state) && reached >= state.1)
    }

    /// The client honours every `Retry-After` up to this one.
    pub(crate) fn expect_retry_after(&mut self, client: ClientId, limit: Duration) {
        self.clients[client].max_retry_after = Some(limit);
    }

    /// A request of a client was rejected with a `Retry-After`.
    pub(crate) fn rejected(&mut self, client: ClientId, retry_after: RetryAfter) {
        let Client { max_retry_after, not_before, .. } = &mut self.clients[client];
        let honoured = retry_after.seconds().zip(*max_retry_after);
        let delay = honoured.map(|(seconds, limit)| Duration::from_secs(seconds).min(limit));
        *not_before = delay.and_then(|delay| Instant::now().checked_add(delay));
    }

    /// A client sends a request. Returns how much earlier than its last `Retry-After` allows.
    pub(crate) fn requests(&mut self, client: ClientId) -> Option<Duration> {
        let not_before = self.clients[client].not_before.take()?;
        not_before.checked_duration_since(Instant::now()).filter(|early| !early.is_zero())
    }

    /// Ignores a client from now on, because its informer has stopped.
    pub(crate) fn remove_client(&mut self, client: ClientId) {
        self.clients[client].removed = true;
    }

    /// A client receives a malformed event. It cannot know whether the event was a repetition, so that the first
    /// change it may lack is the one after all that it received.
    pub(crate) fn received_malformed(&mut self, client: ClientId, version: u64) {
        let epoch = self.history.epoch();
        let Client { event_loss, possible, .. } = &mut self.clients[client];
        let next = possible.iter().filter(|state| state.0 == epoch).map(|state| state.1 + 1).max();
        if !matches!(event_loss, EventLoss::Unresolved(_)) {
            *event_loss = EventLoss::Unresolved(version.max(next.unwrap_or(0)));
        }
    }

    pub(crate) fn event_loss(&self, client: ClientId) -> EventLoss {
        self.clients[client].event_loss
    }

    /// The cache of a client shows a list that it received after a malformed event.
    pub(crate) fn resolve_event_loss(&mut self, client: ClientId) {
        self.clients[client].event_loss = EventLoss::None;
    }

    /// The list in flight to a client has a malformed item.
    pub(crate) fn add_malformed_item(&mut self, client: ClientId, range: KeyRange) {
        self.clients[client].malformed_items.push(range);
    }

    /// A client starts a new list.
    pub(crate) fn starts_list(&mut self, client: ClientId) {
        self.clients[client].malformed_items.clear();
    }

    /// Whether a cache that shows `state` may have another state of an object, because its items in lists were
    /// malformed and no watch has shown the object since.
    pub(crate) fn may_be_stale(&self, client: ClientId, key: &ObjectKey, state: EpochVersion) -> bool {
        let items = self.clients[client].stale_items.as_ref();
        items.is_some_and(|items| {
            items.ranges.iter().any(|range| range.contains(key))
                && items.watched.get(key).is_none_or(|watched| state < *watched)
        })
    }

    /// A watch shows a change of an object to a client. A change that is older than the list is a repetition, which the
    /// client does not apply.
    pub(crate) fn watched(&mut self, client: ClientId, key: &ObjectKey, state: EpochVersion) {
        if let Some(items) = self.clients[client].stale_items.as_mut().filter(|items| state > items.since) {
            items.watched.insert(key.clone(), state);
        }
    }

    /// The cache of a client equals a state, without exceptions.
    pub(crate) fn cache_equals(&mut self, client: ClientId, state: EpochVersion) {
        let items = &mut self.clients[client].stale_items;
        if items.as_ref().is_some_and(|items| state >= items.since) {
            *items = None;
        }
    }

    /// Whether the client has ever received a complete list.
    pub(crate) fn has_received_list(&self, client: ClientId) -> bool {
        self.clients[client].has_listed
    }

    pub(crate) fn set_list_in_flight(&mut self, client: ClientId, shown: Option<EpochVersion>) {
        self.clients[client].list_in_flight = shown;
    }

    pub(crate) fn list_in_flight(&self, client: ClientId) -> Option<EpochVersion> {
        self.clients[client].list_in_flight
    }

    /// A client received a whole list. It has certainly applied the list when it watches from there.
    pub(crate) fn received_list(&mut self, client: ClientId, state: EpochVersion) {
        let client = &mut self.clients[client];
        client.has_listed = true;
        if !client.possible.contains(&state) {
            client.possible.push(state);
        }
        client.list_in_flight = None;
        if !client.malformed_items.is_empty() {
            let empty = || StaleItems { since: state, ranges: Vec::new(), watched: BTreeMap::new() };
            let items = client.stale_items.get_or_insert_with(empty);
            items.since = state;
            items.watched.retain(|key, _| !client.malformed_items.iter().any(|range| range.contains(key)));
            items.ranges.append(&mut client.malformed_items);
        }
        if client.event_loss != EventLoss::None {
            client.event_loss = EventLoss::Relisted(state);
        }
    }

    /// A watch has brought a client to a state. Returns whether the client is certainly in that state once it has applied the
    /// event.
    ///
    /// A repetition does not move a client back. After a restore, a version below the one that the client has looks like
    /// a repetition: it does not show the client that the history is another one. Only a list does.
    pub(crate) fn received_event(&mut self, client: ClientId, state: EpochVersion) -> bool {
        let repeats = |&known: &EpochVersion| match known.0 == state.0 {
            true => state.1 <= known.1,
            false => state.1 < known.1 && self.is_undone(known),
        };
        let possible = &self.clients[client].possible;
        let repeated = possible.iter().filter(|known| repeats(known)).count();
        let is_new = possible.is_empty() || repeated < possible.len();
        if is_new && !possible.contains(&state) {
            self.clients[client].possible.push(state);
        }
        repeated == 0
    }

    /// A client has certainly applied a state that it received.
    pub(crate) fn applied(&mut self, client: ClientId, state: EpochVersion) {
        let possible = &mut self.clients[client].possible;
        if possible.contains(&state) {
            *possible = vec![state];
        }
    }

    /// A client requests changes after a version, so that it is in a state of that version.
    pub(crate) fn watches_from(&mut self, client: ClientId, version: u64) {
        let possible = &mut self.clients[client].possible;
        if possible.iter().any(|state| state.1 == version) {
            possible.retain(|state| state.1 == version);
        }
    }

    /// A client starts with a saved state, which is one of these.
    pub(crate) fn restarts_from(&mut self, client: ClientId, states: &[EpochVersion]) {
        self.clients[client].possible = states.to_vec();
    }

    /// Whether a restore has removed a state from the history.
    pub(crate) fn is_undone(&self, (epoch, version): EpochVersion) -> bool {
        (epoch + 1..=self.history.epoch()).any(|later| self.history.first_version(later) < version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client has version 103; the collection is restored to 101, so that version 102 is the last that may be
    /// written before the client lists.
    fn restored() -> (Arc<Truth>, ClientId) {
        let truth = Truth::new(Kind::namespaced("", "v1", "Thing", "things"), 100, &Arc::new(Log::new(None)));
        let mut state = truth.lock();
        state.history.advance_to(103);
        let client = state.new_client();
        state.received_event(client, (0, 103));
        assert!(state.history.restore(101));
        drop(state);
        (truth, client)
    }

    #[tokio::test]
    async fn writes_in_flight_count_as_written() {
        let (truth, _) = restored();
        let first = truth.permit(1);
        assert!(first.is_some());
        assert!(truth.permit(1).is_none(), "both together would reach the version of the client");
        drop(first);
        assert!(truth.permit(1).is_some(), "the first one was rejected and wrote nothing");
        truth.lock().history.advance_to(102);
        assert!(truth.permit(1).is_none());
    }

    #[tokio::test]
    async fn a_malformed_item_hides_an_object_until_a_watch_shows_it() {
        let (truth, client) = restored();
        let key = ObjectKey::namespaced("a", "x");
        let mut state = truth.lock();
        state.add_malformed_item(client, KeyRange::One(key.clone()));
        state.received_list(client, (1, 105));
        state.watched(client, &key, (1, 104));
        assert!(state.may_be_stale(client, &key, (1, 107)), "a repetition shows nothing");
        state.watched(client, &key, (1, 106));
        assert!(state.may_be_stale(client, &key, (1, 105)), "the cache does not have the change yet");
        assert!(!state.may_be_stale(client, &key, (1, 107)));
        state.add_malformed_item(client, KeyRange::One(key.clone()));
        state.received_list(client, (1, 108));
        assert!(state.may_be_stale(client, &key, (1, 108)), "hidden by the next list");
    }

    #[tokio::test]
    async fn a_watch_of_an_older_version_does_not_reveal_a_restore() {
        let (truth, client) = restored();
        truth.lock().received_event(client, (1, 101));
        assert!(truth.permit(2).is_none(), "the client may take it for a repetition");
        truth.lock().received_list(client, (1, 101));
        assert!(truth.permit(2).is_none(), "the client may have dropped the list");
        truth.lock().watches_from(client, 101);
        assert!(truth.permit(2).is_some());
    }

    #[tokio::test]
    async fn a_client_may_be_in_any_state_that_it_received_since_the_last_applied_one() {
        let (truth, client) = restored();
        let mut state = truth.lock();
        state.history.advance_to(105);
        state.received_list(client, (1, 102));
        state.watches_from(client, 102);
        assert!(state.received_event(client, (1, 104)) && state.received_event(client, (1, 105)));
        assert!(!state.received_event(client, (1, 103)), "a repetition");
        assert!(state.history.restore(103));
        assert!(state.would_hide_restore(1), "the client may have dropped the last event");
        state.applied(client, (1, 105));
        assert!(!state.would_hide_restore(1) && state.would_hide_restore(2));
    }

    #[tokio::test]
    async fn a_client_that_may_have_applied_a_list_may_have_applied_the_events_after_it() {
        let (truth, client) = restored();
        let mut state = truth.lock();
        state.received_list(client, (1, 101));
        state.history.advance_to(102);
        assert!(!state.received_event(client, (1, 102)), "a repetition if it dropped the list");
        assert!(state.history.restore(101));
        assert!(state.would_hide_restore(1), "it may have applied both");
    }
}
