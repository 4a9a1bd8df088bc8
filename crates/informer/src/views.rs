//! Views that are decoded when an object arrives, and kept with it.

use crate::{delta::AnyObject, indexer::Indexer};
use arc_swap::ArcSwap;
use kube_informer_wire::{DecodeError, Object, View, ViewId, sync::lock};
use std::{
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};
use tokio::task::yield_now;

/// Objects whose views are filled in before other tasks of the thread run.
const FILL_STEP: usize = 16;

/// A view that an informer keeps, made by [`SharedInformer::keep_view`](crate::SharedInformer::keep_view).
///
/// Reading it is a pointer, while the rest of the content stays packed.
pub struct KeptView<V> {
    id: ViewId,
    of: PhantomData<fn() -> V>,
}

impl<V: View> KeptView<V> {
    /// The view of an object. If it is not there yet, because the view was added after the object, it is decoded now and
    /// kept, too. Only decoding can fail.
    pub fn of<'a, T>(&self, object: &'a Object<T>) -> Result<&'a V, DecodeError> {
        object.kept_view(self.id)
    }
}

impl<V> Clone for KeptView<V> {
    fn clone(&self) -> Self {
        Self { id: self.id, of: PhantomData }
    }
}

impl<V> fmt::Debug for KeptView<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptView({})", std::any::type_name::<V>())
    }
}

/// Decodes one view of an object and keeps it there. An object that cannot be decoded has none.
type Keep = Arc<dyn Fn(&AnyObject) + Send + Sync>;

/// The views that an informer keeps.
#[derive(Default)]
pub(crate) struct Views {
    all: ArcSwap<Vec<(ViewId, Keep)>>,
    /// Held to add or take one.
    unfilled: Mutex<Unfilled>,
}

/// Views that objects which were cached earlier may not have yet.
#[derive(Default)]
struct Unfilled {
    views: Vec<(ViewId, Keep)>,
    /// Number of views that were ever added.
    added: u64,
    /// How often all views became unfilled, because objects were cached without them.
    restarts: u64,
}

impl Views {
    /// Keeps a view of every object from now on. Objects that are cached get it from [`fill`](Self::fill).
    pub(crate) fn add<V: View>(&self) -> KeptView<V> {
        let id = ViewId::unique();
        let keep: Keep = Arc::new(move |object| {
            // Code of the user: what panics here panics again for the one who reads the view.
            let _ = catch_unwind(AssertUnwindSafe(|| object.kept_view::<V>(id).is_ok()));
        });
        self.all.rcu(|all| all.iter().cloned().chain([(id, Arc::clone(&keep))]).collect::<Vec<_>>());
        let mut unfilled = lock(&self.unfilled);
        unfilled.views.push((id, keep));
        unfilled.added += 1;
        drop(unfilled);
        KeptView { id, of: PhantomData }
    }

    /// Objects that arrive from now on do not get the view.
    pub(crate) fn remove<V>(&self, view: &KeptView<V>) {
        let stays = |(id, _): &&(ViewId, Keep)| *id != view.id;
        self.all.rcu(|all| all.iter().filter(stays).cloned().collect::<Vec<_>>());
        lock(&self.unfilled).views.retain(|(id, _)| *id != view.id);
    }

    /// Decodes all views of an object that arrives.
    pub(crate) fn keep(&self, object: &AnyObject) {
        self.all.load().iter().for_each(|(_, keep)| keep(object));
    }

    /// Number of views that were ever added.
    pub(crate) fn added(&self) -> u64 {
        lock(&self.unfilled).added
    }

    /// Lets [`fill`](Self::fill) fill in all views, because objects were cached without them.
    pub(crate) fn fill_again(&self) {
        let mut unfilled = lock(&self.unfilled);
        unfilled.views = self.all.load().to_vec();
        unfilled.restarts += 1;
    }

    /// Calls [`fill_again`](Self::fill_again) if a view was added after the first `added` ones: the objects of a list that began
    /// before that may lack it. Returns whether one was.
    pub(crate) fn fill_since(&self, added: u64) -> bool {
        let more = self.added() > added;
        if more {
            self.fill_again();
        }
        more
    }

    /// Whether [`fill`](Self::fill) has views to fill in.
    pub(crate) fn is_filling_due(&self) -> bool {
        !lock(&self.unfilled).views.is_empty()
    }

    /// Gives objects that were cached before a view was added that view.
    pub(crate) async fn fill(&self, indexer: &Indexer) {
        loop {
            let (next, restarts) = {
                let unfilled = lock(&self.unfilled);
                (unfilled.views.last().cloned(), unfilled.restarts)
            };
            let Some((id, keep)) = next else { return };
            let snapshot = indexer.snapshot();
            for (position, object) in snapshot.objects().enumerate() {
                if position % FILL_STEP == FILL_STEP - 1 {
                    yield_now().await;
                }
                keep(object);
            }
            let mut unfilled = lock(&self.unfilled);
            // Objects that were cached meanwhile are not in the snapshot.
            if unfilled.restarts == restarts {
                unfilled.views.retain(|(other, _)| *other != id);
            }
        }
    }
}
