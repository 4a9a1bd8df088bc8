//! Writing segments from memory to disk.

use crate::{
    compaction::Unrewritten,
    disk::{Disk, SPILL},
    location::Location,
    on_disk::OnDisk,
    segment::{Header, Segment, WORD},
    store::Shared,
};
use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Live bodies of closed segments in memory, which become one segment on disk.
///
/// Nothing changes for readers until everything is written: after a failure the bodies are where they were.
#[derive(Default)]
struct Batch {
    /// Holds what the bodies are read from.
    segments: Vec<Arc<Segment>>,
    /// The segment of each body, and where it is.
    from: Vec<(usize, Location)>,
    bodies: Vec<(u32, Header)>,
    plain: Vec<u8>,
}

/// Writes about [`SPILL`] bytes to disk.
pub(crate) fn spill(shared: &Shared, disk: &Disk, unrewritten: &mut Unrewritten) -> io::Result<()> {
    disk.trim();
    let file = disk.open()?;
    let mut batch = Batch::collect(shared);
    if batch.bodies.is_empty() {
        return Ok(());
    }
    let bodies = batch.bodies.clone().into_boxed_slice();
    let written = OnDisk::write(file, &mut batch.plain, bodies)?;
    batch.plain = Vec::new();
    let number = batch.publish(shared, disk, Arc::new(Segment::on_disk(written)));
    unrewritten.moved(batch.from.iter().map(|(_, from)| from.segment), number);
    Ok(())
}

impl Batch {
    fn collect(shared: &Shared) -> Self {
        let (mut batch, mut buffer) = (Self::default(), Vec::new());
        let all = shared.table.all();
        let closed = |segment: &Segment| segment.is_in_memory() && segment.is_closed();
        for (number, segment) in all.iter().filter(|(_, segment)| closed(segment)) {
            if batch.plain.len() >= SPILL {
                break;
            }
            let mut word = 0;
            while word < segment.written() {
                let location = Location { segment: number, word: word as u32 };
                let header = segment.header(word);
                // In memory, where reading does not fail.
                if shared.slots.get(header.slot) == location && segment.read(word, &mut buffer).is_ok() {
                    batch.from.push((batch.segments.len(), location));
                    batch.bodies.push(((batch.plain.len() / WORD) as u32, header));
                    batch.plain.extend_from_slice(&buffer);
                    batch.plain.resize(batch.plain.len() + header.words() * WORD - buffer.len(), 0);
                }
                word += header.words();
            }
            batch.segments.push(Arc::clone(segment));
        }
        batch
    }

    /// Lets the slots point to what was written. Returns the number of the segment.
    fn publish(&self, shared: &Shared, disk: &Disk, segment: Arc<Segment>) -> u32 {
        let number = shared.table.add(&segment);
        let mut buffer = Vec::new();
        for ((in_memory, from), (word, header)) in self.from.iter().zip(&self.bodies) {
            let to = Location { segment: number, word: *word };
            if self.segments[*in_memory].read(from.word as usize, &mut buffer).is_ok() {
                disk.cache.put(to, &buffer);
            }
            shared.retain(&segment, header.words());
            if shared.slots.replace(header.slot, *from, to) {
                shared.release(*from, header.words());
            } else {
                // Dropped, or moved by compaction meanwhile.
                disk.cache.remove(to);
                shared.release(to, header.words());
            }
        }
        shared.close(number, &segment);
        number
    }
}

impl Shared {
    /// Bytes of segments in memory, and of memory that is kept for segments.
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.table.memory_words() + self.spare.load(Relaxed)) * WORD
    }

    /// Whether there is enough to write to disk.
    pub(crate) fn is_spill_due(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.closed.load(Relaxed) >= SPILL)
    }

    /// Whether so much could not be written that compaction must not bring more into memory.
    pub(crate) fn is_congested(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| self.memory_bytes() > disk.options.buffer_bytes / 2)
    }

    /// Whether more may be inserted.
    pub(crate) fn has_room(&self) -> bool {
        self.disk.as_ref().is_none_or(|disk| self.memory_bytes() <= disk.options.buffer_bytes)
    }
}
