//! What is true in a world, whoever answers for it: the history of the collection, and how much of it each
//! client was told.

use crate::{history::History, log::Log};
use kube_informer::{Kind, ObjectKey, Origin};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Names a client of a server: one namespace of one informer.
pub(crate) type ClientId = usize;

/// What everything that can be seen is compared with.
pub(crate) struct Truth {
    known: Mutex<Known>,
    pub(crate) log: Arc<Log>,
    origin: Arc<Origin>,
    /// Origins that informers made for themselves.
    lent: Mutex<Vec<Weak<Origin>>>,
}

/// The collection and those who look at it.
pub(crate) struct Known {
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
    /// Where it may be: the last epoch and version that it has taken for certain, then those that reached it since. It
    /// may have dropped these, because its reader panicked or turned away from the stream.
    told: Vec<(u32, u64)>,
    /// What a list that is on its way shows.
    listing: Option<(u32, u64)>,
    gone: bool,
    blur: Blur,
    /// What could not be read in a list that is on its way.
    missing: Vec<Gap>,
    veil: Option<Veil>,
}

/// Keys one of which an unreadable item has: those between two others, or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gap {
    One(ObjectKey),
    Between(Option<ObjectKey>, Option<ObjectKey>),
}

/// What a client could not read in its lists. It keeps what it had of it, until it is told something else.
struct Veil {
    /// Epoch and version of the last of these lists.
    since: (u32, u64),
    gaps: Vec<Gap>,
    /// Objects of these gaps that a watch has shown since, and the epoch and version of that.
    watched: BTreeMap<ObjectKey, (u32, u64)>,
}

impl Gap {
    fn holds(&self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Between(after, before) => {
                after.as_ref().is_none_or(|after| after < key)
                    && before.as_ref().is_none_or(|before| key < before)
            }
        }
    }
}

/// Whether a client can know the collection exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Blur {
    #[default]
    None,
    /// It got something garbled, first at this version.
    Open(u64),
    /// It got a list since, of this epoch and version.
    Until(u32, u64),
}

impl Truth {
    /// A collection that begins empty, at a version.
    pub(crate) fn new(kind: Kind, version: u64, log: &Arc<Log>) -> Arc<Self> {
        let known = Known { history: History::new(version), clients: Vec::new(), reserved: 0 };
        let origin = Arc::new(Origin::new(kind));
        Arc::new(Self { known: Mutex::new(known), log: Arc::clone(log), origin, lent: Mutex::default() })
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Held for one look or one change, never while a server is asked for anything.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permits a write of `versions` versions, unless [`Known::must_wait`] forbids it.
    ///
    /// A server takes its time between a request and its commit, and several clients write at once. Without a
    /// permit that is held until the commit, two writers could both pass the check for the last allowed version.
    pub(crate) fn permit(self: &Arc<Self>, versions: u64) -> Option<WritePermit> {
        let mut known = self.lock();
        if known.must_wait(versions) {
            return None;
        }
        known.reserved += versions;
        Some(WritePermit { truth: Arc::clone(self), versions })
    }

    /// An informer has an origin of its own.
    pub(crate) fn lend(&self, origin: &Arc<Origin>) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(origin));
    }

    /// How many hold on to what objects come from: every object does, and everything that makes some.
    pub(crate) fn holders(&self) -> usize {
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::strong_count(&self.origin) - 1 + lent.iter().map(Weak::strong_count).sum::<usize>()
    }
}

impl Known {
    /// Somebody who knows nothing yet.
    pub(crate) fn new_client(&mut self) -> ClientId {
        self.clients.push(Client::default());
        self.clients.len() - 1
    }

    /// Whether `by` more versions, after those of writes in flight, would hide from a client that the history it knows is no longer the server's.
    /// Nobody could find out then: versions would go on as if nothing had happened.
    pub(crate) fn must_wait(&self, by: u64) -> bool {
        let present = self.clients.iter().filter(|client| !client.gone);
        let mut knows = present.flat_map(|client| client.told.iter().copied().chain(client.listing));
        let reached = self.history.version + self.reserved + by;
        knows.any(|known| self.has_parted(known) && reached >= known.1)
    }

