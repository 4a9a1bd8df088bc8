//! What one handler was told, checked call by call.

use crate::{
    history::{History, Written},
    subject::TransformKind,
    truth::Truth,
};
use kube_informer::{Deleted, Event, EventHandler, Lister, Object, ObjectKey};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What one handler was told, and whether it may have been.
///
/// 1. Adds only for objects it does not have, updates and deletes only for those it has.
/// 2. An update starts from the state it was told last, and stays with one uid.
/// 3. For each object, what it is told never goes back, unless the collection itself did.
/// 4. When it is told, the store already shows that state or a later one; and no longer the uid that is gone.
/// 5. It is told of the end of an object only if the object has ended.
/// 6. After its end it is told nothing.
#[derive(Clone)]
pub(crate) struct Tape {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// Stands for the name.
    number: u64,
    truth: Arc<Truth>,
    lister: Lister<Value>,
    accept: Accept,
    /// Whether the handler may be told of a state once more.
    resync: bool,
    transform: TransformKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    told: BTreeMap<ObjectKey, Told>,
    calls: u64,
    ended: bool,
}

/// What a handler was told now, and what it had been told before.
struct Call {
    before: u64,
    now: Arc<Written>,
}

/// What was said last about an object.
struct Told {
    n: u64,
    present: bool,
    /// The epoch that is known since, at least.
    epoch: u32,
}

/// Which objects a handler is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    All,
    /// Those with the label of this color.
    Color(u64),
}

impl Accept {
    pub(crate) fn write(self, write: &Written) -> bool {
        match self {
            Self::All => true,
            Self::Color(color) => !write.odd && write.color == color,
        }
    }
}

