//! A log of the events of one handler, which checks each of them.

use crate::report::{Report, lock};
use kube_informer::{CacheSnapshot, Deleted, Event, EventHandler, Lister, Object, ObjectKey, Uid, on_event};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::Ordering},
};

/// The events that one handler received. It checks these promises:
///
/// 1. An add is for an object that the handler does not have; updates and deletes are for objects that it has.
/// 2. The old object of an update is the last one that the handler received, and has the same uid as the new one.
/// 3. The resource version of an object never goes back, and a uid that was replaced does not come back.
/// 4. When the handler is called, the store has that state or a newer one, and no longer has a deleted object.
/// 5. A removed or stopped handler receives nothing.
#[derive(Clone)]
pub(crate) struct HandlerLog {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    report: Arc<Report>,
    lister: Lister<Value>,
    view: View,
    state: Mutex<State>,
}

/// The objects of an informer that a handler sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// Whether the informer has a selector, so that objects leave its cache and return when their labels change.
    pub(crate) selective: bool,
    /// The color by which the handler, not the informer, filters.
    pub(crate) color: Option<&'static str>,
}

impl View {
    pub(crate) fn accepts(&self, object: &Object<Value>) -> bool {
        self.color.is_none_or(|color| object.labels().get("color") == Some(color))
    }
}

#[derive(Default)]
struct State {
    received: HashMap<ObjectKey, Received>,
    closed: bool,
}

/// The last event of an object.
#[derive(Clone, Copy)]
struct Received {
    uid: Uid,
    version: u64,
    present: bool,
    /// The last uids of this name that were replaced. Bounded, because memory is measured while the log is filled.
    replaced_uids: [Option<Uid>; 3],
}

impl Received {
    fn of(object: &Object<Value>, before: Option<Self>, present: bool) -> Self {
        let uid = object.uid();
        let mut replaced_uids = before.map(|before| before.replaced_uids).unwrap_or_default();
        if let Some(before) = before.filter(|before| before.uid != uid) {
            replaced_uids.rotate_right(1);
            replaced_uids[0] = Some(before.uid);
        }
        Self { uid, version: version(object), present, replaced_uids }
    }
}

fn version(object: &Object<Value>) -> u64 {
    object.resource_version().number().unwrap_or_default()
}

impl HandlerLog {
    pub(crate) fn new(name: String, report: Arc<Report>, lister: Lister<Value>, view: View) -> Self {
        Self { shared: Arc::new(Shared { name, report, lister, view, state: Mutex::default() }) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Makes every later event a failure.
    pub(crate) fn close(&self) {
        lock(&self.shared.state).closed = true;
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
        self.check("add", object, |state| {
            let before = state.received.get(object.key()).copied();
            if before.is_some_and(|before| before.present) {
                return Err("the handler already has it".into());
            }
            self.check_newer(before, object)?;
            state.received.insert(object.key().clone(), Received::of(object, before, true));
            self.check_in_store(object)
        });
    }

    fn updated(&self, old: &Object<Value>, new: &Object<Value>) {
        self.check("update", new, |state| {
            let last = state.present(new.key())?;
            if (last.uid, last.version) != (old.uid(), version(old)) {
                return Err(format!(
                    "the old object is @{}, the last event was @{}",
                    version(old),
                    last.version
                ));
            }
            if old.uid() != new.uid() {
                return Err("old and new object have different uids".into());
            }
            self.check_newer(Some(last), new)?;
            state.received.insert(new.key().clone(), Received::of(new, Some(last), true));
            self.check_in_store(new)
        });
    }

    fn deleted(&self, deleted: &Deleted<Value>) {
        let object = deleted.object();
        self.check("delete", object, |state| {
            let last = state.present(deleted.key())?;
            if last.uid != object.uid() {
                return Err("the last event had another uid".into());
            }
            if version(object) < last.version {
                return Err(format!("older than the last event, @{}", last.version));
            }
            state.received.insert(object.key().clone(), Received::of(object, Some(last), false));
            self.check_not_in_store(object)
        });
    }

    /// Checks that an object is newer than the last event of its key.
    fn check_newer(&self, before: Option<Received>, next: &Object<Value>) -> Result<(), String> {
        let (uid, version) = (next.uid(), version(next));
        let Some(before) = before else { return Ok(()) };
        if before.replaced_uids.contains(&Some(uid)) {
            return Err("its uid was already replaced by another one".into());
        }
        if before.uid == uid && version <= before.version {
            return Err(format!("not newer than the last event, @{}", before.version));
        }
        let newer = || self.shared.report.may_be_newer((uid, version), (before.uid, before.version));
        if before.uid != uid && !newer() {
            return Err(format!("another uid, older than the last event, @{}", before.version));
        }
        Ok(())
    }

    /// Checks that the store has an object in this state or a newer one.
    fn check_in_store(&self, object: &Object<Value>) -> Result<(), String> {
        let stored = self.shared.lister.get(object.key()).filter(|stored| stored.uid() == object.uid());
        match stored {
            Some(stored) if version(&stored) < version(object) => {
                Err(format!("the store still has @{}", version(&stored)))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the store no longer has a deleted object, unless it matches the selector again.
    fn check_not_in_store(&self, object: &Object<Value>) -> Result<(), String> {
        let view = &self.shared.view;
        let stored = self.shared.lister.get(object.key()).filter(|stored| stored.uid() == object.uid());
        let Some(stored) = stored else { return Ok(()) };
        let selected_again = view.selective && version(&stored) > version(object);
        if view.color.is_some() || selected_again { Ok(()) } else { Err("the store still has it".into()) }
    }

    fn check(
        &self,
        event: &str,
        object: &Object<Value>,
        check: impl FnOnce(&mut State) -> Result<(), String>,
    ) {
        let Shared { name, report, state, .. } = &*self.shared;
        report.delivered.fetch_add(1, Ordering::Relaxed);
        let mut state = lock(state);
        let result = if state.closed { Err("received after the end".to_owned()) } else { check(&mut state) };
        if let Err(why) = result {
            report.fail(format_args!("{name}: {event} {}@{}: {why}", object.key(), version(object)));
        }
    }

    /// Checks that the events add up to the content of a cache.
    pub(crate) fn compare(&self, cache: &CacheSnapshot<Value>) -> Result<(), String> {
        let state = lock(&self.shared.state);
        let mut expected = 0;
        for object in cache.iter().filter(|object| self.shared.view.accepts(object)) {
            expected += 1;
            let last = state.received.get(object.key()).filter(|last| last.present);
            if last.is_none_or(|last| (last.uid, last.version) != (object.uid(), version(object))) {
                let last = last.map(|last| last.version);
                let (key, version) = (object.key(), version(object));
                return Err(format!("{}: the cache has {key}@{version}, the handler {last:?}", self.name()));
            }
        }
        let present = state.received.values().filter(|last| last.present).count();
        if present == expected {
            return Ok(());
        }
        Err(format!("{}: the handler has {present} objects, the cache {expected}", self.name()))
    }
}

impl State {
    fn present(&self, key: &ObjectKey) -> Result<Received, String> {
        let last = self.received.get(key).filter(|last| last.present);
        last.copied().ok_or_else(|| "the handler does not have it".to_owned())
    }
}
