//! Connection slots: how many connections are open, and which of them is closed to make room for a new one.

use kube_informer_wire::sync::lock;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::limits::ServerLimits;

/// The connection slots of a server.
///
/// 1. At most `connections` connections are open.
/// 2. At most `unauthenticated_connections` of them have never presented a valid credential.
/// 3. A new connection never waits for an unauthenticated one: where only such a connection is in the way, the oldest that already
///    received a response is closed, otherwise the oldest of the address with the most of them. Connections that hold a slot without a credential therefore cannot keep others out.
/// 4. An authenticated connection is never closed to make room.
#[derive(Debug)]
pub(super) struct Slots {
    connections: usize,
    unauthenticated: usize,
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
    without_response: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
    /// Unauthenticated connections that received a response (a probe or a 401), oldest first.
    with_response: BTreeMap<u64, Arc<Notify>>,
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
    pub(super) fn new(limits: &ServerLimits) -> Arc<Self> {
        let connections = limits.connections.max(1);
        Arc::new(Self {
            connections,
            unauthenticated: limits.unauthenticated_connections.clamp(1, connections.div_ceil(2)),
            state: Mutex::default(),
            released: Notify::new(),
        })
    }

    /// Waits until [`take`](Self::take) keeps the limits. For one task at a time.
    pub(super) async fn available(&self) {
        while !self.lock().has_room(self.connections) {
            self.released.notified().await;
        }
    }

    /// Takes a slot for a new connection, and evicts an unauthenticated connection if the limits require it.
    pub(super) fn take(self: &Arc<Self>, authenticated: bool, peer: IpAddr) -> Slot {
        let mut state = self.lock();
        let at_share = !authenticated && state.unauthenticated() >= self.unauthenticated;
        if at_share || state.open >= self.connections {
            state.evict();
        }
        state.open += 1;
        state.last_id += 1;
        let (id, evicted) = (state.last_id, Arc::new(Notify::new()));
        if !authenticated {
            state.without_response.insert(id, (peer, Arc::clone(&evicted)));
        }
        drop(state);
        Slot { slots: Arc::clone(self), id, authenticated: AtomicBool::new(authenticated), evicted }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn unauthenticated(&self) -> usize {
        self.without_response.len() + self.with_response.len()
    }

    fn has_room(&self, connections: usize) -> bool {
        self.open < connections || self.unauthenticated() > 0
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
        for (peer, _) in self.without_response.values() {
            *counts.entry(*peer).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let (id, _) = self.without_response.iter().find(|(_, (peer, _))| counts[peer] == most)?;
        let id = *id;
        self.without_response.remove(&id).map(|(_, evicted)| evicted)
    }

    /// Whether the connection was unauthenticated and not evicted.
    fn remove_unauthenticated(&mut self, id: u64) -> bool {
        self.without_response.remove(&id).is_some() || self.with_response.remove(&id).is_some()
    }
}

impl Slot {
    /// Notes that the client presented a valid credential: the connection can no longer be evicted.
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
        if let Some((_, evicted)) = state.without_response.remove(&self.id) {
            state.with_response.insert(self.id, evicted);
        }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
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
        Slots::new(&ServerLimits {
            connections,
            unauthenticated_connections: unauthenticated,
            ..ServerLimits::default()
        })
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.evicted().now_or_never().is_some()
    }

    #[test]
    fn unauthenticated_connections_share_their_part_and_the_oldest_served_one_makes_room() {
        let slots = slots(10, 3);
        let [oldest, served, newest] = [(); 3].map(|()| slots.take(false, PEER));
        served.responded();
        let first = slots.take(false, PEER);
        assert!(is_evicted(&served) && !is_evicted(&oldest));
        let second = slots.take(false, PEER);
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
        let client = slots.take(false, IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));
        let flood: Vec<Slot> = (0..1000).map(|_| slots.take(false, PEER)).collect();
        assert!(!is_evicted(&client), "it is still in its TLS handshake");
        assert_eq!(flood.iter().filter(|slot| !is_evicted(slot)).count(), 9);
    }

    #[test]
    fn authenticated_connections_take_all_slots_and_are_never_evicted() {
        let slots = slots(3, 1);
        let held: Vec<Slot> = (0..3)
            .map(|_| {
                let slot = slots.take(false, PEER);
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
        let late = slots.take(false, PEER);
        let _next = slots.take(false, PEER);
        late.authenticate();
        assert!(!late.is_authenticated());
        drop(late);
        assert_eq!(slots.lock().open, 1);
    }
}
