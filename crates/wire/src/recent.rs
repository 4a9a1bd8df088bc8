//! The values that were decoded last.

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Encoded bytes of all objects whose decoded values are kept; decoded they are some times that.
const BYTES: usize = 128 << 10;
/// Values that are kept at most.
const VALUES: usize = 32;

/// A decoded value of any type.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

/// The few values that were decoded last, for several readers of one object.
///
/// 1. Bounded in number and in bytes, whatever is decoded.
/// 2. Keeps no object alive: the value of one that is gone goes with the next that comes.
/// 3. Whoever decodes one object after another and none twice leaves nothing behind: after some values that nobody asked
///    for again, only the names of the last objects are kept, until somebody asks for one of those.
pub(crate) struct Recent<R> {
    /// Held for a look or a change, never while something is decoded or a value is dropped.
    state: Mutex<State<R>>,
}

struct State<R> {
    /// Least recently used first.
    entries: VecDeque<Entry<R>>,
    /// Values that came since one was asked for again.
    in_vain: usize,
}

struct Entry<R> {
    /// As long as this exists, no other record has its address.
    of: Weak<R>,
    /// None while nobody asks for anything twice.
    value: Option<AnyValue>,
    bytes: usize,
}

impl<R> Recent<R> {
    /// The value of a record as `T`, if it is among the last.
    pub(crate) fn get<T: Send + Sync + 'static>(&self, of: &Arc<R>) -> Option<Arc<T>> {
        let mut state = self.lock();
        let fits = |entry: &Entry<R>| {
            std::ptr::eq(entry.of.as_ptr(), Arc::as_ptr(of))
                && entry.value.as_ref().is_none_or(|value| value.is::<T>())
        };
        let at = state.entries.iter().position(fits)?;
        state.in_vain = 0;
        let entry = state.entries.remove(at)?;
        let value = Arc::clone(entry.value.as_ref()?).downcast().ok();
        state.entries.push_back(entry);
        value
    }

    /// Remembers the value of a record, whose encoded length is `bytes`.
    pub(crate) fn put(&self, of: &Arc<R>, value: AnyValue, bytes: usize) {
        if bytes > BYTES / 4 {
            return;
        }
        let mut gone = Vec::new();
        let mut state = self.lock();
        state.in_vain = state.in_vain.saturating_add(1);
        let sweeping = state.in_vain > VALUES;
        state.entries.push_back(Entry { of: Arc::downgrade(of), value: Some(value), bytes });
        if sweeping {
            gone.extend(state.entries.iter_mut().filter_map(|entry| entry.value.take()));
        }
        state.forget(&mut gone);
        drop(state);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> State<R> {
    /// Forgets what is too much and what is of objects that are gone; their values are handed out.
    fn forget(&mut self, gone: &mut Vec<AnyValue>) {
        self.entries.retain_mut(|entry| {
            let alive = entry.of.strong_count() > 0;
            gone.extend(entry.value.take_if(|_| !alive));
            alive
        });
        let mut held: usize = self.entries.iter().map(|entry| entry.bytes).sum();
        while self.entries.len() > VALUES || held > BYTES {
            let Some(oldest) = self.entries.pop_front() else { return };
            held -= oldest.bytes;
            gone.extend(oldest.value);
        }
    }
}

impl<R> Default for Recent<R> {
    fn default() -> Self {
        Self { state: Mutex::new(State { entries: VecDeque::new(), in_vain: 0 }) }
    }
}

/// How many; nothing of what they are.
impl<R> fmt::Debug for Recent<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recent({})", self.lock().entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_values_are_found_as_what_they_are() {
        let (recent, record) = (Recent::default(), Arc::new(0));
        recent.put(&record, Arc::new("text".to_owned()), 10);
        assert_eq!(recent.get::<String>(&record).as_deref(), Some(&"text".to_owned()));
        assert!(recent.get::<u8>(&record).is_none(), "another type");
        assert!(recent.get::<String>(&Arc::new(0)).is_none(), "another record");
    }

    #[test]
    fn there_is_a_bound_and_what_is_used_stays() {
        let recent = Recent::default();
        let records: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        for record in &records {
            recent.put(record, Arc::new(**record), 1);
            recent.get::<usize>(&records[0]);
        }
        assert_eq!(recent.lock().entries.len(), VALUES);
        assert!(recent.get::<usize>(&records[0]).is_some() && recent.get::<usize>(&records[1]).is_none());
        recent.put(&records[2], Arc::new(()), BYTES);
        assert!(recent.get::<()>(&records[2]).is_none(), "too large to keep");
        for record in &records {
            recent.put(record, Arc::new(**record), BYTES / 8);
        }
        assert!(recent.lock().entries.iter().map(|entry| entry.bytes).sum::<usize>() <= BYTES);
    }

    #[test]
    fn what_is_decoded_once_each_leaves_nothing_until_something_is_decoded_again() {
        let recent = Recent::default();
        let records: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        let values: Vec<Arc<usize>> = (0..100).map(Arc::new).collect();
        for (record, value) in records.iter().zip(&values) {
            assert!(recent.get::<usize>(record).is_none());
            recent.put(record, Arc::clone(value) as AnyValue, 1);
        }
        assert!(values.iter().all(|value| Arc::strong_count(value) == 1), "a sweep leaves no value behind");
        let last = &records[99];
        assert!(recent.get::<usize>(last).is_none(), "asked for again: from now on it pays to keep values");
        recent.put(last, Arc::new(99_usize), 1);
        assert_eq!(recent.get::<usize>(last).as_deref(), Some(&99));
        recent.put(&records[0], Arc::new(0_usize), 1);
        assert_eq!(recent.get::<usize>(&records[0]).as_deref(), Some(&0));
    }

    #[test]
    fn no_object_is_kept_alive() {
        let (recent, record) = (Recent::default(), Arc::new(0));
        recent.put(&record, Arc::new(1), 1);
        let weak = Arc::downgrade(&record);
        drop(record);
        assert!(weak.upgrade().is_none());
        recent.put(&Arc::new(5), Arc::new(1), 1);
        assert_eq!(recent.lock().entries.len(), 1);
    }
}
