//! The latest things that happened, for people.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Lines kept; older ones go.
const KEPT: usize = 200;

/// The latest lines. Cloning gives another handle on the same journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// How many there were in all.
    count: usize,
}

impl Journal {
    pub(crate) fn write(&self, line: impl Into<String>) {
        let mut state = self.lock();
        if state.lines.len() == KEPT {
            state.lines.pop_front();
        }
        state.lines.push_back(line.into());
        state.count += 1;
    }

    /// The latest lines, oldest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<String> {
        let state = self.lock();
        state.lines.iter().skip(state.lines.len().saturating_sub(count)).cloned().collect()
    }

    /// The lines since there were `seen` of them, and how many there are now.
    pub(crate) fn since(&self, seen: usize) -> (Vec<String>, usize) {
        let count = self.lock().count;
        (self.latest(count - seen.min(count)), count)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_go_and_new_ones_are_told_once() {
        let journal = Journal::default();
        (0..KEPT + 5).for_each(|i| journal.write(i.to_string()));
        assert_eq!(journal.latest(2), ["203", "204"]);
        let (_, seen) = journal.since(0);
        assert_eq!(journal.since(seen).0, Vec::<String>::new());
        journal.write("new");
        assert_eq!(journal.since(seen).0, ["new"]);
    }
}
