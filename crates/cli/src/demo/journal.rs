//! Lines about recent events.

use crate::terminal::printable;
use kube_informer_wire::sync::lock;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

/// Number of lines; older ones are removed.
const KEPT: usize = 200;

/// The latest lines. Cloning gives another handle on the same journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// Number of lines ever written.
    count: usize,
}

impl Journal {
    /// Adds a line. Names in it come from the server, so it is made printable.
    pub(crate) fn write(&self, line: impl Into<String>) {
        let mut state = self.lock();
        if state.lines.len() == KEPT {
            state.lines.pop_front();
        }
        state.lines.push_back(printable(&line.into()).into_owned());
        state.count += 1;
    }

    /// The latest lines, oldest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<String> {
        let state = self.lock();
        state.lines.iter().skip(state.lines.len().saturating_sub(count)).cloned().collect()
    }

    /// The lines after the first `seen`, and the number of lines now.
    pub(crate) fn since(&self, seen: usize) -> (Vec<String>, usize) {
        let count = self.lock().count;
        (self.latest(count - seen.min(count)), count)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_are_removed_and_new_ones_are_returned_once() {
        let journal = Journal::default();
        (0..KEPT + 5).for_each(|i| journal.write(i.to_string()));
        assert_eq!(journal.latest(2), ["203", "204"]);
        let (_, seen) = journal.since(0);
        assert_eq!(journal.since(seen).0, Vec::<String>::new());
        journal.write("new");
        assert_eq!(journal.since(seen).0, ["new"]);
    }
}