    /// The informer behind a client is no more.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.clients[client].gone = true;
    }

    /// A client got a garbled change. If that was a repetition it cannot know so: whatever comes next may be hidden.
    pub(crate) fn blurred(&mut self, client: ClientId, version: u64) {
        let epoch = self.history.epoch();
        let Client { blur, told, .. } = &mut self.clients[client];
        let next = told.iter().filter(|told| told.0 == epoch).map(|told| told.1 + 1).max().unwrap_or(0);
        if !matches!(blur, Blur::Open(_)) {
            *blur = Blur::Open(version.max(next));
        }
    }

    pub(crate) fn blur(&self, client: ClientId) -> Blur {
        self.clients[client].blur
    }

    /// A client shows the list that it got after something garbled.
    pub(crate) fn focus(&mut self, client: ClientId) {
        self.clients[client].blur = Blur::None;
    }

    /// A client cannot read an item of the list that is on its way.
    pub(crate) fn cannot_read(&mut self, client: ClientId, gap: Gap) {
        self.clients[client].missing.push(gap);
    }

    /// A client begins to list.
    pub(crate) fn begins_to_list(&mut self, client: ClientId) {
        self.clients[client].missing.clear();
    }

    /// Whether a cache that shows `state` may have another state of an object, because the client could not read
    /// what lists said about it, and no watch has shown the object since.
    pub(crate) fn is_veiled(&self, client: ClientId, key: &ObjectKey, state: (u32, u64)) -> bool {
        let veil = self.clients[client].veil.as_ref();
        veil.is_some_and(|veil| {
            veil.gaps.iter().any(|gap| gap.holds(key))
                && veil.watched.get(key).is_none_or(|watched| state < *watched)
        })
    }

    /// A watch shows a change of an object to a client. A change that the list has seen is a repetition: the client
    /// does not apply it.
    pub(crate) fn watched(&mut self, client: ClientId, key: &ObjectKey, state: (u32, u64)) {
        if let Some(veil) = self.clients[client].veil.as_mut().filter(|veil| state > veil.since) {
            veil.watched.insert(key.clone(), state);
        }
    }

    /// A client shows a state exactly.
    pub(crate) fn shows(&mut self, client: ClientId, state: (u32, u64)) {
        let veil = &mut self.clients[client].veil;
        if veil.as_ref().is_some_and(|veil| state >= veil.since) {
            *veil = None;
        }
    }

    /// A list is on its way to a client, or no longer.
    pub(crate) fn listing(&mut self, client: ClientId, shown: Option<(u32, u64)>) {
        self.clients[client].listing = shown;
    }

    /// What the list that is on its way to a client shows.
    pub(crate) fn on_its_way(&self, client: ClientId) -> Option<(u32, u64)> {
        self.clients[client].listing
    }

    /// A client got a whole list. It has taken the list when it asks for changes after it.
    pub(crate) fn listed(&mut self, client: ClientId, epoch: u32, version: u64) {
        let client = &mut self.clients[client];
        if !client.told.contains(&(epoch, version)) {
            client.told.push((epoch, version));
        }
        client.listing = None;
        if !client.missing.is_empty() {
            let empty = || Veil { since: (epoch, version), gaps: Vec::new(), watched: BTreeMap::new() };
            let veil = client.veil.get_or_insert_with(empty);
            veil.since = (epoch, version);
            veil.watched.retain(|key, _| !client.missing.iter().any(|gap| gap.holds(key)));
            veil.gaps.append(&mut client.missing);
        }
        if client.blur != Blur::None {
            client.blur = Blur::Until(epoch, version);
        }
    }

    /// A watch brings a client everything up to a version. Returns whether the client may be there now.
    ///
    /// A repetition takes nothing back. After a restore, a version before the one that the client knows looks like a
    /// repetition: it does not tell the client that the history is another one. Only a list does.
    pub(crate) fn told(&mut self, client: ClientId, epoch: u32, version: u64) -> bool {
        let repeats = |&told: &(u32, u64)| match told.0 == epoch {
            true => version <= told.1,
            false => version < told.1 && self.has_parted(told),
        };
        let news = !self.clients[client].told.iter().any(repeats);
        if news {
            self.clients[client].told.push((epoch, version));
        }
        news
    }

    /// A client reads on after it got this: it has taken it.
    pub(crate) fn took(&mut self, client: ClientId, state: (u32, u64)) {
        let told = &mut self.clients[client].told;
        if told.contains(&state) {
            *told = vec![state];
        }
    }

    /// A client asks for changes after a version: that is where it is.
    pub(crate) fn asks_from(&mut self, client: ClientId, version: u64) {
        let told = &mut self.clients[client].told;
        if told.iter().any(|told| told.1 == version) {
            told.retain(|told| told.1 == version);
        }
    }

    /// Whether the server went back behind a version since an epoch.
    fn has_parted(&self, (epoch, version): (u32, u64)) -> bool {
        (epoch + 1..=self.history.epoch()).any(|later| self.history.beginning(later) < version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client knows version 103; the collection is restored to 101, so that version 102 is the last that may be
    /// written before the client looks again.
    fn restored() -> (Arc<Truth>, ClientId) {
        let truth = Truth::new(Kind::namespaced("", "v1", "Thing", "things"), 100, &Arc::new(Log::new(None)));
        let mut known = truth.lock();
        known.history.reach(103);
        let client = known.new_client();
        known.told(client, 0, 103);
        assert!(known.history.restore(101));
        drop(known);
        (truth, client)
    }

    #[tokio::test]
    async fn writes_in_flight_count_as_written() {
        let (truth, _) = restored();
        let first = truth.permit(1);
        assert!(first.is_some());
        assert!(truth.permit(1).is_none(), "both together would reach what the client knows");
        drop(first);
        assert!(truth.permit(1).is_some(), "the first one was refused and wrote nothing");
        truth.lock().history.reach(102);
        assert!(truth.permit(1).is_none());
    }

    #[tokio::test]
    async fn a_malformed_item_hides_an_object_until_a_watch_shows_it() {
        let (truth, client) = restored();
        let key = ObjectKey::namespaced("a", "x");
        let mut known = truth.lock();
        known.cannot_read(client, Gap::One(key.clone()));
        known.listed(client, 1, 105);
        known.watched(client, &key, (1, 104));
        assert!(known.is_veiled(client, &key, (1, 107)), "a repetition shows nothing");
        known.watched(client, &key, (1, 106));
        assert!(known.is_veiled(client, &key, (1, 105)), "the cache does not show the change yet");
        assert!(!known.is_veiled(client, &key, (1, 107)));
        known.cannot_read(client, Gap::One(key.clone()));
        known.listed(client, 1, 108);
        assert!(known.is_veiled(client, &key, (1, 108)), "hidden by the next list");
    }

    #[tokio::test]
    async fn a_watch_of_an_older_version_tells_no_other_history() {
        let (truth, client) = restored();
        truth.lock().told(client, 1, 101);
        assert!(truth.permit(2).is_none(), "the client may take it for a repetition");
        truth.lock().listed(client, 1, 101);
        assert!(truth.permit(2).is_none(), "the client may have dropped the list");
        truth.lock().asks_from(client, 101);
        assert!(truth.permit(2).is_some());
    }

    #[tokio::test]
    async fn a_client_may_be_anywhere_after_what_it_took() {
        let (truth, client) = restored();
        let mut known = truth.lock();
        known.history.reach(105);
        known.listed(client, 1, 102);
        known.asks_from(client, 102);
        assert!(known.told(client, 1, 104) && known.told(client, 1, 105));
        assert!(!known.told(client, 1, 103), "a repetition");
        assert!(known.history.restore(103));
        assert!(known.must_wait(1), "the client may have dropped the last event");
        known.took(client, (1, 105));
        assert!(!known.must_wait(1) && known.must_wait(2));
    }
}
