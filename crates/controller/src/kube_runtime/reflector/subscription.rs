//! Streams of the objects that are written to a store.

use super::Store;
use futures_util::Stream;
use kube::Resource;
use kube_informer::ObjectKey;
use kube_informer_wire::sync::lock;
use serde::de::DeserializeOwned;
use std::{
    collections::{HashSet, VecDeque},
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, Weak},
    task::{Context, Poll, Waker},
};

/// The subscriptions to a store.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<Vec<Weak<Mutex<Pending>>>>);

/// The keys that a subscriber has not received yet. Bounded by the number of objects: a key is pending once.
#[derive(Debug, Default)]
struct Pending {
    keys: VecDeque<ObjectKey>,
    /// The keys in `keys`.
    queued: HashSet<ObjectKey>,
    closed: bool,
    waker: Option<Waker>,
}

impl Pending {
    fn add(&mut self, key: &ObjectKey) {
        if self.queued.insert(key.clone()) {
            self.keys.push_back(key.clone());
        }
    }

    fn next(&mut self) -> Option<ObjectKey> {
        let key = self.keys.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }
}

impl Subscriptions {
    /// Adds keys to all subscriptions.
    pub(super) fn notify<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey> + Clone) {
        self.for_each(|pending| keys.clone().for_each(|key| pending.add(key)));
    }

    /// Ends all subscriptions.
    pub(super) fn close(&self) {
        self.for_each(|pending| pending.closed = true);
    }

    fn for_each(&self, mut change: impl FnMut(&mut Pending)) {
        let mut wakers = Vec::new();
        lock(&self.0).retain(|subscription| {
            let Some(subscription) = subscription.upgrade() else { return false };
            let mut pending = lock(&subscription);
            change(&mut pending);
            wakers.extend(pending.waker.take());
            true
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    fn add(&self, pending: Pending) -> Arc<Mutex<Pending>> {
        let pending = Arc::new(Mutex::new(pending));
        lock(&self.0).push(Arc::downgrade(&pending));
        pending
    }
}

/// A stream of the objects that are written to a [shared](super::store_shared) store.
///
/// An object that changes several times before it is received is received once, in its newest state, and not at all if it was
/// deleted. So a slow subscriber neither stops the others nor needs a buffer.
pub struct ReflectHandle<K: Resource> {
    reader: Store<K>,
    subscriptions: Arc<Subscriptions>,
    pending: Arc<Mutex<Pending>>,
}

impl<K: Resource> ReflectHandle<K> {
    pub(super) fn new(reader: Store<K>, subscriptions: &Arc<Subscriptions>) -> Self {
        let pending = subscriptions.add(Pending::default());
        Self { reader, subscriptions: Arc::clone(subscriptions), pending }
    }

    /// The store.
    #[must_use]
    pub fn reader(&self) -> Store<K> {
        self.reader.clone()
    }
}

impl<K: Resource> Clone for ReflectHandle<K> {
    /// Another subscription, which receives the objects that this one has not received yet.
    fn clone(&self) -> Self {
        let pending = lock(&self.pending);
        let (keys, queued, closed) = (pending.keys.clone(), pending.queued.clone(), pending.closed);
        drop(pending);
        let pending = self.subscriptions.add(Pending { keys, queued, closed, waker: None });
        Self { reader: self.reader.clone(), subscriptions: Arc::clone(&self.subscriptions), pending }
    }
}

impl<K> Stream for ReflectHandle<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    type Item = Arc<K>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Arc<K>>> {
        loop {
            let key = {
                let mut pending = lock(&self.pending);
                match pending.next() {
                    Some(key) => key,
                    None if pending.closed => return Poll::Ready(None),
                    None => {
                        pending.waker = Some(context.waker().clone());
                        return Poll::Pending;
                    }
                }
            };
            if let Some(object) = self.reader.get_key(&key) {
                return Poll::Ready(Some(object));
            }
        }
    }
}

impl<K: Resource> fmt::Debug for ReflectHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReflectHandle({} pending)", lock(&self.pending).keys.len())
    }
}
