//! Moving live bodies out of segments that are mostly garbage.

use crate::{
    appender::Appender,
    location::Location,
    segment::{Header, Segment},
    store::Shared,
};
use std::sync::Arc;

/// What one step of compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionStep {
    /// Bytes of live content that were moved.
    pub moved: usize,
    /// Whether more is due.
    pub more: bool,
}

/// The state of compaction between two steps.
#[derive(Default)]
pub(crate) struct Compaction {
    /// Writes the bodies that are moved.
    appender: Appender,
    /// The segment that is being emptied.
    victim: Option<Victim>,
    /// Segments with a smaller number are moved however little garbage they have.
    rewrite_below: u32,
    read: Vec<u8>,
    rewritten: Vec<u8>,
}

struct Victim {
    number: u32,
    segment: Arc<Segment>,
    /// The word at which the next body starts.
    next: usize,
}

impl Compaction {
    /// Moves bodies until about `budget` words have been looked at, or nothing is due.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        budget: usize,
        mut rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) -> CompactionStep {
        let (mut seen, mut moved) = (0, 0);
        while seen < budget.max(1) {
            let Some(victim) = self.victim.take().or_else(|| self.choose(shared)) else {
                return CompactionStep { moved: moved * size_of::<u64>(), more: false };
            };
            let mut victim = victim;
            while seen < budget.max(1) && victim.next < victim.segment.written() {
                let (location, header) = victim.advance();
                seen += header.words();
                if shared.slots.get(header.slot) == location {
                    moved += header.words();
                    self.relocate(shared, &victim.segment, location, &mut rewrite);
                }
            }
            if victim.next < victim.segment.written() {
                self.victim = Some(victim);
            }
        }
        CompactionStep { moved: moved * size_of::<u64>(), more: true }
    }

    /// Moves everything that is in closed segments now.
    pub(crate) fn rewrite_all(&mut self, shared: &Shared) {
        self.appender.close(shared);
        self.victim = None;
        self.rewrite_below = shared.table.all().last().map_or(0, |(number, _)| number + 1);
    }

    /// Copies one body and publishes its new location, unless the body is dropped meanwhile.
    fn relocate(
        &mut self,
        shared: &Shared,
        segment: &Segment,
        from: Location,
        rewrite: &mut impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) {
        let old = segment.read(from.word as usize, &mut self.read);
        self.rewritten.clear();
        let rewritten = rewrite(old.tag, &self.read, &mut self.rewritten)
            .and_then(|tag| Some((tag, u32::try_from(self.rewritten.len()).ok()?)));
        let (header, bytes) = match rewritten {
            Some((tag, len)) => (Header { slot: old.slot, len, tag }, &self.rewritten),
            None => (old, &self.read),
        };
        let to = self.appender.append(shared, header, bytes);
        let moved = shared.slots.replace(old.slot, from, to);
        let (left, words) = if moved { (from, old.words()) } else { (to, header.words()) };
        shared.release(left, words);
    }

    /// The segment to empty next: the one with the largest part of garbage, if there is too much garbage.
    fn choose(&mut self, shared: &Shared) -> Option<Victim> {
        let due = shared.is_compaction_due();
        if !due && self.rewrite_below == 0 {
            return None;
        }
        let segments = shared.table.all();
        let closed = || segments.iter().filter(|(_, segment)| segment.is_closed());
        let outdated = closed().find(|(number, _)| *number < self.rewrite_below);
        if outdated.is_none() {
            self.rewrite_below = 0;
        }
        let (number, segment) = outdated.or_else(|| {
            let worst = closed().max_by_key(|(_, segment)| segment.garbage_permille())?;
            (due && worst.1.garbage_permille() > 0).then_some(worst)
        })?;
        Some(Victim { number: *number, segment: Arc::clone(segment), next: 0 })
    }
}

impl Victim {
    /// Goes to the next body and returns the one before it.
    fn advance(&mut self) -> (Location, Header) {
        let location = Location { segment: self.number, word: self.next as u32 };
        let header = self.segment.header(self.next);
        self.next += header.words();
        (location, header)
    }
}
