//! Where a value ends, in a text that arrives in chunks.

use super::{find::find_quote, is_space};

/// Finds the end of one JSON value by its brackets and quotes alone; whether it is JSON is for others to say.
///
/// 1. Feeding a value in one chunk or byte by byte finds the same end.
/// 2. State is a few words however long or deep the value is.
#[derive(Debug, Default)]
pub(crate) struct SpanFinder {
    depth: usize,
    deepest: usize,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte.
    #[default]
    Start,
    /// Between strings, inside brackets.
    Structure,
    /// Inside a string.
    Text,
    /// Inside a string, after a backslash.
    Escape,
    /// Inside a number, or a word, or nonsense that stands in their place.
    Word,
}

/// What a chunk did to the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value ends before this position of the chunk.
    End(usize),
    /// The value goes on after the chunk.
    More,
}

impl SpanFinder {
    /// How deeply the value is nested, as far as it has been seen.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Looks at `chunk` from `at` on. The first call must be made at the first byte of the value.
    pub(crate) fn advance(&mut self, chunk: &[u8], mut at: usize) -> Step {
        while at < chunk.len() {
            match self.state {
                State::Start => self.start(chunk[at], &mut at),
                State::Structure => at = self.structure(chunk, at),
                State::Text => {
                    at = find_quote(chunk, at);
                    if let Some(byte) = chunk.get(at) {
                        self.state = match byte {
                            b'\\' => State::Escape,
                            _ => State::Structure,
                        };
                        at += 1;
                    }
                }
                State::Escape => {
                    self.state = State::Text;
                    at += 1;
                }
                State::Word => {
                    let ends =
                        |byte: &u8| is_space(*byte) || matches!(byte, b',' | b']' | b'}' | b':' | b'"');
                    let Some(length) = chunk[at..].iter().position(ends) else { return Step::More };
                    return Step::End(at + length);
                }
            }
            if self.depth == 0 && self.state == State::Structure {
                return Step::End(at);
            }
        }
        Step::More
    }

    fn start(&mut self, byte: u8, at: &mut usize) {
        match byte {
            b'{' | b'[' => {
                (self.depth, self.deepest) = (1, 1);
                self.state = State::Structure;
            }
            b'"' => self.state = State::Text,
            _ => {
                self.state = State::Word;
                return;
            }
        }
        *at += 1;
    }

    /// Follows brackets up to the next string, the end of the value or of the chunk.
    fn structure(&mut self, chunk: &[u8], from: usize) -> usize {
        for (offset, byte) in chunk[from..].iter().enumerate() {
            match byte {
                b'"' => {
                    self.state = State::Text;
                    return from + offset + 1;
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return from + offset + 1;
                    }
                }
                _ => {}
            }
        }
        chunk.len()
    }
}
