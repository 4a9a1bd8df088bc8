//! Connection slots: how many connections are open, and which of them is closed to make room for a new one.

use kube_informer_wire::sync::lock;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::limits::ServerLimits;

/// The connection slots of a server.
///
/// A connection is authenticated once it has sent a request with access: with a valid credential, if the server requires one.
///
/// 1. At most `connections` connections are open.
/// 2. If credentials are required, at most `unauthenticated_connections` of them have never presented a valid one.
/// 3. A new connection never waits for an unauthenticated one: where only such a connection is in the way, the oldest that already
///    received a response is closed, otherwise the oldest of the address with the most of them. Connections that hold a slot without a
///    credential therefore cannot keep others out. If no credential is required, a connection has the header timeout for its first
///    request before it has to make room.
/// 4. An authenticated connection is never closed to make room.
#[derive(Debug)]
pub(super) struct Slots {
    connections: usize,
    unauthenticated: usize,
    requires_credentials: bool,
    /// The age at which a connection without a request makes room. None if credentials are required: an attacker could wait for it.
    grace: Duration,
    state: Mutex<State>,
    /// Notified when a slot is released.
    released: Notify,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// Slots in use.
    open: usize,
    /// Unauthenticated connections without a response, oldest first.
    without_response: BTreeMap<u64, Waiting>,
    /// Unauthenticated connections that received a response (a probe or a 401), oldest first.
    with_response: BTreeMap<u64, Arc<Notify>>,
}

/// An unauthenticated connection without a response.
#[derive(Debug)]
struct Waiting {
    peer: IpAddr,
    opened: Instant,
    evicted: Arc<Notify>,
}

/// The slot of one connection, released when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    id: u64,
    authenticated: AtomicBool,
    evicted: Arc<Notify>,
}

impl Slots {
    pub(super) fn new(limits: &ServerLimits, requires_credentials: bool) -> Arc<Self> {
        let connections = limits.connections.max(1);
        let share = limits.unauthenticated_connections.clamp(1, connections.div_ceil(2));
        Arc::new(Self {
            connections,
            unauthenticated: if requires_credentials { share } else { connections },
            requires_credentials,
            grace: if requires_credentials { Duration::ZERO } else { limits.header_timeout },
            state: Mutex::default(),
            released: Notify::new(),
        })
    }

    /// Waits until [`take`](Self::take) keeps the limits. For one task at a time.
    pub(super) async fn available(&self) {
        loop {
            let Err(next) = self.lock().room(self.connections, self.grace) else { return };
            match next {
                Some(next) => tokio::select! {
                    () = self.released.notified() => {}
                    () = tokio::time::sleep_until(next) => {}
                },
                None => self.released.notified().await,
            }
        }
    }

    /// Takes a slot for a new connection, and evicts an unauthenticated connection if the limits require it.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Slot {
        let mut state = self.lock();
        if state.unauthenticated() >= self.unauthenticated || state.open >= self.connections {
            state.evict();
        }
        state.open += 1;
        state.last_id += 1;
        let (id, evicted) = (state.last_id, Arc::new(Notify::new()));
        let waiting = Waiting { peer, opened: Instant::now(), evicted: Arc::clone(&evicted) };
        state.without_response.insert(id, waiting);
        drop(state);
        Slot { slots: Arc::clone(self), id, authenticated: AtomicBool::new(false), evicted }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn unauthenticated(&self) -> usize {
        self.without_response.len() + self.with_response.len()
    }

    /// Whether a connection can be taken. Otherwise the time at which the oldest one without a request makes room.
    fn room(&self, connections: usize, grace: Duration) -> Result<(), Option<Instant>> {
        if self.open < connections || !self.with_response.is_empty() {
            return Ok(());
        }
        let oldest = self.without_response.first_key_value().map(|(_, waiting)| waiting.opened);
        match oldest.and_then(|opened| opened.checked_add(grace)) {
            Some(due) if due <= Instant::now() => Ok(()),
            due => Err(due),
        }
    }

    /// Ends the unauthenticated connection that was served longest. Its slot is free from now on.
    fn evict(&mut self) {
        let served = self.with_response.pop_first().map(|(_, evicted)| evicted);
        if let Some(evicted) = served.or_else(|| self.pop_without_response()) {
            evicted.notify_one();
            self.open -= 1;
        }
    }

