//! Collects one value that may span chunks.

use crate::json::{SpanFinder, Step};
use bytes::Bytes;
use std::mem;

/// Collects one value up to a limit.
///
/// A value over the limit is read to its end, but only a short prefix is kept, which has the identity of the object.
#[derive(Default)]
pub(crate) struct Capture {
    finder: SpanFinder,
    keep: usize,
    /// Length of the value so far.
    length: usize,
    /// The part of the value in earlier chunks, up to `keep` bytes.
    buffer: Vec<u8>,
    /// Length of the last value that spanned chunks, as an estimate for the next one.
    usual: usize,
}

/// Bytes that are kept of an oversized value.
const PREFIX: usize = 16 << 10;

/// Maximum memory that is reserved in advance.
const MAX_RESERVED: usize = 64 << 10;

/// A complete value.
pub(crate) struct Captured {
    /// The value, or the prefix of one over the limit.
    pub(crate) bytes: Result<Bytes, Bytes>,
    /// Whether it is nested too deeply.
    pub(crate) too_deep: bool,
}

impl Captured {
    /// The value, if it is a string.
    pub(crate) fn text(&self) -> Option<String> {
        text(self.bytes.as_ref().ok()?)
    }
}

/// The text of a JSON string; `None` for anything else.
pub(crate) fn text(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

impl Capture {
    /// Begins a value at the next byte. Keeps up to `keep` bytes of it; it should not be nested deeper than `depth`.
    pub(crate) fn begin(&mut self, keep: usize, depth: usize) {
        self.finder = SpanFinder::new(depth);
        self.keep = keep;
        self.length = 0;
        self.buffer = Vec::new();
    }

    /// Reads `chunk` from `at` on; returns the value when it is complete.
    pub(crate) fn advance(&mut self, chunk: &Bytes, at: &mut usize) -> Option<Captured> {
        let start = *at;
        match self.finder.advance(chunk, start) {
            Step::More => {
                *at = chunk.len();
                self.keep(&chunk[start..]);
                None
            }
            Step::End(end) => {
                *at = end;
                Some(self.complete(chunk.slice(start..end)))
            }
        }
    }

    /// Memory in use for the value so far.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.buffer.capacity()
    }

    fn keep(&mut self, piece: &[u8]) {
        self.length += piece.len();
        if self.length > self.keep {
            // Over the limit: only the prefix is kept.
            self.buffer.truncate(PREFIX.min(self.keep));
            self.buffer.shrink_to_fit();
        }
        let bound = if self.length > self.keep { PREFIX.min(self.keep) } else { self.keep };
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.usual.max(piece.len()).min(bound));
        }
        let room = bound.saturating_sub(self.buffer.len()).min(piece.len());
        self.buffer.extend_from_slice(&piece[..room]);
    }

    fn complete(&mut self, last: Bytes) -> Captured {
        let too_deep = self.finder.is_too_deep();
        let whole = self.length + last.len() <= self.keep;
        let bytes = if self.length == 0 {
            if whole { last } else { last.slice(..last.len().min(PREFIX).min(self.keep)) }
        } else {
            self.keep(&last);
            self.usual = self.buffer.len().min(MAX_RESERVED);
            mem::take(&mut self.buffer).into()
        };
        Captured { bytes: if whole { Ok(bytes) } else { Err(bytes) }, too_deep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 10 << 10;
    const LIMIT: usize = 5 * PREFIX;

    /// Reads a value of `length` bytes in chunks. Returns it, the result, and the memory in use before the last chunk.
    fn captured(length: usize) -> (String, Result<Bytes, Bytes>, usize) {
        let json = format!("\"{}\"", "x".repeat(length - 2));
        let (mut capture, mut held) = (Capture::default(), 0);
        capture.begin(LIMIT, 1);
        for chunk in json.as_bytes().chunks(CHUNK) {
            if let Some(captured) = capture.advance(&Bytes::copy_from_slice(chunk), &mut 0) {
                return (json, captured.bytes, held);
            }
            held = capture.held();
        }
        panic!("no end");
    }

    #[test]
    fn a_value_up_to_the_limit_is_kept_whole() {
        for length in [CHUNK, PREFIX + CHUNK, LIMIT - 1, LIMIT] {
            let (json, bytes, _) = captured(length);
            assert_eq!(bytes, Ok(json.into()), "{length}");
        }
    }

    #[test]
    fn of_a_value_over_the_limit_a_prefix_is_kept() {
        for length in [LIMIT + 1, LIMIT + CHUNK, 3 * LIMIT] {
            let (json, bytes, held) = captured(length);
            assert_eq!(bytes, Err(Bytes::copy_from_slice(&json.as_bytes()[..PREFIX])), "{length}");
            assert!(held <= if length > LIMIT + CHUNK { PREFIX } else { LIMIT }, "{held} of {length}");
        }
    }
}
