//! The handlers of an informer, and the events they receive.

use crate::delta::Deleted;
use kube_informer_wire::{Object, ObjectKey};
use serde_json::Value;
use std::{collections::HashSet, fmt};

/// A change of a cached object, as handlers and streams receive it.
pub enum Event<T> {
    /// The object is new to this handler.
    Added {
        /// The object.
        object: Object<T>,
        /// Whether the object is older than the handler: part of the initial list, or of the replay for a handler that
        /// was added later.
        initial: bool,
    },
    /// The object changed. In a resync `old` and `new` are the same state.
    Updated {
        /// The state that this handler received last.
        old: Object<T>,
        /// The new state.
        new: Object<T>,
    },
    /// The object was deleted.
    Deleted(Deleted<T>),
}

impl<T> Event<T> {
    /// The object, in its newest known state.
    pub fn object(&self) -> &Object<T> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted(deleted) => deleted.object(),
        }
    }

    /// The same event, its objects read as another type.
    pub fn cast<U>(&self) -> Event<U> {
        match self {
            Self::Added { object, initial } => Event::Added { object: object.cast(), initial: *initial },
            Self::Updated { old, new } => Event::Updated { old: old.cast(), new: new.cast() },
            Self::Deleted(deleted) => Event::Deleted(deleted.cast()),
        }
    }
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<T> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { object, initial: true } => write!(f, "Added({object:?}, initial)"),
            Self::Added { object, initial: false } => write!(f, "Added({object:?})"),
            Self::Updated { old, new } => write!(f, "Updated({old:?} -> {new:?})"),
            Self::Deleted(deleted) => write!(f, "Deleted({deleted:?})"),
        }
    }
}

/// Receives the changes of the objects of an informer.
///
/// 1. A handler is called for one event after another, in the order of the changes. Handlers are independent of each
///    other.
/// 2. When a handler is called, the store already shows the change, and possibly later ones.
/// 3. A handler that falls behind receives the net effect of the events it missed (see
///    [`SharedInformer::add_handler`](crate::SharedInformer::add_handler)).
/// 4. A panic is reported and counts as delivered. The handler is called again for the next event.
///
/// Handlers run on the runtime's threads and should not block: add a key to a work queue and return. Code that
/// needs to `.await` uses [`SharedInformer::events`](crate::SharedInformer::events).
pub trait EventHandler<T>: Send + 'static {
    /// Called for an object that is new to this handler. `initial`: the object is older than the handler.
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// Called for a changed object. In a resync `old` and `new` are the same state.
    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        let _ = (old, new);
    }

    /// Called for a deleted object.
    fn on_delete(&mut self, deleted: &Deleted<T>) {
        let _ = deleted;
    }
}

impl<T, H: EventHandler<T> + ?Sized> EventHandler<T> for Box<H> {
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        (**self).on_add(object, initial);
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        (**self).on_update(old, new);
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        (**self).on_delete(deleted);
    }
}

type OnAdd<T> = Box<dyn FnMut(&Object<T>, bool) + Send>;
type OnUpdate<T> = Box<dyn FnMut(&Object<T>, &Object<T>) + Send>;
type OnDelete<T> = Box<dyn FnMut(&Deleted<T>) + Send>;

/// A handler made of closures; events without a closure are ignored.
///
/// ```
/// use kube_informer::HandlerFuncs;
/// # type Pod = serde_json::Value;
///
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, initial| println!("+ {} {}", pod.key(), if initial { "(initial)" } else { "" }))
///     .on_update(|old, new| println!("~ {} {} -> {}", new.key(), old.resource_version(), new.resource_version()))
///     .on_delete(|deleted| println!("- {}", deleted.key()));
/// ```
#[must_use = "a handler is called only after it is added to an informer"]
pub struct HandlerFuncs<T> {
    add: Option<OnAdd<T>>,
    update: Option<OnUpdate<T>>,
    delete: Option<OnDelete<T>>,
}

impl<T> HandlerFuncs<T> {
    /// A handler without closures.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Sets the closure for new objects.
    pub fn on_add(mut self, f: impl FnMut(&Object<T>, bool) + Send + 'static) -> Self {
        self.add = Some(Box::new(f));
        self
    }

    /// Sets the closure for changed objects.
    pub fn on_update(mut self, f: impl FnMut(&Object<T>, &Object<T>) + Send + 'static) -> Self {
        self.update = Some(Box::new(f));
        self
    }

