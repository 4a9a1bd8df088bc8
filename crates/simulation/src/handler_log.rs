//! A log of the events of one handler, which checks each of them.

use crate::{
    history::{History, View, Write},
    restarts::Persistence,
    selection::Selection,
    truth::Truth,
};
use kube_informer::{Deleted, Event, EventHandler, Lister, Object, ObjectKey, on_event};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard},
};

/// The events that one handler received. It checks these promises:
///
/// 1. An add is for an object that the handler does not have; updates and deletes are for objects that it has.
/// 2. The old object of an update is the last state that the handler received, and has the same uid as the new one.
/// 3. For each object, states never go back, unless the collection was restored.
/// 4. When the handler is called, the store has that state or a newer one, and no longer has a deleted uid.
/// 5. A delete is for an object that was deleted, or left the selector of the informer.
/// 6. A removed or stopped handler receives nothing.
#[derive(Clone)]
pub(crate) struct HandlerLog {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// The name as a number, for the hash of the trace.
    number: u64,
    truth: Arc<Truth>,
    lister: Lister<Value>,
    accept: Accept,
    /// Whether resyncs may repeat a state.
    resync: bool,
    /// Content of restored objects may be lost, which repeats a state, too.
    persistence: Option<Persistence>,
    view: View,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    received: BTreeMap<ObjectKey, Received>,
    calls: u64,
    closed: bool,
}

/// The numbers of a call in the trace.
struct Call {
    /// The write that the old object of an update shows; 1 for a delete with an unknown final state.
    before: u64,
    write: Arc<Write>,
}

/// The last event of an object.
struct Received {
    n: u64,
    present: bool,
    /// The handler knows this epoch or a later one.
    epoch: u32,
}

/// The objects that a handler receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    All,
    /// Those with the label of this color.
    Color(u64),
}

impl Accept {
    pub(crate) fn write(self, write: &Write) -> bool {
        match self {
            Self::All => true,
            Self::Color(color) => !write.invalid && write.color == color,
        }
    }
}

impl Shared {
    /// Whether a state may be repeated.
    fn may_repeat(&self) -> bool {
        self.resync || self.persistence.as_ref().is_some_and(Persistence::may_lose_content)
    }
}

