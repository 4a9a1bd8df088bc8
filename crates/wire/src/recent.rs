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
pub(crate) struct Recent<R> {
    /// Least recently used first. Held for a look or a change, never while something is decoded.
    values: Mutex<VecDeque<Entry<R>>>,
}

struct Entry<R> {
    /// As long as this exists, no other record has its address.
    of: Weak<R>,
    value: AnyValue,
    bytes: usize,
}

impl<R> Recent<R> {
    /// The value of a record as `T`, if it is among the last.
    pub(crate) fn get<T: Send + Sync + 'static>(&self, of: &Arc<R>) -> Option<Arc<T>> {
        let mut values = self.lock();
        let fits =
            |entry: &Entry<R>| std::ptr::eq(entry.of.as_ptr(), Arc::as_ptr(of)) && entry.value.is::<T>();
        let at = values.iter().position(fits)?;
        let entry = values.remove(at)?;
        let value = Arc::clone(&entry.value).downcast().ok();
        values.push_back(entry);
        value
    }

    /// Remembers the value of a record, whose encoded length is `bytes`.
    pub(crate) fn put(&self, of: &Arc<R>, value: AnyValue, bytes: usize) {
        if bytes > BYTES / 4 {
            return;
        }
        let mut values = self.lock();
        values.retain(|entry| entry.of.strong_count() > 0);
        values.push_back(Entry { of: Arc::downgrade(of), value, bytes });
        let mut held: usize = values.iter().map(|entry| entry.bytes).sum();
        while values.len() > VALUES || held > BYTES {
            held -= values.pop_front().map_or(held, |entry| entry.bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry<R>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Default for Recent<R> {
    fn default() -> Self {
        Self { values: Mutex::default() }
    }
}

/// How many; nothing of what they are.
impl<R> fmt::Debug for Recent<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recent({})", self.lock().len())
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
        assert_eq!(recent.lock().len(), VALUES);
        assert!(recent.get::<usize>(&records[0]).is_some() && recent.get::<usize>(&records[1]).is_none());
        recent.put(&records[2], Arc::new(()), BYTES);
        assert!(recent.get::<()>(&records[2]).is_none(), "too large to keep");
        for record in &records {
            recent.put(record, Arc::new(**record), BYTES / 8);
        }
        assert!(recent.lock().iter().map(|entry| entry.bytes).sum::<usize>() <= BYTES);
    }

    #[test]
    fn no_object_is_kept_alive() {
        let (recent, record) = (Recent::default(), Arc::new(0));
        recent.put(&record, Arc::new(1), 1);
        let weak = Arc::downgrade(&record);
        drop(record);
        assert!(weak.upgrade().is_none());
        recent.put(&Arc::new(5), Arc::new(1), 1);
        assert_eq!(recent.lock().len(), 1);
    }
}
