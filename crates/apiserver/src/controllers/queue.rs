//! The keys that controllers have to reconcile.

use kube_informer_wire::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Settled;

/// Keys by controller, each once. Bounded by the number of objects.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Locked for one operation at a time.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<(usize, Arc<str>), Entry>,
    /// The number of the last entry.
    sequence: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When the key was last queued.
    sequence: u64,
    /// The revision of the change that queued it last.
    revision: u64,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Queued,
    Running,
    /// Queued again while running.
    Repeat,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The number of the last entry.
    pub(super) fn mark(&self) -> u64 {
        self.lock().sequence
    }

    /// Queues keys because of a change at a revision.
    pub(super) fn add(&self, controller: usize, keys: Vec<Arc<str>>, revision: u64) {
        if keys.is_empty() {
            return;
        }
        let mut state = self.lock();
        for key in keys {
            state.sequence += 1;
            let sequence = state.sequence;
            let entry = Entry { sequence, revision, progress: Progress::Queued };
            let known = state.entries.entry((controller, key)).or_insert(entry);
            let progress =
                if known.progress == Progress::Queued { Progress::Queued } else { Progress::Repeat };
            // A key that was just inserted is queued; one that is running runs once more.
            *known = Entry { progress, ..entry };
        }
    }

    /// Forgets the keys that are queued. Those that are running run to their end.
    pub(super) fn clear(&self) {
        self.lock().entries.retain(|_, entry| entry.progress != Progress::Queued);
    }

    /// The first key, except these, that is queued, or that was queued after `mark` and is running.
    pub(super) fn next(&self, mark: u64, except: &BTreeSet<(usize, Arc<str>)>) -> Option<(usize, Arc<str>)> {
        let state = self.lock();
        let wanted = |entry: &Entry| entry.progress == Progress::Queued || entry.sequence > mark;
        let found = state.entries.iter().find(|(id, entry)| wanted(entry) && !except.contains(id));
        found.map(|(id, _)| id.clone())
    }
}

/// A key that is being reconciled. Dropped before it is finished, it is queued again.
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    id: (usize, Arc<str>),
}

impl<'q> Turn<'q> {
    /// `None` if the key is no longer queued.
    pub(super) fn begin(queue: &'q Queue, controller: usize, key: Arc<str>) -> Option<Self> {
        let id = (controller, key);
        let mut state = queue.lock();
        let entry = state.entries.get_mut(&id).filter(|entry| entry.progress == Progress::Queued)?;
        entry.progress = Progress::Running;
        drop(state);
        Some(Self { queue, id })
    }

    pub(super) fn key(&self) -> &str {
        &self.id.1
    }

    /// The key is reconciled. Changes up to the settled revision are those of the reconciliation itself and queue nothing.
    pub(super) fn finish(self, settled: Settled) {
        let mut state = self.queue.lock();
        let Some(entry) = state.entries.get_mut(&self.id) else { return };
        let repeat = entry.progress == Progress::Repeat;
        let seen = settled.is_some_and(|revision| entry.revision <= revision);
        if repeat && !seen {
            entry.progress = Progress::Queued;
        } else {
            state.entries.remove(&self.id);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(entry) = state.entries.get_mut(&self.id) {
            entry.progress = Progress::Queued;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = u64::MAX;
    const NONE: &BTreeSet<(usize, Arc<str>)> = &BTreeSet::new();

    fn queue(keys: &[(usize, &str)]) -> Queue {
        let queue = Queue::default();
        for (controller, key) in keys {
            queue.add(*controller, vec![(*key).into()], 1);
        }
        queue
    }

    fn begin(queue: &Queue) -> Turn<'_> {
        let (controller, key) = queue.next(NOW, NONE).expect("a key");
        Turn::begin(queue, controller, key).expect("queued")
    }

    #[test]
    fn keys_come_by_controller_and_then_by_name() {
        let queue = queue(&[(1, "a"), (0, "c"), (0, "b"), (0, "c")]);
        let mut order = Vec::new();
        while queue.next(NOW, NONE).is_some() {
            let turn = begin(&queue);
            order.push(turn.key().to_owned());
            turn.finish(None);
        }
        assert_eq!(order, ["b", "c", "a"]);
    }

    #[test]
    fn a_key_to_be_skipped_does_not_block_the_next_one() {
        let queue = queue(&[(0, "a"), (1, "b")]);
        let failed = BTreeSet::from([(0, Arc::from("a"))]);
        assert_eq!(queue.next(NOW, &failed), Some((1, "b".into())));
    }

    #[test]
    fn a_dropped_turn_stays_queued() {
        let queue = queue(&[(0, "a")]);
        drop(begin(&queue));
        assert!(queue.next(NOW, NONE).is_some());
    }

    #[test]
    fn a_key_that_changes_while_it_runs_runs_again_unless_it_was_settled() {
        let queue = queue(&[(0, "a")]);
        let turn = begin(&queue);
        queue.add(0, vec!["a".into()], 5);
        assert!(queue.next(NOW, NONE).is_none(), "it is running");
        turn.finish(Some(4));
        let turn = begin(&queue);
        queue.add(0, vec!["a".into()], 6);
        turn.finish(Some(6));
        assert!(queue.next(0, NONE).is_none());
    }

    #[test]
    fn a_writer_waits_for_a_key_that_it_queued_and_another_task_reconciles() {
        let queue = queue(&[(0, "old")]);
        let mark = queue.mark();
        let old = begin(&queue);
        assert!(queue.next(mark, NONE).is_none(), "queued before the write");
        queue.add(1, vec!["new".into()], 2);
        let new = begin(&queue);
        assert_eq!(queue.next(mark, NONE), Some((1, "new".into())));
        new.finish(None);
        old.finish(None);
        assert!(queue.next(0, NONE).is_none());
    }
}