impl Tape {
    pub(crate) fn new(
        name: String,
        truth: Arc<Truth>,
        lister: Lister<Value>,
        accept: Accept,
        resync: bool,
        transform: TransformKind,
    ) -> Self {
        let state = Mutex::new(State::default());
        let number = name.bytes().fold(0, |number: u64, byte| number.wrapping_mul(257) + u64::from(byte));
        Self { shared: Arc::new(Shared { name, number, truth, lister, accept, resync, transform, state }) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// From now on nothing may be told.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    /// Whether anybody else holds on to it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// How often it was told something.
    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    pub(crate) fn take(&self, event: &Event<Value>) {
        match event {
            Event::Added { object, .. } => self.added(object),
            Event::Updated { old, new } => self.updated(old, new),
            Event::Deleted(deleted) => self.deleted(deleted),
        }
    }

    fn added(&self, object: &Object<Value>) {
        self.judge("add", |history, state| {
            let before = state.told.get(object.key());
            if before.is_some_and(|told| told.present) {
                return Err("the handler has it already".into());
            }
            let (write, epoch) = self.follow(history, before, object)?;
            self.in_store(history, write)?;
            state.told.insert(write.key.clone(), Told { n: write.n, present: true, epoch });
            Ok(Call { before: 0, now: Arc::clone(write) })
        });
    }

    fn updated(&self, old: &Object<Value>, new: &Object<Value>) {
        self.judge("update", |history, state| {
            let told = state
                .told
                .get_mut(new.key())
                .filter(|told| told.present)
                .ok_or("the handler does not have it")?;
            let (to, epoch) = self.follow(history, Some(told), new)?;
            let mut from = history.candidates(old, self.shared.transform);
            let from = from.find(|from| from.n == told.n).ok_or_else(|| {
                let from = history.find(old, self.shared.transform).map_or(0, |from| from.n);
                format!("{}: from n={from}, but it was told n={}", to.key, told.n)
            })?;
            if from.uid != to.uid {
                return Err(format!("{}: the uid changes from n={} to n={}", to.key, from.n, to.n));
            }
            if from.n == to.n && !self.shared.resync {
                return Err(format!("{}: n={} once more without a resync", to.key, to.n));
            }
            (told.n, told.epoch) = (to.n, epoch);
            self.in_store(history, to)?;
            Ok(Call { before: from.n, now: Arc::clone(to) })
        });
    }

    fn deleted(&self, deleted: &Deleted<Value>) {
        self.judge("delete", |history, state| {
            let told = state
                .told
                .get_mut(deleted.key())
                .filter(|told| told.present)
                .ok_or("the handler does not have it")?;
            let (last, epoch) = self.follow(history, Some(told), deleted.object())?;
            let known = history.write(told.n).ok_or("the model does not know it")?;
            if known.uid != last.uid {
                return Err(format!("{}: another uid than that of n={}", last.key, told.n));
            }
            if !deleted.is_final_state_unknown() && !last.gone && self.shared.accept == Accept::All {
                return Err(format!("{}: n={} is not a deletion", last.key, last.n));
            }
            let unfounded = history.epoch() == 0 && !history.was_deleted_after(&last.key, told.n);
            if unfounded && self.shared.accept == Accept::All {
                return Err(format!("{}: it was not deleted after n={}", last.key, told.n));
            }
            *told = Told { n: last.n, present: false, epoch };
            self.out_of_store(history, last)?;
            Ok(Call { before: u64::from(deleted.is_final_state_unknown()), now: Arc::clone(last) })
        });
    }

    /// The store shows a state or a later one.
    fn in_store(&self, history: &History, write: &Written) -> Result<(), String> {
        let Some(object) = self.shared.lister.get(&write.key) else { return Ok(()) };
        let stored =
            history.find(&object, self.shared.transform).ok_or("the store shows a state that never was")?;
        let follows = history.may_follow(write.n, stored.n, 0).is_some();
        follows
            .then_some(())
            .ok_or_else(|| format!("the store still shows n={} instead of n={}", stored.n, write.n))
    }

    /// The store no longer shows the uid that is gone. A restored collection may bring it back.
    fn out_of_store(&self, history: &History, last: &Written) -> Result<(), String> {
        let stored = self.shared.lister.get(&last.key);
        let still = stored.is_some_and(|object| object.uid() == last.uid) && history.epoch() == 0;
        (self.shared.accept != Accept::All || !still)
            .then_some(())
            .ok_or_else(|| "the store still has it".to_owned())
    }

    fn judge(&self, what: &str, check: impl FnOnce(&History, &mut State) -> Result<Call, String>) {
        let Shared { name, number, truth, .. } = &*self.shared;
        let known = truth.lock();
        let mut state = self.lock();
        state.calls += 1;
        let verdict = if state.ended {
            Err("it was told after its end".into())
        } else {
            check(&known.history, &mut state)
        };
        match verdict {
            Ok(Call { before, now }) => {
                let words = format_args!("{name} {what} {} n={before}>{}", now.key, now.n);
                truth.log.call(*number, what, [before, now.n], words);
            }
            Err(why) => truth.log.fail(format_args!("{name} {what}: {why}")),
        }
    }

    /// What it was told adds up to what a cache shows: these writes, in the order of their keys.
    pub(crate) fn compare(&self, shown: &[Arc<Written>]) -> Result<(), String> {
        let state = self.lock();
        let mut told = state.told.iter().filter(|(_, told)| told.present);
        let mut expected = shown.iter().filter(|write| self.shared.accept.write(write));
        let same = loop {
            match (told.next(), expected.next()) {
                (None, None) => break true,
                (Some((key, told)), Some(write)) if *key == write.key => {
                    if told.n != write.n && !self.is_twin(told.n, write) {
                        break false;
                    }
                }
                _ => break false,
            }
        };
        if same {
            return Ok(());
        }
        let expected = shown.iter().filter(|write| self.shared.accept.write(write));
        let expected = expected.map(|write| (write.key.clone(), write.n)).collect();
        let present = state.told.iter().filter(|(_, told)| told.present);
        let told = present.map(|(key, told)| (key.clone(), told.n)).collect();
        Err(format!("{} adds up to {} but the cache is {}", self.shared.name, show(&told), show(&expected)))
    }

    /// Whether two writes of different epochs cannot be told apart, because of what they say or because what they said
    /// is lost.
    fn is_twin(&self, n: u64, other: &Written) -> bool {
        let transform = self.shared.transform;
        let known = self.shared.truth.lock();
        let write = known.history.write(n).map(Arc::as_ref);
        write.is_some_and(|write| {
            (write.uid, write.version) == (other.uid, other.version)
                && (write.stamp == other.stamp || [write, other].iter().all(|write| transform.hides(write)))
        })
    }

    /// The write that an object shows, and the epoch that is known after it, if it may follow what was told before.
    fn follow<'a>(
        &self,
        history: &'a History,
        before: Option<&Told>,
        object: &'a Object<Value>,
    ) -> Result<(&'a Arc<Written>, u32), String> {
        let floor = before.map_or(0, |told| told.epoch);
        let fits = |write: &'a Arc<Written>| {
            let seen = before.map_or(write.n, |told| told.n);
            Some((write, history.may_follow(seen, write.n, floor)?))
        };
        // Of several that look the same it is the one that says least.
        let follows = history
            .candidates(object, self.shared.transform)
            .filter_map(fits)
            .min_by_key(|(_, epoch)| *epoch);
        follows.ok_or_else(|| match history.find(object, self.shared.transform) {
            Some(write) => {
                let seen = before.map_or(0, |told| told.n);
                format!("{}: n={} after n={seen}, epoch {floor}", write.key, write.n)
            }
            None => format!("{} at {}: a state that never was", object.key(), object.resource_version()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A few of them.
pub(crate) fn show<K: Display, V: Display>(map: &BTreeMap<K, V>) -> String {
    let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("[{}]", pairs.join(" "))
}

impl EventHandler<Value> for Tape {
    fn on_add(&mut self, object: &Object<Value>, _initial: bool) {
        self.added(object);
    }

    fn on_update(&mut self, old: &Object<Value>, new: &Object<Value>) {
        self.updated(old, new);
    }

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        self.deleted(deleted);
    }
}
