//! Moving live bodies out of their segments.

use crate::{
    appender::Appender,
    location::Location,
    segment::{Header, Segment},
    store::Shared,
};
use std::sync::Arc;

/// Words of garbage after which open segments are looked at again.
const GARBAGE_STEP: usize = 512;

/// The result of one step of compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionStep {
    /// Bytes of live content that were moved.
    pub moved: usize,
    /// Whether more is to be done.
    pub more: bool,
}

/// Why segments are emptied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// They are mostly garbage.
    Compact,
    /// Everything is rewritten.
    Rewrite,
}

/// The state of compaction between two steps.
#[derive(Default)]
pub(crate) struct Compaction {
    /// Writes the bodies that are moved.
    appender: Appender,
    /// The segment that is being emptied, for each goal. Both may be one: a body that has moved is passed over.
    compacting: Option<Victim>,
    rewriting: Option<Victim>,
    /// Which segments are still to be rewritten.
    pub(crate) unrewritten: Unrewritten,
    read: Vec<u8>,
    rewritten: Vec<u8>,
}

/// Which segments are still to be rewritten.
#[derive(Default)]
pub(crate) struct Unrewritten {
    /// Those with a smaller number.
    below: u32,
    /// Those to which bodies of the others were moved as they were.
    also: Vec<u32>,
}

impl Unrewritten {
    fn is_empty(&self) -> bool {
        self.below == 0 && self.also.is_empty()
    }

    fn contains(&self, number: u32) -> bool {
        number < self.below || self.also.contains(&number)
    }

    /// Bodies of some segments were moved to another one as they were.
    pub(crate) fn moved(&mut self, mut from: impl Iterator<Item = u32>, to: u32) {
        if from.any(|number| self.contains(number)) {
            self.also.push(to);
        }
    }
}

struct Victim {
    number: u32,
    segment: Arc<Segment>,
    /// The word at which the next body starts.
    next: usize,
}

impl Compaction {
    /// Moves bodies until about `budget` words have been looked at, or nothing is left to do.
    pub(crate) fn step(
        &mut self,
        shared: &Shared,
        goal: Goal,
        budget: usize,
        mut rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) -> CompactionStep {
        let budget = budget.max(1);
        let (mut seen, mut moved) = (0, 0);
        while seen < budget {
            if shared.is_congested() {
                // Segments that are not rewritten yet stay marked; compaction is due again after something was written.
                shared.tolerate(usize::MAX);
                return CompactionStep {
                    moved: moved * size_of::<u64>(),
                    more: matches!(goal, Goal::Rewrite),
                };
            }
            let Some(mut victim) = self.victim(goal).take().or_else(|| self.choose(shared, goal)) else {
                // The next step may be hours away.
                (self.read, self.rewritten) = (Vec::new(), Vec::new());
                if matches!(goal, Goal::Rewrite) {
                    self.unrewritten = Unrewritten::default();
                }
                if self.unrewritten.is_empty() && self.compacting.is_none() {
                    self.appender.free_spares(shared);
                }
                return CompactionStep { moved: moved * size_of::<u64>(), more: false };
            };
            while seen < budget && victim.next < victim.segment.written() {
                let (location, header) = victim.advance();
                seen += header.words();
                if shared.slots.get(header.slot) == location {
                    moved += header.words();
                    self.relocate(shared, &victim.segment, location, &mut rewrite);
                }
            }
            if victim.next < victim.segment.written() {
                *self.victim(goal) = Some(victim);
            } else {
                shared.pass(&victim.segment);
                self.appender.recycle(shared, victim.segment);
            }
        }
        CompactionStep { moved: moved * size_of::<u64>(), more: true }
    }

    /// Makes the goal [`Goal::Rewrite`] cover everything that is in segments now. All of them are closed.
    pub(crate) fn begin_rewrite(&mut self, shared: &Shared) {
        self.appender.begin_rewrite(shared);
        self.rewriting = None;
        let below = shared.table.all().iter().next_back().map_or(0, |(number, _)| number + 1);
        self.unrewritten = Unrewritten { below, also: Vec::new() };
    }

    fn victim(&mut self, goal: Goal) -> &mut Option<Victim> {
        match goal {
            Goal::Compact => &mut self.compacting,
            Goal::Rewrite => &mut self.rewriting,
        }
    }