impl HandlerLog {
    pub(crate) fn new(
        name: String,
        truth: Arc<Truth>,
        lister: Lister<Value>,
        accept: Accept,
        resync: bool,
        view: View,
        persistence: Option<Persistence>,
    ) -> Self {
        let state = Mutex::new(State::default());
        let number = name.bytes().fold(0, |number: u64, byte| number.wrapping_mul(257) + u64::from(byte));
        Self {
            shared: Arc::new(Shared {
                name,
                number,
                truth,
                lister,
                accept,
                resync,
                persistence,
                view,
                state,
            }),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Makes every later event a failure.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// Whether a handler still holds a clone of this log.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// The number of events received.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// A handler that records each event.
    pub(crate) fn handler(&self) -> impl EventHandler<Value> + use<> {
        let log = self.clone();
        on_event(move |event| log.record(event))
    }

    pub(crate) fn record(&self, event: &Event<Value>) {
        match event {
            Event::Added { object, .. } => self.added(object),
            Event::Updated { old, new } => self.updated(old, new),
            Event::Deleted(deleted) => self.deleted(deleted),
        }
    }

    fn added(&self, object: &Object<Value>) {
        self.check("add", |history, state| {
            let before = state.received.get(object.key());
            if before.is_some_and(|last| last.present) {
                return Err("the handler already has it".into());
            }
            let (write, epoch) = self.check_follows(history, before, object)?;
            self.check_in_store(history, write)?;
            state.received.insert(write.key.clone(), Received { n: write.n, present: true, epoch });
            Ok(Call { before: 0, write: Arc::clone(write) })
        });
    }

    fn updated(&self, old: &Object<Value>, new: &Object<Value>) {
        self.check("update", |history, state| {
            let last = state.present(new.key())?;
            let (to, epoch) = self.check_follows(history, Some(last), new)?;
            let mut from = history.candidates(old, self.shared.view);
            let from = from.find(|from| from.n == last.n).ok_or_else(|| {
                let from = history.find(old, self.shared.view).map_or(0, |from| from.n);
                format!("{}: the old object is n={from}, the last event was n={}", to.key, last.n)
            })?;
            if from.uid != to.uid {
                return Err(format!("{}: n={} and n={} have different uids", to.key, from.n, to.n));
            }
            if from.n == to.n && !self.shared.may_repeat() {
                return Err(format!("{}: n={} repeated without a resync", to.key, to.n));
            }
            (last.n, last.epoch) = (to.n, epoch);
            self.check_in_store(history, to)?;
            Ok(Call { before: from.n, write: Arc::clone(to) })
        });
    }

    fn deleted(&self, deleted: &Deleted<Value>) {
        self.check("delete", |history, state| {
            let last = state.present(deleted.key())?;
            let (write, epoch) = self.check_follows(history, Some(last), deleted.object())?;
            let previous = history.write(last.n).ok_or("the model does not have the last event")?;
            if previous.uid != write.uid {
                return Err(format!("{}: another uid than n={}", write.key, last.n));
            }
            let selection = self.shared.view.selection;
            let removed = write.deleted || !selection.selects(write);
            if !deleted.is_final_state_unknown() && !removed && self.shared.accept == Accept::All {
                return Err(format!("{}: n={} is not a delete", write.key, write.n));
            }
            let unfounded = history.epoch() == 0 && !history.was_removed_after(&write.key, last.n, selection);
            if unfounded && self.shared.accept == Accept::All {
                return Err(format!("{}: it was not deleted after n={}", write.key, last.n));
            }
            *last = Received { n: write.n, present: false, epoch };
            self.check_not_in_store(history, write)?;
            Ok(Call { before: u64::from(deleted.is_final_state_unknown()), write: Arc::clone(write) })
        });
    }

    /// Checks that the store has a state or a newer one.
    fn check_in_store(&self, history: &History, write: &Write) -> Result<(), String> {
        let Some(object) = self.shared.lister.get(&write.key) else { return Ok(()) };
        let stored =
            history.find(&object, self.shared.view).ok_or("the store has a state that was never written")?;
        let follows = history.may_follow(write.n, stored.n, 0).is_some();
        follows
            .then_some(())
            .ok_or_else(|| format!("the store still has n={} instead of n={}", stored.n, write.n))
    }

    /// Checks that the store no longer has a deleted uid. A restored collection may have it again, and so may a selector
    /// which the object matches again.
    fn check_not_in_store(&self, history: &History, last: &Write) -> Result<(), String> {
        let stored = self.shared.lister.get(&last.key);
        let selects_all = self.shared.view.selection == Selection::Everything;
        let still = stored.is_some_and(|object| {
            let selected_again = || history.find(&object, self.shared.view).is_some_and(|now| now.n > last.n);
            object.uid() == last.uid && (selects_all || !selected_again())
        }) && history.epoch() == 0;
        (self.shared.accept != Accept::All || !still)
            .then_some(())
            .ok_or_else(|| "the store still has it".to_owned())
    }

    fn check(&self, event: &str, check: impl FnOnce(&History, &mut State) -> Result<Call, String>) {
        let Shared { name, number, truth, .. } = &*self.shared;
        let locked = truth.lock();
        let mut state = self.lock();
        state.calls += 1;
        let result = if state.closed {
            Err("received after the end".into())
        } else {
            check(&locked.history, &mut state)
        };
        match result {
            Ok(Call { before, write }) => {
                let text = format_args!("{name} {event} {} n={before}>{}", write.key, write.n);
                truth.log.record_call(*number, event, [before, write.n], text);
            }
            Err(why) => truth.log.fail(format_args!("{name} {event}: {why}")),
        }
    }

    /// Checks that the events add up to the content of a cache: these writes, in the order of their keys.
    pub(crate) fn compare(&self, cached: &[Arc<Write>]) -> Result<(), String> {
        let state = self.lock();
        let mut received = state.received.iter().filter(|(_, last)| last.present);
        let mut expected = cached.iter().filter(|write| self.shared.accept.write(write));
        let same = loop {
            match (received.next(), expected.next()) {
                (None, None) => break true,
                (Some((key, last)), Some(write)) if *key == write.key => {
                    if last.n != write.n && !self.is_indistinguishable(last.n, write) {
                        break false;
                    }
                }
                _ => break false,
            }
        };
        if same {
            return Ok(());
        }
        let expected = cached.iter().filter(|write| self.shared.accept.write(write));
        let expected = expected.map(|write| (write.key.clone(), write.n)).collect();
        let present = state.received.iter().filter(|(_, last)| last.present);
        let received = present.map(|(key, last)| (key.clone(), last.n)).collect();
        Err(format!(
            "{}: the handler has {}, the cache {}",
            self.shared.name,
            show(&received),
            show(&expected)
        ))
    }

    /// Whether two writes of different epochs cannot be distinguished: they have the same content, or the transform
    /// removes the content of both.
    fn is_indistinguishable(&self, n: u64, other: &Write) -> bool {
        let transform = self.shared.view.transform;
        let truth = self.shared.truth.lock();
        let write = truth.history.write(n).map(Arc::as_ref);
        write.is_some_and(|write| {
            (write.uid, write.version) == (other.uid, other.version)
                && (write.stamp == other.stamp || [write, other].iter().all(|write| transform.hides(write)))
        })
    }

    /// The write that an object shows, and the epoch that the handler knows after it. An error if the write may not
    /// follow the last event.
    fn check_follows<'a>(
        &self,
        history: &'a History,
        before: Option<&Received>,
        object: &'a Object<Value>,
    ) -> Result<(&'a Arc<Write>, u32), String> {
        let floor = before.map_or(0, |last| last.epoch);
        let fits = |write: &'a Arc<Write>| {
            let seen = before.map_or(write.n, |last| last.n);
            Some((write, history.may_follow(seen, write.n, floor)?))
        };
        // Of several candidates, the one that proves the oldest epoch is assumed.
        let follows =
            history.candidates(object, self.shared.view).filter_map(fits).min_by_key(|(_, epoch)| *epoch);
        follows.ok_or_else(|| match history.find(object, self.shared.view) {
            Some(write) => {
                let seen = before.map_or(0, |last| last.n);
                format!("{}: n={} after n={seen}, epoch {floor}", write.key, write.n)
            }
            None => {
                format!("{} at {}: a state that was never written", object.key(), object.resource_version())
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }
}

impl State {
    fn present(&mut self, key: &ObjectKey) -> Result<&mut Received, String> {
        let last = self.received.get_mut(key).filter(|last| last.present);
        last.ok_or_else(|| "the handler does not have it".to_owned())
    }
}

/// Formats a map as `[key=value key=value]`.
pub(crate) fn show<K: Display, V: Display>(map: &BTreeMap<K, V>) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("[{}]", pairs.join(" "))
}
