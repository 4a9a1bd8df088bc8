//! How much memory a value has on the heap.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// Bytes that a value has on the heap, for the memory report of an informer.
///
/// Derive it with `#[derive(HeapSize)]` of `kube-informer`. An estimate is enough: it is a report, nothing else depends
/// on it.
pub trait HeapSize {
    /// Bytes in allocations of this value, without its own size.
    fn heap_size(&self) -> usize;
}

macro_rules! nothing_on_the_heap {
    ($($type:ty),*) => {$(
        impl HeapSize for $type {
            fn heap_size(&self) -> usize {
                0
            }
        }
    )*};
}

nothing_on_the_heap!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    crate::Uid
);

impl HeapSize for String {
    fn heap_size(&self) -> usize {
        self.capacity()
    }
}

/// Counts as if it were not shared.
impl HeapSize for Arc<str> {
    fn heap_size(&self) -> usize {
        self.len().saturating_add(2 * size_of::<usize>())
    }
}

impl HeapSize for Box<str> {
    fn heap_size(&self) -> usize {
        self.len()
    }
}

impl<T: HeapSize> HeapSize for Option<T> {
    fn heap_size(&self) -> usize {
        self.as_ref().map_or(0, T::heap_size)
    }
}

impl<T: HeapSize> HeapSize for Box<T> {
    fn heap_size(&self) -> usize {
        size_of::<T>().saturating_add((**self).heap_size())
    }
}

impl<T: HeapSize> HeapSize for Vec<T> {
    fn heap_size(&self) -> usize {
        total(self).saturating_add(self.capacity().saturating_mul(size_of::<T>()))
    }
}

impl<T: HeapSize, const N: usize> HeapSize for [T; N] {
    fn heap_size(&self) -> usize {
        total(self)
    }
}

impl<T: HeapSize> HeapSize for BTreeSet<T> {
    fn heap_size(&self) -> usize {
        total(self).saturating_add(self.len().saturating_mul(size_of::<T>()))
    }
}

impl<T: HeapSize, S> HeapSize for HashSet<T, S> {
    fn heap_size(&self) -> usize {
        total(self).saturating_add(self.capacity().saturating_mul(size_of::<T>().saturating_add(1)))
    }
}

impl<K: HeapSize, V: HeapSize> HeapSize for BTreeMap<K, V> {
    fn heap_size(&self) -> usize {
        let entries = self.len().saturating_mul(size_of::<(K, V)>());
        total(self.keys()).saturating_add(total(self.values())).saturating_add(entries)
    }
}

impl<K: HeapSize, V: HeapSize, S> HeapSize for HashMap<K, V, S> {
    fn heap_size(&self) -> usize {
        let entries = self.capacity().saturating_mul(size_of::<(K, V)>().saturating_add(1));
        total(self.keys()).saturating_add(total(self.values())).saturating_add(entries)
    }
}

impl<A: HeapSize, B: HeapSize> HeapSize for (A, B) {
    fn heap_size(&self) -> usize {
        self.0.heap_size().saturating_add(self.1.heap_size())
    }
}

impl HeapSize for serde_json::Value {
    fn heap_size(&self) -> usize {
        crate::fields::value_size(self)
    }
}

fn total<'a, T: HeapSize + 'a>(values: impl IntoIterator<Item = &'a T>) -> usize {
    values.into_iter().fold(0, |sum, value| sum.saturating_add(value.heap_size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_add_up() {
        assert_eq!(
            (7_u64.heap_size(), String::from("abc").heap_size(), None::<String>.heap_size()),
            (0, 3, 0)
        );
        assert_eq!(vec!["ab".to_owned()].heap_size(), 2 + size_of::<String>());
        assert_eq!(
            Box::new([Some(String::from("a")), None]).heap_size(),
            1 + 2 * size_of::<Option<String>>()
        );
        let map = BTreeMap::from([("a".to_owned(), 1_u64)]);
        assert_eq!(map.heap_size(), 1 + size_of::<(String, u64)>());
        assert_eq!(serde_json::json!("text").heap_size(), 4);
    }
}
