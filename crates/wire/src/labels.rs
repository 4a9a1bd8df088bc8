//! The labels of an object, compactly.

use std::{fmt, str, sync::Arc};

/// The labels of an object, sorted by key.
///
/// All pairs live in one shared allocation, so that an object without labels costs nothing, one with labels
/// one reference count, and many objects can share one set.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels {
    /// Length of the key, length of the value, key and value of each label, in key order.
    pairs: Option<Arc<[u8]>>,
}

/// Stands before a length that is too large for one byte.
const LONG: u8 = 0xFF;

fn push_length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(length) if length != LONG => bytes.push(length),
        _ => {
            bytes.push(LONG);
            bytes.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
}

#[inline]
fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (&length, rest) = bytes.split_first()?;
    *bytes = rest;
    if length != LONG {
        return Some(usize::from(length));
    }
    let (length, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    usize::try_from(u64::from_le_bytes(*length)).ok()
}

/// The next key and value.
#[inline]
fn take_pair<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (key, value) = (take_length(bytes)?, take_length(bytes)?);
    let (key, rest) = bytes.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    *bytes = rest;
    Some((key, value))
}

impl Labels {
    /// The labels with the given pairs; of a repeated key the last value stands.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs: Vec<(K, V)> = pairs.into_iter().collect();
        let mut sorted: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect();
        // Stable: pairs of one key stay in their order, and of those the last one counts.
        sorted.sort_by_key(|(key, _)| *key);
        let mut bytes = Vec::with_capacity(sorted.iter().map(|(k, v)| k.len() + v.len() + 2).sum());
        for (at, (key, value)) in sorted.iter().enumerate() {
            if sorted.get(at + 1).is_some_and(|(next, _)| next == key) {
                continue;
            }
            push_length(&mut bytes, key.len());
            push_length(&mut bytes, value.len());
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
        Self { pairs: (!bytes.is_empty()).then(|| bytes.into()) }
    }

    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        // Only what is asked for is checked: this runs for every object that a selector looks at.
        let mut rest = self.pairs.as_deref()?;
        while let Some((found, value)) = take_pair(&mut rest) {
            if found == key.as_bytes() {
                return str::from_utf8(value).ok();
            }
        }
        None
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
        let mut rest = self.pairs.as_deref().unwrap_or_default();
        std::iter::from_fn(move || {
            let (key, value) = take_pair(&mut rest)?;
            Some((str::from_utf8(key).ok()?, str::from_utf8(value).ok()?))
        })
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        let mut rest = self.pairs.as_deref().unwrap_or_default();
        std::iter::from_fn(|| take_pair(&mut rest)).count()
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
    fn lengths_of_all_sizes() {
        let texts = [0, 1, 254, 255, 256, 70_000].map(|length| "x".repeat(length));
        let labels = Labels::new(texts.iter().map(|text| (text, text)));
        assert_eq!(labels.len(), texts.len());
        for text in &texts {
            assert_eq!(labels.get(text), Some(text.as_str()));
        }
        assert!(labels.iter().map(|(key, _)| key.len()).eq([0, 1, 254, 255, 256, 70_000]));
    }

    #[test]
    fn none_costs_nothing() {
        let none = Labels::default();
        assert_eq!((none.len(), none.is_empty(), none.heap_size()), (0, true, 0));
        assert_eq!(none.iter().next(), None);
        assert_eq!(none, Labels::new::<&str, &str>([]));
    }
}
