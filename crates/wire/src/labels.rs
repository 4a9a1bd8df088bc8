//! A compact set of labels.

use std::{fmt, str, sync::Arc};

/// The labels of an object, sorted by key.
///
/// All pairs are in one shared allocation: no labels need no memory, cloning is a reference count, and many objects can
/// share one set.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels {
    /// Length of the key, length of the value, key and value of each label, in key order.
    pairs: Option<Arc<[u8]>>,
}

/// Precedes a length that is too large for one byte.
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
    /// Labels with the given pairs; of a repeated key the last value counts.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs: Vec<(K, V)> = pairs.into_iter().collect();
        let mut sorted: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_ref(), v.as_ref())).collect();
        // A stable sort keeps the order of pairs with the same key, of which the last one counts.
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
        // Only the returned value is checked to be UTF-8: selectors call this for every object.
        let mut rest = self.pairs.as_deref()?;
        while let Some((found, value)) = take_pair(&mut rest) {
            if found == key.as_bytes() {
                return str::from_utf8(value).ok();
            }
        }
        None
    }

    /// All pairs, as [`from_bytes`](Self::from_bytes) reads them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.pairs.as_deref().unwrap_or_default()
    }

    /// Labels from [`as_bytes`](Self::as_bytes); `None` if the bytes are something else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mut rest, mut last) = (bytes, None);
        while !rest.is_empty() {
            let (key, value) = take_pair(&mut rest)?;
            if last.is_some_and(|last| last >= key) || str::from_utf8(key).is_err() {
                return None;
            }
            str::from_utf8(value).ok()?;
            last = Some(key);
        }
        Some(Self { pairs: (!bytes.is_empty()).then(|| bytes.into()) })
    }

    /// Whether both share one allocation, as many cached objects do.
    pub fn is_identical(&self, other: &Self) -> bool {
        match (&self.pairs, &other.pairs) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }

    /// Replaces the allocation by the one that `intern` returns.
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

    /// The number of labels.
    pub fn len(&self) -> usize {
        let mut rest = self.pairs.as_deref().unwrap_or_default();
        std::iter::from_fn(|| take_pair(&mut rest)).count()
    }

    /// Whether there are no labels.
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
    fn short_lengths_take_one_byte() {
        let labels = Labels::new([("a".repeat(254), "b")]);
        assert_eq!(labels.as_bytes().len(), 1 + 1 + 254 + 1);
    }

    #[test]
    fn only_bytes_of_labels_are_read_as_labels() {
        let labels = Labels::new([("a", "1"), ("b", "2")]);
        let bytes = labels.as_bytes();
        assert_eq!(Labels::from_bytes(bytes), Some(labels.clone()));
        assert_eq!(Labels::from_bytes(&[]), Some(Labels::default()));
        let swapped = [&bytes[4..], &bytes[..4]].concat();
        let repeated = [&bytes[..4], &bytes[..4]].concat();
        for other in [&bytes[..7], &swapped, &repeated, b"\x01\x00\xFF", b"\x00\x01\xFF"] {
            assert_eq!(Labels::from_bytes(other), None, "{other:?}");
        }
    }

    #[test]
    fn labels_are_identical_if_they_share_memory() {
        let (labels, none) = (Labels::new([("a", "1")]), Labels::default());
        assert!(labels.is_identical(&labels.clone()) && none.is_identical(&none.clone()));
        assert!(!labels.is_identical(&Labels::new([("a", "1")])));
        assert!(!labels.is_identical(&none) && !none.is_identical(&labels));
    }

    #[test]
    fn no_labels_need_no_memory() {
        let none = Labels::default();
        assert_eq!((none.len(), none.is_empty(), none.heap_size()), (0, true, 0));
        assert_eq!(none.iter().next(), None);
        assert_eq!(none, Labels::new::<&str, &str>([]));
    }
}
