//! A small LRU cache of decoded values.

use crate::sync::lock;
use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, Weak},
};

/// Maximum encoded size of all objects whose decoded values are cached; decoded, they take several times that.
const MAX_BYTES: usize = 128 << 10;
/// Maximum number of cached values.
const MAX_VALUES: usize = 32;

/// A decoded value of any type.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

/// A decoded value that is kept for later readers.
///
/// Its drop is code of the user. A panic in it goes no further: it would interrupt the drop of many objects, and the second
/// one would abort the process.
#[derive(Clone)]
pub(crate) struct KeptValue(Option<AnyValue>);

impl KeptValue {
    pub(crate) fn new(value: AnyValue) -> Self {
        Self(Some(value))
    }

    /// The value, if it is a `T`.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }

    fn is<T: 'static>(&self) -> bool {
        self.0.as_ref().is_some_and(|value| value.is::<T>())
    }
}

impl Drop for KeptValue {
    fn drop(&mut self) {
        let value = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

/// A small LRU cache of decoded values, for several readers of one object.
///
/// 1. Bounded in number and in bytes.
/// 2. Keeps no object alive: the value of a dropped object is removed with the next insertion.
/// 3. A scan that decodes each object once leaves no values behind: after [`MAX_VALUES`] insertions without a hit, only the
///    addresses of the last objects are kept, until one of them is looked up again.
pub(crate) struct DecodeCache<R> {
    /// Held for one lookup or insertion, never while a value is decoded or dropped.
    state: Mutex<State<R>>,
}

struct State<R> {
    /// Least recently used first.
    entries: VecDeque<Entry<R>>,
    /// Insertions since the last hit.
    misses_since_hit: usize,
}

struct Entry<R> {
    /// As long as this exists, no other record has the same address.
    of: Weak<R>,
    /// `None` if it was removed because there were no hits.
    value: Option<KeptValue>,
    bytes: usize,
}

impl<R> DecodeCache<R> {
    /// The value of a record, if it is cached as `T`.
    pub(crate) fn get<T: Send + Sync + 'static>(&self, of: &Arc<R>) -> Option<Arc<T>> {
        let mut state = self.lock();
        let fits = |entry: &Entry<R>| {
            std::ptr::eq(entry.of.as_ptr(), Arc::as_ptr(of))
                && entry.value.as_ref().is_none_or(|value| value.is::<T>())
        };
        let at = state.entries.iter().position(fits)?;
        state.misses_since_hit = 0;
        let entry = state.entries.remove(at)?;
        let value = entry.value.as_ref()?.get();
        state.entries.push_back(entry);
        value
    }

    /// Inserts the value of a record whose encoded length is `bytes`.
    pub(crate) fn put(&self, of: &Arc<R>, value: AnyValue, bytes: usize) {
        if bytes > MAX_BYTES / 4 {
            return;
        }
        let mut removed = Vec::new();
        let mut state = self.lock();
        state.misses_since_hit = state.misses_since_hit.saturating_add(1);
        let scanning = state.misses_since_hit > MAX_VALUES;
        state.entries.push_back(Entry { of: Arc::downgrade(of), value: Some(KeptValue::new(value)), bytes });
        if scanning {
            removed.extend(state.entries.iter_mut().filter_map(|entry| entry.value.take()));
        }
        state.evict(&mut removed);
        drop(state);
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        lock(&self.state)
    }
}

impl<R> State<R> {
    /// Removes entries over the bounds and those of dropped objects; their values go to `removed`.
    fn evict(&mut self, removed: &mut Vec<KeptValue>) {
        self.entries.retain_mut(|entry| {
            let alive = entry.of.strong_count() > 0;
            removed.extend(entry.value.take_if(|_| !alive));
            alive
        });
        let mut held: usize = self.entries.iter().map(|entry| entry.bytes).sum();
        while self.entries.len() > MAX_VALUES || held > MAX_BYTES {
            let Some(oldest) = self.entries.pop_front() else { return };
            held -= oldest.bytes;
            removed.extend(oldest.value);
        }
    }
}

impl<R> Default for DecodeCache<R> {
    fn default() -> Self {
        Self { state: Mutex::new(State { entries: VecDeque::new(), misses_since_hit: 0 }) }
    }
}

/// Prints the number of values, not the values.
impl<R> fmt::Debug for DecodeCache<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecodeCache({})", self.lock().entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_record_and_type() {
        let (cache, record) = (DecodeCache::default(), Arc::new(0));
        cache.put(&record, Arc::new("text".to_owned()), 10);
        assert_eq!(cache.get::<String>(&record).as_deref(), Some(&"text".to_owned()));
        assert!(cache.get::<u8>(&record).is_none(), "another type");
        assert!(cache.get::<String>(&Arc::new(0)).is_none(), "another record");
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_used_values() {
        let cache = DecodeCache::default();
        let records: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        for record in &records {
            cache.put(record, Arc::new(**record), 1);
            cache.get::<usize>(&records[0]);
        }
        assert_eq!(cache.lock().entries.len(), MAX_VALUES);
        assert!(cache.get::<usize>(&records[0]).is_some() && cache.get::<usize>(&records[1]).is_none());
        cache.put(&records[2], Arc::new(()), MAX_BYTES);
        assert!(cache.get::<()>(&records[2]).is_none(), "too large to keep");
        for record in &records {
            cache.put(record, Arc::new(**record), MAX_BYTES / 8);
        }
        assert!(cache.lock().entries.iter().map(|entry| entry.bytes).sum::<usize>() <= MAX_BYTES);
    }

    #[test]
    fn values_up_to_the_bounds_are_kept() {
        let records: Vec<Arc<usize>> = (0..MAX_VALUES).map(Arc::new).collect();
        for (count, bytes) in [(4, MAX_BYTES / 4), (MAX_VALUES, 1)] {
            let cache = DecodeCache::default();
            for record in &records[..count] {
                cache.put(record, Arc::new(**record), bytes);
            }
            let kept = records[..count].iter().filter(|record| cache.get::<usize>(record).is_some());
            assert_eq!(kept.count(), count, "values of {bytes} bytes");
        }
    }

    #[test]
    fn a_scan_leaves_no_values_until_one_is_decoded_again() {
        let cache = DecodeCache::default();
        let records: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        let values: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        for (record, value) in records.iter().zip(&values) {
            assert!(cache.get::<usize>(record).is_none());
            cache.put(record, Arc::clone(value) as AnyValue, 1);
        }
        assert!(values.iter().all(|value| Arc::strong_count(value) == 1), "a scan leaves no value behind");
        let last = &records[99];
        assert!(cache.get::<usize>(last).is_none(), "a second lookup: from now on values are kept");
        cache.put(last, Arc::new(99_usize), 1);
        assert_eq!(cache.get::<usize>(last).as_deref(), Some(&99));
        cache.put(&records[0], Arc::new(0_usize), 1);
        assert_eq!(cache.get::<usize>(&records[0]).as_deref(), Some(&0));
    }

    #[test]
    fn no_object_is_kept_alive() {
        let (cache, record) = (DecodeCache::default(), Arc::new(0));
        cache.put(&record, Arc::new(1), 1);
        let weak = Arc::downgrade(&record);
        drop(record);
        assert!(weak.upgrade().is_none());
        cache.put(&Arc::new(5), Arc::new(1), 1);
        assert_eq!(cache.lock().entries.len(), 1);
    }
}
