//! The bodies of a segment that is in a file.

use crate::{
    ReadError, SegmentFile,
    blocks::{BLOCK, Blocks, Run},
    cipher::{Cipher, OVERHEAD},
    file::{read_exact_at, write_all_at},
    segment::{Header, WORD},
};
use std::{io, sync::Arc};

/// A file with encrypted bodies.
pub(crate) struct DiskFile {
    pub(crate) file: Box<dyn SegmentFile>,
    pub(crate) blocks: Blocks,
    pub(crate) cipher: Cipher,
}

/// Bodies in blocks of a file, encrypted. They are written at once and never changed.
///
/// Headers are in memory: finding a body and walking a segment read nothing, and the file has nothing but ciphertext. The
/// blocks are given back when the last reader of the segment is done.
pub(crate) struct OnDisk {
    file: Arc<DiskFile>,
    runs: Box<[Run]>,
    /// In ascending order of words.
    bodies: Box<[(u32, Header)]>,
    /// The number of the first body, see [`Cipher`].
    number: u64,
    words: usize,
}

impl OnDisk {
    /// Encrypts bodies and writes them. `plain` has each body at its word and room for its overhead behind it; afterwards it
    /// has what was written.
    pub(crate) fn write(
        file: &Arc<DiskFile>,
        plain: &mut [u8],
        bodies: Box<[(u32, Header)]>,
    ) -> io::Result<Self> {
        let number = file.cipher.numbers(bodies.len());
        for (index, (word, header)) in bodies.iter().enumerate() {
            let start = *word as usize * WORD;
            let body = &mut plain[start..start + header.words() * WORD];
            file.cipher.seal(number + index as u64, body, header.len as usize)?;
        }
        let too_large = || io::Error::other("the file has too many blocks");
        let blocks = u32::try_from(plain.len().div_ceil(BLOCK)).map_err(|_| too_large())?;
        let runs = file.blocks.take(blocks).ok_or_else(too_large)?;
        // From here on dropping it gives the blocks back, also if writing fails.
        let written = Self { file: Arc::clone(file), runs, bodies, number, words: plain.len() / WORD };
        let mut rest = &*plain;
        for run in &written.runs {
            let (part, later) = rest.split_at(rest.len().min(run.len as usize * BLOCK));
            write_all_at(&*file.file, part, run.offset())?;
            rest = later;
        }
        Ok(written)
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The number of its blocks, and the end of the last one.
    pub(crate) fn blocks(&self) -> (u32, u32) {
        let last = self.runs.iter().map(|run| run.start + run.len).max();
        (self.runs.iter().map(|run| run.len).sum(), last.unwrap_or_default())
    }

    /// Bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        size_of_val(&*self.runs) + size_of_val(&*self.bodies)
    }

    pub(crate) fn header(&self, at: usize) -> Header {
        self.bodies[self.index(at)].1
    }

    /// Replaces the content of `buffer` by the bytes of the body at a word.
    pub(crate) fn read(&self, at: usize, buffer: &mut Vec<u8>) -> Result<Header, ReadError> {
        let index = self.index(at);
        let header = self.bodies[index].1;
        buffer.clear();
        buffer.resize(header.len as usize + OVERHEAD, 0);
        let mut skipped = at * WORD;
        let mut rest = &mut buffer[..];
        for run in &self.runs {
            let len = run.len as usize * BLOCK;
            if skipped < len && !rest.is_empty() {
                let (part, later) = rest.split_at_mut(rest.len().min(len - skipped));
                read_exact_at(&*self.file.file, part, run.offset() + skipped as u64)?;
                rest = later;
            }
            skipped = skipped.saturating_sub(len);
        }
        self.file.cipher.open(self.number + index as u64, buffer).map_err(|_| ReadError::WrongBytes)?;
        Ok(header)
    }

    fn index(&self, at: usize) -> usize {
        self.bodies.partition_point(|(word, _)| (*word as usize) < at)
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.file.blocks.give_back(&self.runs);
    }
}

impl Run {
    fn offset(self) -> u64 {
        u64::from(self.start) * BLOCK as u64
    }
}
