//! Being told about changes.

use crate::delta::Deleted;
use kube_informer_wire::{Object, ObjectKey};
use serde_json::Value;
use std::{collections::HashSet, fmt};

/// A change, as handlers and streams get it.
pub enum Event<T> {
    /// The object is new to this handler.
    Added {
        /// The object.
        object: Object<T>,
        /// Whether it was there before the handler was: part of the first list, or of the replay that a late
        /// handler gets.
        initial: bool,
    },
    /// The object changed, or a resync is due and it did not.
    Updated {
        /// The state this handler saw last.
        old: Object<T>,
        /// The state now.
        new: Object<T>,
    },
    /// The object is gone.
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

/// Called for every change of the objects of an informer.
///
/// 1. Calls for one handler come one after another, in the order in which things happened; handlers know
///    nothing of each other.
/// 2. The store already shows the change, and perhaps later ones, when a handler hears of it.
/// 3. A handler that cannot keep up is told the net effect of what it missed (see
///    [`SharedInformer::add_handler`](crate::SharedInformer::add_handler)).
/// 4. A panic is reported and counts as delivered; the next call comes as if nothing had happened.
///
/// Handlers run on the runtime's threads and should not block: put a key on a work queue and return. Code that
/// wants to `.await` uses [`SharedInformer::events`](crate::SharedInformer::events).
pub trait EventHandler<T>: Send + 'static {
    /// An object is new. `initial` says that it was there before this handler was.
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// An object changed, or a resync is due and `old` and `new` are one.
    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        let _ = (old, new);
    }

    /// An object is gone.
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

/// A handler made of closures; what is not given does nothing.
///
/// ```
/// use kube_informer::HandlerFuncs;
/// # type Pod = serde_json::Value;
///
/// let handler = HandlerFuncs::<Pod>::new()
///     .on_add(|pod, initial| println!("+ {} {}", pod.key(), if initial { "(was there)" } else { "" }))
///     .on_update(|old, new| println!("~ {} {} -> {}", new.key(), old.resource_version(), new.resource_version()))
///     .on_delete(|gone| println!("- {}", gone.key()));
/// ```
pub struct HandlerFuncs<T> {
    add: Option<OnAdd<T>>,
    update: Option<OnUpdate<T>>,
    delete: Option<OnDelete<T>>,
}

impl<T> HandlerFuncs<T> {
    /// A handler that does nothing yet.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Called for each new object.
    pub fn on_add(mut self, f: impl FnMut(&Object<T>, bool) + Send + 'static) -> Self {
        self.add = Some(Box::new(f));
        self
    }

    /// Called for each change.
    pub fn on_update(mut self, f: impl FnMut(&Object<T>, &Object<T>) + Send + 'static) -> Self {
        self.update = Some(Box::new(f));
        self
    }

    /// Called for each end.
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

/// A handler that hears only of the objects that a predicate accepts.
///
/// An object that starts to be accepted is an add, one that ceases to be is a delete of its old state, so that
/// the inner handler sees a consistent set. The end of an object that it has is always passed on, even if the
/// final state would not be accepted.
pub struct FilteringHandler<T, P, H> {
    accept: P,
    handler: H,
    /// The objects that the inner handler has. The final state of an object does not say: what came before it
    /// may have been left out because the handler was slow.
    passed: HashSet<ObjectKey>,
    of: std::marker::PhantomData<fn() -> T>,
}

/// Passes on to `handler` only the objects that `accept` accepts.
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

/// A handler for objects of any type: what a listener calls.
pub(crate) type Deliver = Box<dyn FnMut(Event<Value>) + Send>;

/// Adapts a handler for one type to what a listener calls.
pub(crate) fn deliver<T: 'static>(mut handler: impl EventHandler<T>) -> Deliver {
    Box::new(move |event| match event {
        Event::Added { object, initial } => handler.on_add(&object.cast(), initial),
        Event::Updated { old, new } => handler.on_update(&old.cast(), &new.cast()),
        Event::Deleted(deleted) => handler.on_delete(&deleted.cast()),
    })
}
