//! Views that are kept with an object.

use crate::HeapSize;
use serde::de::DeserializeOwned;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A type whose fields are decoded together and can be kept: every type that serde can decode, with a [`HeapSize`].
pub trait View: DeserializeOwned + HeapSize + Send + Sync + 'static {}

impl<V: DeserializeOwned + HeapSize + Send + Sync + 'static> View for V {}

/// Identifies a kind of kept view in all objects of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewId(u64);

impl ViewId {
    /// An id that no other view has.
    #[must_use]
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Relaxed))
    }
}

/// The views of one object, in the order in which they were decoded: a list that only grows, so that a reader needs no lock
/// and gets a reference.
#[derive(Default)]
pub(crate) struct KeptViews(OnceLock<Box<Node>>);

struct Node {
    id: ViewId,
    value: KeptAny,
    next: KeptViews,
}

/// A value of the user. A panic in its drop goes no further: it would interrupt the drop of many objects.
struct KeptAny(Option<Box<dyn Kept>>);

/// A value of any view type.
trait Kept: Any + Send + Sync {
    /// Bytes of the value, and on its heap.
    fn size(&self) -> usize;
}

impl<V: View> Kept for V {
    fn size(&self) -> usize {
        size_of::<V>().saturating_add(self.heap_size())
    }
}

impl Drop for KeptAny {
    fn drop(&mut self) {
        let value = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

impl KeptViews {
    /// The view with an id, if it is kept.
    pub(crate) fn get<V: View>(&self, id: ViewId) -> Option<&V> {
        self.nodes().find(|node| node.id == id)?.value.get()
    }

    /// Keeps a view, unless there is one with this id already. Returns the one that is kept.
    pub(crate) fn keep<V: View>(&self, id: ViewId, value: V) -> Option<&V> {
        let mut new = Some(value);
        let mut end = self;
        loop {
            let make = || {
                let value = new.take().map(|value| Box::new(value) as Box<dyn Kept>);
                Box::new(Node { id, value: KeptAny(value), next: Self::default() })
            };
            let node = end.0.get_or_init(make);
            if node.id == id {
                return node.value.get();
            }
            end = &node.next;
        }
    }

    /// Bytes of all views.
    pub(crate) fn size(&self) -> usize {
        let of = |node: &Node| {
            let value = node.value.0.as_deref().map_or(0, |value| {
                // Code of the user.
                catch_unwind(AssertUnwindSafe(|| value.size())).unwrap_or_default()
            });
            size_of::<Node>().saturating_add(value)
        };
        self.nodes().map(of).fold(0, usize::saturating_add)
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.0.get(), |node| node.next.0.get()).map(|node| &**node)
    }
}

impl KeptAny {
    fn get<V: View>(&self) -> Option<&V> {
        (self.0.as_deref()? as &dyn Any).downcast_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_each_id_stays() {
        let (views, text, number) = (KeptViews::default(), ViewId::unique(), ViewId::unique());
        assert_eq!(views.get::<String>(text), None);
        assert_eq!(views.keep(text, "a".to_owned()).map(String::as_str), Some("a"));
        assert_eq!(views.keep(number, 7_u64), Some(&7));
        assert_eq!(views.keep(text, "b".to_owned()).map(String::as_str), Some("a"));
        assert_eq!((views.get::<u64>(number), views.get::<u64>(text)), (Some(&7), None));
        assert_eq!(views.size(), 2 * size_of::<Node>() + size_of::<String>() + 1 + size_of::<u64>());
    }

    #[test]
    fn threads_agree_on_one_value() {
        let (views, id) = (KeptViews::default(), ViewId::unique());
        let views = &views;
        let found: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8_u64).map(|n| scope.spawn(move || *views.keep(id, n).expect("kept"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(found.iter().all(|value| *value == found[0]), "{found:?}");
    }
}