    /// Copies one body and publishes its new location, unless the body is dropped meanwhile. A body that cannot be read stays
    /// where it is.
    fn relocate(
        &mut self,
        shared: &Shared,
        segment: &Segment,
        from: Location,
        rewrite: &mut impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) {
        let Ok(old) = shared.read_at(segment, from, &mut self.read) else {
            segment.set_stuck();
            shared.lose(segment.header(from.word as usize).slot, from);
            return;
        };
        self.rewritten.clear();
        let rewritten = rewrite(old.tag, &self.read, &mut self.rewritten)
            .and_then(|tag| Some((tag, u32::try_from(self.rewritten.len()).ok()?)));
        let (header, bytes) = match rewritten {
            Some((tag, len)) => (Header { slot: old.slot, len, tag }, &self.rewritten),
            None => (old, &self.read),
        };
        let to = self.appender.append(shared, header, bytes);
        let moved = shared.slots.replace(old.slot, from, to);
        if let Some(disk) = &shared.disk {
            disk.cache.remove(from);
        }
        let (left, words) = if moved { (from, old.words()) } else { (to, header.words()) };
        shared.release(left, words);
    }

    /// The segment to empty next.
    fn choose(&mut self, shared: &Shared, goal: Goal) -> Option<Victim> {
        let segments = shared.table.all();
        let mut closed = segments.iter().filter(|(_, segment)| segment.is_closed() && !segment.is_stuck());
        let chosen = match goal {
            Goal::Compact if !shared.is_compaction_due() => None,
            // Also one with a body that could not be read, if the attempt to empty it was given up.
            Goal::Compact if shared.is_outside_due() => segments.iter().find(|(_, segment)| {
                segment.is_closed() && segment.bodies_outside().is_some_and(|bodies| !bodies.is_passed())
            }),
            Goal::Compact => {
                // Segments in memory are about to be written to disk, without their garbage.
                let closed = closed.filter(|(_, segment)| shared.disk.is_none() || !segment.is_in_memory());
                let closed: Vec<_> = closed.collect();
                let worst = closed.iter().max_by_key(|(_, segment)| segment.garbage_permille());
                let worst = worst.filter(|(_, segment)| segment.garbage_permille() > 0);
                let chosen =
                    worst.filter(|_| shared.is_garbage_due()).or_else(|| last_on_disk(shared, &closed));
                if chosen.is_none() {
                    shared.tolerate(GARBAGE_STEP);
                }
                chosen.copied()
            }
            Goal::Rewrite => closed.find(|(number, _)| self.unrewritten.contains(*number)),
        };
        let (number, segment) = chosen?;
        Some(Victim { number, segment: Arc::clone(segment), next: 0 })
    }
}

/// The segment at the end of a file with much free space, if it fits into that.
fn last_on_disk<'a, 'b>(
    shared: &Shared,
    closed: &'a [(u32, &'b Arc<Segment>)],
) -> Option<&'a (u32, &'b Arc<Segment>)> {
    let free = shared.disk.as_ref()?.is_sparse()?;
    let blocks = |segment: &Segment| segment.bodies_on_disk().map(|bodies| bodies.blocks());
    let last = closed.iter().max_by_key(|(_, segment)| blocks(segment).map(|(_, end)| end))?;
    blocks(last.1).is_some_and(|(len, _)| len <= free).then_some(last)
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

#[cfg(test)]
mod tests {
    use crate::{Body, SegmentStore};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_rewrite_keeps_the_memory_that_it_frees_until_its_end() {
        let store = SegmentStore::new();
        let spare = || store.store.shared.spare.load(Relaxed);
        let bodies: Vec<Body> = (0..20_000).map(|_| store.insert(1, &[1; 1000])).collect();
        let full = store.memory_bytes();
        let shorten = |tag, bytes: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&bytes[..800]);
            Some(tag)
        };
        let mut most = 0;
        store.begin_rewrite();
        while store.rewrite(4 << 10, shorten).more {
            store.compact(4 << 10, |_, _, _| None);
            most = most.max(spare());
            assert!(store.memory_bytes() <= full + (512 << 10));
        }
        // A fifth of a store of 20 MB is not needed any more.
        assert!(most > 350_000, "{most} words");
        assert_eq!(spare(), 0);
        drop(bodies);
    }

    #[test]
    fn changes_during_a_rewrite_take_no_more_memory() {
        let store = SegmentStore::new();
        let mut rng = fastrand::Rng::with_seed(1);
        let mut bodies: Vec<Body> = (0..20_000).map(|_| store.insert(1, &[1; 1000])).collect();
        let full = store.memory_bytes();
        store.begin_rewrite();
        for round in 0..50 {
            for _ in 0..4000 {
                bodies[rng.usize(10_000..20_000)] = store.insert(1, &[2; 1000]);
            }
            while store.compact(64 << 10, |_, _, _| None).more {}
            // One step of a rewrite that takes much longer than the changes.
            assert!(store.rewrite(4 << 10, |_, _, _| None).more);
            let memory = store.memory_bytes();
            assert!(memory < full * 3 / 2, "{memory} of {full} in round {round}");
        }
    }
}
