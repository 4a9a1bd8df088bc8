//! A log of adds and runs of the keys of a work queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

/// A record of when each key of a work queue was added and processed.
///
/// It checks two promises of the queue: no key is processed by two workers at once, and each key is processed after it
/// was last added.
#[derive(Debug)]
pub struct WorkLog<K> {
    /// A logical clock: one tick for each add and each start.
    now: u64,
    added: BTreeMap<K, u64>,
    /// When the last successful run of each key started.
    done: BTreeMap<K, u64>,
    running: BTreeSet<K>,
}

impl<K> Default for WorkLog<K> {
    fn default() -> Self {
        Self { now: 0, added: BTreeMap::new(), done: BTreeMap::new(), running: BTreeSet::new() }
    }
}

impl<K: Ord + Clone + Display> WorkLog<K> {
    /// Records that a key is added to the queue. Call it before the add.
    pub fn added(&mut self, key: &K) {
        self.now += 1;
        self.added.insert(key.clone(), self.now);
    }

    /// Records that a worker starts on a key, and returns the time of the start.
    ///
    /// # Errors
    /// Another worker holds the key.
    pub fn started(&mut self, key: &K) -> Result<u64, String> {
        self.now += 1;
        match self.running.insert(key.clone()) {
            true => Ok(self.now),
            false => Err(format!("two workers hold {key}")),
        }
    }

    /// Records that a worker has finished with a key, without success.
    pub fn failed(&mut self, key: &K) {
        self.running.remove(key);
    }

    /// Records that a worker that started at this time has processed a key.
    pub fn succeeded(&mut self, key: &K, started: u64) {
        self.running.remove(key);
        self.done.insert(key.clone(), started);
    }

    /// Checks that every key was processed after it was last added.
    ///
    /// # Errors
    /// Names a key that was not.
    pub fn check(&self) -> Result<(), String> {
        let unprocessed =
            self.added.iter().find(|(key, added)| self.done.get(*key).is_none_or(|done| done < *added));
        unprocessed.map_or(Ok(()), |(key, _)| Err(format!("{key} was added and not processed since")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_added_while_it_is_processed_must_be_processed_again() {
        let mut log = WorkLog::default();
        log.added(&"a");
        let started = log.started(&"a").unwrap();
        log.added(&"a");
        log.succeeded(&"a", started);
        assert!(log.check().is_err());
        let started = log.started(&"a").unwrap();
        log.succeeded(&"a", started);
        assert_eq!(log.check(), Ok(()));
    }

    #[test]
    fn a_failed_run_does_not_count() {
        let mut log = WorkLog::default();
        log.added(&"a");
        log.started(&"a").unwrap();
        log.failed(&"a");
        assert!(log.check().is_err());
    }

    #[test]
    fn two_workers_on_one_key_are_reported() {
        let mut log = WorkLog::default();
        log.started(&"a").unwrap();
        assert!(log.started(&"a").is_err());
        assert!(log.started(&"b").is_ok());
    }
}
