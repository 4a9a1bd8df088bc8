//! The end of a value in a text that arrives in chunks.

use super::{
    blocks::{BLOCK, BracketCounter},
    is_space,
};

/// Finds the end of one JSON value by its brackets and quotes; does not check that it is JSON.
///
/// 1. Feeding a value in one chunk or byte by byte finds the same end.
/// 2. The state has a constant size, however long or deep the value is.
#[derive(Debug)]
pub(crate) struct SpanFinder {
    state: State,
    brackets: BracketCounter,
}

/// A finder that is not in use.
impl Default for SpanFinder {
    fn default() -> Self {
        Self::new(0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte.
    Start,
    /// Inside brackets.
    Nested,
    /// Inside a string that is the value.
    Text,
    /// Inside such a string, after a backslash.
    Escape,
    /// Inside a number, a literal, or anything else without brackets or quotes.
    Word,
}

/// The result of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value ends before this position of the chunk.
    End(usize),
    /// The value continues in the next chunk.
    More,
}

impl SpanFinder {
    /// A finder for a value that should not be nested deeper than `limit`.
    pub(crate) fn new(limit: usize) -> Self {
        Self { state: State::Start, brackets: BracketCounter::inside(limit) }
    }

    /// Whether the value is nested too deeply so far.
    pub(crate) fn is_too_deep(&self) -> bool {
        self.state == State::Nested && self.brackets.too_deep
    }

    /// Reads `chunk` from `at` on. In the first call, `at` must be the first byte of the value.
    pub(crate) fn advance(&mut self, chunk: &[u8], mut at: usize) -> Step {
        if self.state == State::Start {
            match chunk.get(at) {
                None => return Step::More,
                Some(b'{' | b'[') => {
                    self.state = State::Nested;
                    at += 1;
                }
                Some(b'"') => {
                    self.state = State::Text;
                    at += 1;
                }
                Some(_) => self.state = State::Word,
            }
        }
        let rest = &chunk[at..];
        let length = match self.state {
            State::Nested => self.nested(rest),
            State::Text | State::Escape => self.text(rest),
            State::Start | State::Word => rest.iter().position(|byte| ends_word(*byte)),
        };
        length.map_or(Step::More, |length| Step::End(at + length))
    }

    fn nested(&mut self, rest: &[u8]) -> Option<usize> {
        let (blocks, tail) = rest.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            if let Some(end) = self.brackets.block(block, BLOCK) {
                return Some(index * BLOCK + end);
            }
        }
        if tail.is_empty() {
            return None;
        }
        // Spaces do not change the state.
        let mut block = [b' '; BLOCK];
        block[..tail.len()].copy_from_slice(tail);
        self.brackets.block(&block, tail.len()).map(|end| blocks.len() * BLOCK + end)
    }

    fn text(&mut self, rest: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.state == State::Escape && !rest.is_empty() {
            self.state = State::Text;
            at = 1;
        }
        loop {
            at += memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
            if rest[at] == b'"' {
                return Some(at + 1);
            }
            at += 2;
            if at > rest.len() {
                self.state = State::Escape;
                return None;
            }
        }
    }
}

fn ends_word(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b',' | b']' | b'}' | b':' | b'"')
}
