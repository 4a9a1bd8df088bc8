//! The labels of an object, compactly.

use std::{fmt, str, sync::Arc};

/// The labels of an object, sorted by key.
///
/// All pairs live in one shared allocation, so that an object without labels costs nothing, one with labels
/// one reference count, and many objects can share one set.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels {
    /// `key FF value FF` for each label in key order. `FF` never occurs in UTF-8, so it needs no escaping.
    pairs: Option<Arc<[u8]>>,
}

const END: u8 = 0xFF;

impl Labels {
    /// The labels with the given pairs; of a repeated key the last value stands.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let map: std::collections::BTreeMap<String, String> =
            pairs.into_iter().map(|(k, v)| (k.as_ref().to_owned(), v.as_ref().to_owned())).collect();
        let mut bytes = Vec::with_capacity(map.iter().map(|(k, v)| k.len() + v.len() + 2).sum());
        for (key, value) in &map {
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(END);
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(END);
        }
        Self { pairs: (!bytes.is_empty()).then(|| bytes.into()) }
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        // Only what is asked for is checked: this runs for every object that a selector looks at.
        let mut rest = self.pairs.as_deref()?;
        loop {
            let (found, after) = rest.split_at_checked(memchr::memchr(END, rest)?)?;
            let (value, after) = after[1..].split_at_checked(memchr::memchr(END, &after[1..])?)?;
            if found == key.as_bytes() {
                return str::from_utf8(value).ok();
            }
            rest = &after[1..];
        }
    }

    /// Whether both are one value in memory, as those of many cached objects are.
    pub fn is_identical(&self, other: &Self) -> bool {
        match (&self.pairs, &other.pairs) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }

    /// Puts the copy that `intern` gives in the place of this one.
    pub(crate) fn share(&mut self, intern: impl FnOnce(Arc<[u8]>) -> Arc<[u8]>) {
        self.pairs = self.pairs.take().map(intern);
    }

    /// All pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.pairs.as_deref().unwrap_or_default().split(|&byte| byte == END);
        std::iter::from_fn(move || {
            let key = str::from_utf8(parts.next()?).ok()?;
            let value = str::from_utf8(parts.next()?).ok()?;
            Some((key, value))
        })
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.pairs.as_deref().unwrap_or_default().iter().filter(|&&byte| byte == END).count() / 2
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_none()
    }

    /// Bytes on the heap, shared or not.
    pub fn heap_size(&self) -> usize {
        self.pairs.as_ref().map_or(0, |pairs| pairs.len() + 2 * size_of::<usize>())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::new(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_and_found() {
        let labels = Labels::new([("b", "2"), ("a", ""), ("b", "3")]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", ""), ("b", "3")]);
        assert_eq!((labels.get("a"), labels.get("b"), labels.get("c")), (Some(""), Some("3"), None));
        assert_eq!((labels.len(), labels.is_empty()), (2, false));
    }

    #[test]
    fn none_costs_nothing() {
        let none = Labels::default();
        assert_eq!((none.len(), none.is_empty(), none.heap_size()), (0, true, 0));
        assert_eq!(none.iter().next(), None);
        assert_eq!(none, Labels::new::<&str, &str>([]));
    }
}