    /// Sets the closure for deleted objects.
    pub fn on_delete(mut self, f: impl FnMut(&Deleted<T>) + Send + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }
}

impl<T> Default for HandlerFuncs<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for HandlerFuncs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = [
            ("on_add", self.add.is_some()),
            ("on_update", self.update.is_some()),
            ("on_delete", self.delete.is_some()),
        ];
        f.write_str("HandlerFuncs")?;
        f.debug_set().entries(set.iter().filter(|(_, set)| *set).map(|(name, _)| name)).finish()
    }
}

impl<T: 'static> EventHandler<T> for HandlerFuncs<T> {
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        if let Some(f) = &mut self.add {
            f(object, initial);
        }
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        if let Some(f) = &mut self.update {
            f(old, new);
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        if let Some(f) = &mut self.delete {
            f(deleted);
        }
    }
}

/// A handler made of one closure for all three kinds of event.
///
/// ```
/// use kube_informer::{Event, on_event};
/// # type Pod = serde_json::Value;
///
/// let handler = on_event(|event: &Event<Pod>| println!("{event:?}"));
/// ```
#[must_use = "a handler is called only after it is added to an informer"]
pub fn on_event<T: 'static>(f: impl FnMut(&Event<T>) + Send + 'static) -> impl EventHandler<T> {
    struct OnEvent<F>(F);
    impl<T: 'static, F: FnMut(&Event<T>) + Send + 'static> EventHandler<T> for OnEvent<F> {
        fn on_add(&mut self, object: &Object<T>, initial: bool) {
            (self.0)(&Event::Added { object: object.clone(), initial });
        }

        fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
            (self.0)(&Event::Updated { old: old.clone(), new: new.clone() });
        }

        fn on_delete(&mut self, deleted: &Deleted<T>) {
            (self.0)(&Event::Deleted(deleted.clone()));
        }
    }
    OnEvent(f)
}

/// A handler that receives only the objects that a predicate accepts, made by [`filter`].
///
/// The inner handler sees a consistent set: an object that the predicate starts to accept is added, one that it no longer
/// accepts is deleted with its old state. The deletion of an object that the inner handler has is always passed on, even
/// if the predicate would not accept the final state.
#[must_use = "a handler is called only after it is added to an informer"]
pub struct FilteringHandler<T, P, H> {
    accept: P,
    handler: H,
    /// The objects that the inner handler has. The old state of an event does not tell, because events of a slow handler
    /// are coalesced.
    passed: HashSet<ObjectKey>,
    of: std::marker::PhantomData<fn() -> T>,
}

/// A handler that passes on to `handler` only the objects that `accept` accepts.
pub fn filter<T, P, H>(accept: P, handler: H) -> FilteringHandler<T, P, H>
where
    P: FnMut(&Object<T>) -> bool + Send + 'static,
    H: EventHandler<T>,
{
    FilteringHandler { accept, handler, passed: HashSet::new(), of: std::marker::PhantomData }
}

impl<T, P, H> EventHandler<T> for FilteringHandler<T, P, H>
where
    T: 'static,
    P: FnMut(&Object<T>) -> bool + Send + 'static,
    H: EventHandler<T>,
{
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        if (self.accept)(object) {
            self.passed.insert(object.key().clone());
            self.handler.on_add(object, initial);
        }
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        match (self.passed.contains(new.key()), (self.accept)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => {
                self.passed.insert(new.key().clone());
                self.handler.on_add(new, false);
            }
            (true, false) => self.on_delete(&Deleted::Seen(old.clone())),
            (false, false) => {}
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        if self.passed.remove(deleted.key()) {
            self.handler.on_delete(deleted);
        }
    }
}

impl<T, P, H: fmt::Debug> fmt::Debug for FilteringHandler<T, P, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilteringHandler({:?}, {} objects)", self.handler, self.passed.len())
    }
}

/// A handler of untyped events, as a listener calls it.
pub(crate) type Deliver = Box<dyn FnMut(Event<Value>) + Send>;

/// Adapts a typed handler to the untyped events of a listener.
pub(crate) fn deliver<T: 'static>(mut handler: impl EventHandler<T>) -> Deliver {
    Box::new(move |event| match event {
        Event::Added { object, initial } => handler.on_add(&object.cast(), initial),
        Event::Updated { old, new } => handler.on_update(&old.cast(), &new.cast()),
        Event::Deleted(deleted) => handler.on_delete(&deleted.cast()),
    })
}