    /// Removes the oldest connection without a response of the address with the most of them: a flood from one address does not evict
    /// clients of other addresses in the middle of their TLS handshake.
    fn pop_without_response(&mut self) -> Option<Arc<Notify>> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for waiting in self.without_response.values() {
            *counts.entry(waiting.peer).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let (id, _) = self.without_response.iter().find(|(_, waiting)| counts[&waiting.peer] == most)?;
        let id = *id;
        self.without_response.remove(&id).map(|waiting| waiting.evicted)
    }

    /// Whether the connection was unauthenticated and not evicted.
    fn remove_unauthenticated(&mut self, id: u64) -> bool {
        self.without_response.remove(&id).is_some() || self.with_response.remove(&id).is_some()
    }
}

impl Slot {
    /// Notes that the client sent a request with access: the connection can no longer be evicted.
    pub(super) fn authenticate(&self) {
        if self.is_authenticated() {
            return;
        }
        let mut state = self.slots.lock();
        if state.remove_unauthenticated(self.id) {
            self.authenticated.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the client received a response without a credential: the connection is the next to be evicted.
    pub(super) fn responded(&self) {
        if self.is_authenticated() {
            return;
        }
        let mut state = self.slots.lock();
        if let Some(waiting) = state.without_response.remove(&self.id) {
            state.with_response.insert(self.id, waiting.evicted);
        }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Whether the connection has the short lifetime of one without a valid credential.
    pub(super) fn lacks_credential(&self) -> bool {
        self.slots.requires_credentials && !self.is_authenticated()
    }

    /// Completes when the connection has to make room.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.slots.lock();
        if self.is_authenticated() || state.remove_unauthenticated(self.id) {
            state.open -= 1;
        }
        drop(state);
        self.slots.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn slots(connections: usize, unauthenticated: usize) -> Arc<Slots> {
        Slots::new(
            &ServerLimits {
                connections,
                unauthenticated_connections: unauthenticated,
                ..ServerLimits::default()
            },
            true,
        )
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.evicted().now_or_never().is_some()
    }

    #[test]
    fn unauthenticated_connections_share_their_part_and_the_oldest_served_one_makes_room() {
        let slots = slots(10, 3);
        let [oldest, served, newest] = [(); 3].map(|()| slots.take(PEER));
        served.responded();
        let first = slots.take(PEER);
        assert!(is_evicted(&served) && !is_evicted(&oldest));
        let second = slots.take(PEER);
        assert!(is_evicted(&oldest) && !is_evicted(&newest));
        drop((oldest, served));
        let (open, unauthenticated) = {
            let state = slots.lock();
            (state.open, state.unauthenticated())
        };
        assert_eq!((open, unauthenticated), (3, 3), "evicted slots count once");
        drop((first, second, newest));
        assert_eq!(slots.lock().open, 0);
    }

    #[test]
    fn a_flood_from_one_address_evicts_its_own_connections() {
        let slots = slots(100, 10);
        let client = slots.take(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));
        let flood: Vec<Slot> = (0..1000).map(|_| slots.take(PEER)).collect();
        assert!(!is_evicted(&client), "it is still in its TLS handshake");
        assert_eq!(flood.iter().filter(|slot| !is_evicted(slot)).count(), 9);
    }

    #[test]
    fn authenticated_connections_take_all_slots_and_are_never_evicted() {
        let slots = slots(3, 1);
        let held: Vec<Slot> = (0..3)
            .map(|_| {
                let slot = slots.take(PEER);
                slot.authenticate();
                slot
            })
            .collect();
        assert!(slots.available().now_or_never().is_none(), "only a release makes room");
        drop(held.into_iter().next());
        assert!(slots.available().now_or_never().is_some());
    }

    #[test]
    fn an_evicted_connection_cannot_authenticate_any_more() {
        let slots = slots(2, 1);
        let late = slots.take(PEER);
        let _next = slots.take(PEER);
        late.authenticate();
        assert!(!late.is_authenticated());
        drop(late);
        assert_eq!(slots.lock().open, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn without_credentials_connections_without_a_request_make_room_after_the_header_timeout() {
        let limits =
            ServerLimits { connections: 3, unauthenticated_connections: 1, ..ServerLimits::default() };
        let slots = Slots::new(&limits, false);
        let silent: Vec<Slot> = (0..3).map(|_| slots.take(PEER)).collect();
        assert!(silent.iter().all(|slot| !is_evicted(slot) && !slot.lacks_credential()));
        assert!(slots.available().now_or_never().is_none(), "they may be about to send a request");
        silent[0].authenticate();
        slots.available().await;
        let _new = slots.take(PEER);
        assert!(is_evicted(&silent[1]) && !is_evicted(&silent[0]), "the oldest without a request");
    }
}
