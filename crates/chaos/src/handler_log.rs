//! What one handler was told, checked call by call.

use crate::ledger::{Ledger, lock};
use kube_informer::{CacheSnapshot, Deleted, Event, EventHandler, Lister, Object, ObjectKey, Uid, on_event};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::Ordering},
};

/// What one handler was told, and whether it may have been.
///
/// 1. Adds only for objects it does not have, updates and deletes only for those it has.
/// 2. An update starts from the state it was told last, and stays with one uid.
/// 3. For each object, what it is told never goes back; a uid that has gone does not come back.
/// 4. When it is told, the store already shows that state or a later one; and no longer what is gone.
/// 5. After its end it is told nothing.
#[derive(Clone)]
pub(crate) struct HandlerLog {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    ledger: Arc<Ledger>,
    lister: Lister<Value>,
    view: View,
    state: Mutex<State>,
}

/// Which part of the truth a handler sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// Whether objects may leave the view, by a change of their labels, and come back.
    pub(crate) selective: bool,
    /// The handler, not the informer, wants only objects of this color.
    pub(crate) color: Option<&'static str>,
}

impl View {
    pub(crate) fn accepts(&self, object: &Object<Value>) -> bool {
        self.color.is_none_or(|color| object.labels().get("color") == Some(color))
    }
}

#[derive(Default)]
struct State {
    told: HashMap<ObjectKey, Told>,
    ended: bool,
}

/// What was said last about an object.
#[derive(Clone, Copy)]
struct Told {
    uid: Uid,
    version: u64,
    present: bool,
    /// Uids that were replaced by others of this name. Only the last ones: what is noted here must not grow where
    /// memory is looked at.
    retired: [Option<Uid>; 3],
}

impl Told {
    fn of(object: &Object<Value>, before: Option<Self>, present: bool) -> Self {
        let (uid, mut retired) = (object.uid(), before.map(|told| told.retired).unwrap_or_default());
        if let Some(before) = before.filter(|before| before.uid != uid) {
            retired.rotate_right(1);
            retired[0] = Some(before.uid);
        }
        Self { uid, version: number(object), present, retired }
    }
}

fn number(object: &Object<Value>) -> u64 {
    object.resource_version().number().unwrap_or_default()
}

impl HandlerLog {
    pub(crate) fn new(name: String, ledger: Arc<Ledger>, lister: Lister<Value>, view: View) -> Self {
        Self { shared: Arc::new(Shared { name, ledger, lister, view, state: Mutex::default() }) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// From now on nothing may be told.
    pub(crate) fn end(&self) {
        lock(&self.shared.state).ended = true;
    }

    /// A handler that records each call.
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
        self.judge("add", object, |state| {
            let before = state.told.get(object.key()).copied();
            if before.is_some_and(|told| told.present) {
                return Err("the handler has it already".into());
            }
            self.follow(before, object)?;
            state.told.insert(object.key().clone(), Told::of(object, before, true));
            self.in_store(object)
        });
    }

    fn updated(&self, old: &Object<Value>, new: &Object<Value>) {
        self.judge("update", new, |state| {
            let told = state.present(new.key())?;
            if (told.uid, told.version) != (old.uid(), number(old)) {
                return Err(format!("from {}, but it was told {}", number(old), told.version));
            }
            if old.uid() != new.uid() {
                return Err("the uid changes".into());
            }
            self.follow(Some(told), new)?;
            state.told.insert(new.key().clone(), Told::of(new, Some(told), true));
            self.in_store(new)
        });
    }

    fn deleted(&self, deleted: &Deleted<Value>) {
        let last = deleted.object();
        self.judge("delete", last, |state| {
            let told = state.present(deleted.key())?;
            if told.uid != last.uid() {
                return Err("another uid than it was told".into());
            }
            if number(last) < told.version {
                return Err(format!("back from {}", told.version));
            }
            state.told.insert(last.key().clone(), Told::of(last, Some(told), false));
            self.out_of_store(last)
        });
    }

    /// Whether a state may follow what was told before.
    fn follow(&self, before: Option<Told>, next: &Object<Value>) -> Result<(), String> {
        let (uid, version) = (next.uid(), number(next));
        let Some(before) = before else { return Ok(()) };
        if before.retired.contains(&Some(uid)) {
            return Err("its uid was replaced before".into());
        }
        if before.uid == uid && version <= before.version {
            return Err(format!("after {}", before.version));
        }
        let later = || self.shared.ledger.is_later((uid, version), (before.uid, before.version));
        if before.uid != uid && !later() {
            return Err(format!("another object, older than {}", before.version));
        }
        Ok(())
    }

    /// The store shows a state or a later one.
    fn in_store(&self, object: &Object<Value>) -> Result<(), String> {
        let stored = self.shared.lister.get(object.key()).filter(|stored| stored.uid() == object.uid());
        match stored {
            Some(stored) if number(&stored) < number(object) => {
                Err(format!("the store still shows {}", number(&stored)))
            }
            _ => Ok(()),
        }
    }

    /// The store no longer shows what is gone; it may have come back to a selector since.
    fn out_of_store(&self, last: &Object<Value>) -> Result<(), String> {
        let view = &self.shared.view;
        let stored = self.shared.lister.get(last.key()).filter(|stored| stored.uid() == last.uid());
        let Some(stored) = stored else { return Ok(()) };
        let came_back = view.selective && number(&stored) > number(last);
        if view.color.is_some() || came_back { Ok(()) } else { Err("the store still has it".into()) }
    }

    fn judge(
        &self,
        what: &str,
        object: &Object<Value>,
        check: impl FnOnce(&mut State) -> Result<(), String>,
    ) {
        let Shared { name, ledger, state, .. } = &*self.shared;
        ledger.delivered.fetch_add(1, Ordering::Relaxed);
        let mut state = lock(state);
        let verdict = if state.ended { Err("after its end".to_owned()) } else { check(&mut state) };
        if let Err(why) = verdict {
            ledger.fail(format_args!("{name}: {what} {}@{}: {why}", object.key(), number(object)));
        }
    }

    /// Whether what it was told adds up to what a cache shows.
    pub(crate) fn compare(&self, cache: &CacheSnapshot<Value>) -> Result<(), String> {
        let state = lock(&self.shared.state);
        let mut expected = 0;
        for object in cache.iter().filter(|object| self.shared.view.accepts(object)) {
            expected += 1;
            let told = state.told.get(object.key()).filter(|told| told.present);
            if told.is_none_or(|told| (told.uid, told.version) != (object.uid(), number(object))) {
                let told = told.map(|told| told.version);
                let (key, version) = (object.key(), number(object));
                return Err(format!("{} was told {told:?} of {key}@{version}", self.name()));
            }
        }
        let present = state.told.values().filter(|told| told.present).count();
        if present == expected {
            return Ok(());
        }
        Err(format!("{} was told of {present} objects, the cache has {expected}", self.name()))
    }
}

impl State {
    fn present(&self, key: &ObjectKey) -> Result<Told, String> {
        let told = self.told.get(key).filter(|told| told.present);
        told.copied().ok_or_else(|| "the handler does not have it".to_owned())
    }
}
