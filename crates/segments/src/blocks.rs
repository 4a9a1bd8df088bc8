//! The space of a file, in blocks.

use crate::store::lock;
use std::{collections::BTreeMap, io, sync::Mutex};

/// Bytes of a block. A segment has whole blocks, anywhere in the file: free space is never too fragmented to be used.
pub(crate) const BLOCK: usize = 4096;
/// Free blocks for which nothing is moved: in a small file a fraction is a few blocks.
const MIN_FREE: u32 = 64;
/// The part of the blocks that may be free.
const MAX_FREE: u32 = 16;

/// Adjacent blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Which blocks of a file are in use.
#[derive(Default)]
pub(crate) struct Blocks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Length of each free run by its start. Invariant: no two touch, and none touches `end`.
    free: BTreeMap<u32, u32>,
    free_blocks: u32,
    /// No block from here on is in use.
    end: u32,
    /// The file may have blocks up to here.
    file_end: u32,
}

impl Blocks {
    /// Takes blocks: free ones, the lowest first, then new ones. `None` if the file would become too large.
    pub(crate) fn take(&self, mut wanted: u32) -> Option<Box<[Run]>> {
        let mut state = lock(&self.state);
        state.end.checked_add(wanted)?;
        let mut runs = Vec::new();
        while wanted > 0 {
            let Some((start, len)) = state.free.pop_first() else {
                runs.push(Run { start: state.end, len: wanted });
                state.end += wanted;
                state.file_end = state.file_end.max(state.end);
                break;
            };
            let taken = len.min(wanted);
            if taken < len {
                state.free.insert(start + taken, len - taken);
            }
            state.free_blocks -= taken;
            wanted -= taken;
            runs.push(Run { start, len: taken });
        }
        Some(runs.into())
    }

    /// Makes blocks available again.
    pub(crate) fn give_back(&self, runs: &[Run]) {
        let mut state = lock(&self.state);
        for run in runs {
            state.insert(*run);
        }
        while let Some((&start, &len)) =
            state.free.last_key_value().filter(|(start, len)| **start + **len == state.end)
        {
            state.free.pop_last();
            state.free_blocks -= len;
            state.end = start;
        }
    }

    /// Cuts the file off behind the last block in use.
    pub(crate) fn trim(&self, set_len: impl FnOnce(u64) -> io::Result<()>) {
        // Under the lock, so that no block is taken meanwhile that is about to be cut off.
        let mut state = lock(&self.state);
        if state.file_end > state.end && set_len(bytes(state.end)).is_ok() {
            state.file_end = state.end;
        }
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(lock(&self.state).file_end)
    }

    /// The number of free blocks if they are a large part of the file.
    pub(crate) fn too_many_free(&self) -> Option<u32> {
        let state = lock(&self.state);
        (state.free_blocks > MIN_FREE.max(state.end / MAX_FREE)).then_some(state.free_blocks)
    }
}

impl State {
    fn insert(&mut self, Run { mut start, mut len }: Run) {
        self.free_blocks += len;
        let before = self.free.range(..start).next_back().map(|(start, len)| (*start, *len));
        if let Some((before, its_len)) = before.filter(|(before, len)| before + len == start) {
            (start, len) = (before, its_len + len);
        }
        if let Some(its_len) = self.free.remove(&(start + len)) {
            len += its_len;
        }
        self.free.insert(start, len);
    }
}

fn bytes(blocks: u32) -> u64 {
    u64::from(blocks) * BLOCK as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_block_is_in_two_runs_and_the_file_is_as_short_as_it_can_be() {
        let blocks = Blocks::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut taken: Vec<Box<[Run]>> = Vec::new();
        for round in 0..2000 {
            if taken.is_empty() || random.usize(..100) < if round < 1000 { 60 } else { 40 } {
                let wanted = random.u32(1..40);
                let runs = blocks.take(wanted).expect("blocks");
                assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), wanted);
                taken.push(runs);
            } else {
                blocks.give_back(&taken.swap_remove(random.usize(..taken.len())));
            }
            blocks.trim(|_| Ok(()));
            if round % 50 != 0 {
                continue;
            }
            let mut used = HashSet::new();
            for run in taken.iter().flat_map(|runs| runs.iter()) {
                assert!((run.start..run.start + run.len).all(|block| used.insert(block)), "twice");
            }
            let end = used.iter().max().map_or(0, |last| last + 1);
            let state = lock(&blocks.state);
            assert_eq!((state.end, state.free_blocks), (end, end - used.len() as u32));
            assert_eq!(state.file_end, end);
        }
    }

    #[test]
    fn a_file_that_cannot_be_cut_off_is_cut_off_later() {
        let blocks = Blocks::default();
        let runs = blocks.take(10).expect("blocks");
        blocks.give_back(&runs);
        blocks.trim(|_| Err(io::ErrorKind::Other.into()));
        assert_eq!(blocks.bytes(), 10 * BLOCK as u64);
        let mut len = None;
        blocks.trim(|bytes| {
            len = Some(bytes);
            Ok(())
        });
        assert_eq!((len, blocks.bytes()), (Some(0), 0));
    }
}
