//! Bodies that are outside of the store until compaction moves them into it.

use crate::{
    Body, ReadError, SegmentStore,
    location::Location,
    segment::{Header, Segment, words_of},
    store::Shared,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// Maximum number of adopted bodies in one segment.
const MAX_BODIES: usize = 1024;

/// Reads bodies that are somewhere else, such as in the file of a saved cache.
///
/// It is dropped when all of them were moved or dropped.
pub trait BodySource: Send + Sync + 'static {
    /// Replaces the content of `buffer` by the bytes of the body with a number. May block.
    fn read(&self, number: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError>;
}

/// A body that is to be [adopted](crate::SegmentStore::adopt).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideBody {
    /// Its number in the source.
    pub number: u32,
    /// The tag by which the caller knows how to read it.
    pub tag: u64,
    /// The number of its bytes.
    pub len: u32,
}

/// The bodies of one segment that is outside of the store. They never change.
pub(crate) struct Outside {
    source: Arc<dyn BodySource>,
    /// In ascending order of words.
    bodies: Box<[Place]>,
    words: usize,
    /// Whether compaction has moved all of them that can be read. It does not come back to this segment.
    passed: AtomicBool,
}

/// Where an adopted body is.
struct Place {
    /// The word at which it would be in a segment.
    word: u32,
    /// Its number in the source.
    number: u32,
    header: Header,
}

impl Outside {
    /// Calls `slot` for the slot of each body.
    pub(crate) fn new(
        source: Arc<dyn BodySource>,
        bodies: &[OutsideBody],
        mut slot: impl FnMut() -> u32,
    ) -> Self {
        let mut words = 0;
        let place = |&OutsideBody { number, tag, len }: &OutsideBody| {
            let word = u32::try_from(words).expect("as many bodies as fit into one segment");
            let header = Header { slot: slot(), len, tag };
            words += header.words();
            Place { word, number, header }
        };
        let bodies = bodies.iter().map(place).collect();
        Self { source, bodies, words, passed: AtomicBool::new(false) }
    }

    /// The word and the header of each body.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = (u32, Header)> {
        self.bodies.iter().map(|place| (place.word, place.header))
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        size_of_val(&*self.bodies)
    }

    /// Marks them as passed. Returns whether they were not passed before.
    pub(crate) fn pass(&self) -> bool {
        !self.passed.swap(true, Relaxed)
    }

    pub(crate) fn is_passed(&self) -> bool {
        self.passed.load(Relaxed)
    }

    pub(crate) fn header(&self, at: usize) -> Header {
        self.place(at).header
    }

    /// Replaces the content of `buffer` by the bytes of the body at a word.
    pub(crate) fn read(&self, at: usize, buffer: &mut Vec<u8>) -> Result<Header, ReadError> {
        let Place { number, header, .. } = *self.place(at);
        self.source.read(number, buffer)?;
        if buffer.len() != header.len as usize {
            return Err(ReadError::WrongBytes);
        }
        Ok(header)
    }

    fn place(&self, at: usize) -> &Place {
        &self.bodies[self.bodies.partition_point(|place| (place.word as usize) < at)]
    }
}

/// How many of the first bodies fit into one segment: at least one.
fn fitting(bodies: &[OutsideBody]) -> usize {
    let mut words = 0;
    let fits = |body: &&OutsideBody| {
        words += words_of(body.len as usize);
        u32::try_from(words).is_ok()
    };
    bodies.iter().take(MAX_BODIES).take_while(fits).count().max(1)
}

/// Bodies outside of the store.
impl<C> SegmentStore<C> {
    /// Makes bodies whose bytes stay in `source` until compaction moves them, which is due after
    /// [`move_adopted`](Self::move_adopted).
    ///
    /// # Panics
    ///
    /// With more than four billion bodies.
    pub fn adopt(&self, source: &Arc<dyn BodySource>, bodies: &[OutsideBody]) -> Vec<Body<C>> {
        let shared = &self.store.shared;
        shared.has_adopted.store(true, Relaxed);
        shared.may_move.store(false, Relaxed);
        let mut adopted = Vec::with_capacity(bodies.len());
        let mut rest = bodies;
        while !rest.is_empty() {
            let (bodies, later) = rest.split_at(fitting(rest));
            rest = later;
            let segment =
                Arc::new(Segment::outside(Outside::new(Arc::clone(source), bodies, || shared.slots.take())));
            let number = shared.adopt(&segment);
            let bodies = segment.bodies_outside().into_iter().flat_map(Outside::bodies);
            adopted.extend(bodies.map(|(_, header)| Body::new(Arc::clone(&self.store), header.slot)));
            shared.close(number, &segment);
        }
        adopted
    }

    /// Makes it due that compaction moves all bodies that are outside of the store.
    pub fn move_adopted(&self) {
        self.store.shared.may_move.store(true, Relaxed);
        self.store.shared.due.wake();
    }

    /// Whether compaction and rewriting may block, because bodies that they can move are on disk or outside of the store.
    /// Those that could not be read do not count.
    pub fn may_block(&self) -> bool {
        let shared = &self.store.shared;
        shared.disk.is_some() || shared.outside.load(Relaxed) > 0
    }
}

impl Shared {
    /// Adds a segment of bodies outside of the store, and publishes their locations. Returns its number.
    fn adopt(&self, segment: &Arc<Segment>) -> u32 {
        self.outside.fetch_add(1, Relaxed);
        let number = self.table.add(segment);
        for (word, header) in segment.bodies_outside().into_iter().flat_map(Outside::bodies) {
            self.retain(segment, header.words());
            self.slots.set(header.slot, Location { segment: number, word });
        }
        number
    }

    /// Notes that compaction has emptied a segment of bodies outside of the store, or cannot do so. Other segments are ignored.
    pub(crate) fn pass(&self, segment: &Segment) {
        if segment.bodies_outside().is_some_and(Outside::pass) {
            self.outside.fetch_sub(1, Relaxed);
        }
    }

    /// Whether compaction may and can move bodies from outside of the store.
    pub(crate) fn is_outside_due(&self) -> bool {
        self.outside.load(Relaxed) > 0 && self.may_move.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_have_a_word_of_their_own_are_in_one_segment() {
        let bodies = |count, len| vec![OutsideBody { number: 0, tag: 0, len }; count];
        assert_eq!(fitting(&bodies(3, 100)), 3);
        assert_eq!(fitting(&bodies(2000, 100)), MAX_BODIES);
        assert_eq!(fitting(&bodies(1, u32::MAX)), 1);
        assert_eq!(fitting(&bodies(20, u32::MAX)), 7, "of half a billion words");
    }
}
