//! One segment: a block of words that is appended to.

use crate::{ReadError, on_disk::OnDisk, outside::Outside};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Words in front of the bytes of each body.
pub(crate) const HEADER_WORDS: usize = 2;
pub(crate) const WORD: usize = size_of::<u64>();

/// A block of words, in memory, on disk or outside of the store.
pub(crate) struct Segment {
    words: Words,
    /// Words of live bodies, and one more while the segment is open for appending. At zero the segment is freed.
    live: AtomicU64,
    /// Words of all bodies that were ever written here. Final once the segment is closed.
    written: AtomicU64,
    closed: AtomicBool,
    /// Whether a body could not be read, so that compaction cannot empty the segment.
    stuck: AtomicBool,
}

enum Words {
    /// Words are atomic so that one thread appends while others read, without `unsafe` and without a lock: a word is stored
    /// once, before the location of its body is published, and never again.
    InMemory(Box<[AtomicU64]>),
    /// Complete from the beginning.
    OnDisk(OnDisk),
    /// Complete from the beginning.
    Outside(Outside),
}

/// The head of a body in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The slot of the body.
    pub(crate) slot: u32,
    /// Length of the body in bytes.
    pub(crate) len: u32,
    /// The value that the caller stored with the body.
    pub(crate) tag: u64,
}

/// Words that a body of `len` bytes takes, its header included.
pub(crate) fn words_of(len: usize) -> usize {
    HEADER_WORDS + len.div_ceil(WORD)
}

impl Header {
    /// Words of the body, this header included.
    pub(crate) fn words(self) -> usize {
        words_of(self.len as usize)
    }
}

impl Segment {
    /// An open segment in memory. The system provides its memory when it is written to.
    pub(crate) fn new(words: usize) -> Self {
        Self::of(bytemuck::zeroed_slice_box(words))
    }

    /// An open segment that uses the memory of an emptied one.
    pub(crate) fn of(words: Box<[AtomicU64]>) -> Self {
        Self::with(Words::InMemory(words), 0)
    }

    /// The memory of a segment, unless it is on disk or outside.
    pub(crate) fn into_memory(self) -> Option<Box<[AtomicU64]>> {
        match self.words {
            Words::InMemory(words) => Some(words),
            Words::OnDisk(_) | Words::Outside(_) => None,
        }
    }

    /// A segment that was written to disk. It is open until the locations of its bodies are published.
    pub(crate) fn on_disk(bodies: OnDisk) -> Self {
        let written = bodies.words();
        Self::with(Words::OnDisk(bodies), written)
    }

    /// A segment of bodies that are outside of the store. It is open until the locations of its bodies are published.
    pub(crate) fn outside(bodies: Outside) -> Self {
        let written = bodies.words();
        Self::with(Words::Outside(bodies), written)
    }

    fn with(words: Words, written: usize) -> Self {
        Self {
            words,
            live: AtomicU64::new(1),
            written: AtomicU64::new(written as u64),
            closed: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        }
    }

    /// Words in all.
    pub(crate) fn capacity(&self) -> usize {
        match &self.words {
            Words::InMemory(words) => words.len(),
            Words::OnDisk(bodies) => bodies.words(),
            Words::Outside(bodies) => bodies.words(),
        }
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.words, Words::InMemory(_))
    }

    /// The bodies, if they are on disk.
    pub(crate) fn bodies_on_disk(&self) -> Option<&OnDisk> {
        match &self.words {
            Words::OnDisk(bodies) => Some(bodies),
            Words::InMemory(_) | Words::Outside(_) => None,
        }
    }

    /// The bodies, if they are outside of the store.
    pub(crate) fn bodies_outside(&self) -> Option<&Outside> {
        match &self.words {
            Words::Outside(bodies) => Some(bodies),
            Words::InMemory(_) | Words::OnDisk(_) => None,
        }
    }

    /// Whether a body could not be read.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck.load(Relaxed)
    }

    /// A body could not be read: compaction leaves the segment alone.
    pub(crate) fn set_stuck(&self) {
        self.stuck.store(true, Relaxed);
    }

    /// Words of live bodies.
    pub(crate) fn live(&self) -> usize {
        let open = u64::from(!self.is_closed());
        self.live.load(Relaxed).saturating_sub(open) as usize
    }

    /// Words of all bodies that were ever written here.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Acquire) as usize
    }

    /// Words that were written and are not live, in thousandths.
    pub(crate) fn garbage_permille(&self) -> usize {
        let written = self.written();
        written.saturating_sub(self.live()) * 1000 / written.max(1)
    }

    /// Whether nothing is appended any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    /// Ends appending. Returns whether nothing in this segment is in use any more.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        self.closed.store(true, Release);
        self.release(1)
    }

    /// Counts the words of a body as live, before its location is published.
    pub(crate) fn retain(&self, words: usize) {
        self.live.fetch_add(words as u64, Relaxed);
    }

    /// No longer counts these words as live. Returns whether nothing in this segment is in use any more.
    #[must_use]
    pub(crate) fn release(&self, words: usize) -> bool {
        self.live.fetch_sub(words as u64, AcqRel) == words as u64
    }

    /// Writes a body. Only the appender that owns the segment calls this, each time behind the last body.
    pub(crate) fn write(&self, at: usize, header: Header, bytes: &[u8]) {
        let Words::InMemory(words) = &self.words else { return };
        let target = &words[at..at + header.words()];
        target[0].store(u64::from(header.slot) << 32 | u64::from(header.len), Relaxed);
        target[1].store(header.tag, Relaxed);
        let (whole, rest) = bytes.as_chunks::<WORD>();
        for (word, bytes) in target[HEADER_WORDS..].iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; WORD];
            last[..rest.len()].copy_from_slice(rest);
            target[HEADER_WORDS + whole.len()].store(u64::from_le_bytes(last), Relaxed);
        }
        self.written.store((at + header.words()) as u64, Release);
    }

    /// The header of the body at a word.
    pub(crate) fn header(&self, at: usize) -> Header {
        match &self.words {
            Words::InMemory(words) => header(words, at),
            Words::OnDisk(bodies) => bodies.header(at),
            Words::Outside(bodies) => bodies.header(at),
        }
    }

    /// Replaces the content of `buffer` by the bytes of the body at a word. Never fails in memory.
    pub(crate) fn read(&self, at: usize, buffer: &mut Vec<u8>) -> Result<Header, ReadError> {
        match &self.words {
            Words::InMemory(words) => Ok(read(words, at, buffer)),
            Words::OnDisk(bodies) => bodies.read(at, buffer),
            Words::Outside(bodies) => bodies.read(at, buffer),
        }
    }
}

fn header(words: &[AtomicU64], at: usize) -> Header {
    let first = words[at].load(Relaxed);
    Header { slot: (first >> 32) as u32, len: first as u32, tag: words[at + 1].load(Relaxed) }
}

fn read(words: &[AtomicU64], at: usize, buffer: &mut Vec<u8>) -> Header {
    let header = header(words, at);
    let words = &words[at + HEADER_WORDS..at + header.words()];
    buffer.clear();
    buffer.resize(words.len() * WORD, 0);
    let (bytes, _) = buffer.as_chunks_mut::<WORD>();
    for (bytes, word) in bytes.iter_mut().zip(words) {
        *bytes = word.load(Relaxed).to_le_bytes();
    }
    buffer.truncate(header.len as usize);
    header
}
