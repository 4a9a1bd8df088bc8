//! Random mutations of inputs, from a seed.

use fastrand::Rng;

/// The longest mutated input, in bytes.
const MAX_LENGTH: usize = 8 << 10;

/// Tokens that are significant to the parsers.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"0.1",
    b"\n",
    b"\r\n",
    b" ",
    b"\t",
    b"\0",
    b"=",
    b"==",
    b"!=",
    b"!",
    b"(",
    b")",
    b" in (",
    b" notin (",
    b">",
    b"<",
    b"/",
    b"..",
    b".",
    b"*",
    b"~1",
    b"$patch",
    b"metadata",
    b"\"name\"",
    b"items",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
    b"%00",
    b"&",
    b";q=0",
    b";",
    b"'",
];

/// Mutates inputs of a corpus.
#[derive(Debug)]
pub struct Mutator {
    rng: Rng,
}

impl Mutator {
    /// Creates a mutator. The same seed gives the same mutations.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }

    /// Returns a random input of a corpus, changed in one place or a few.
    ///
    /// # Panics
    /// If the corpus is empty.
    pub fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut data = corpus[self.rng.usize(..corpus.len())].clone();
        for _ in 0..1 << self.rng.u32(0..4) {
            self.change(&mut data, corpus);
        }
        data.truncate(MAX_LENGTH);
        data
    }

    fn change(&mut self, data: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let (from, to) = self.range(data.len());
        match self.rng.u8(..9) {
            0 if from < data.len() => data[from] ^= 1 << self.rng.u8(..8),
            1 if from < data.len() => data[from] = self.rng.u8(..),
            2 => drop(data.drain(from..to)),
            3 => data.truncate(from),
            4 => {
                let twice = data[from..to].repeat(2);
                data.splice(from..to, twice);
            }
            5 => {
                let other = &corpus[self.rng.usize(..corpus.len())];
                let (start, end) = self.range(other.len());
                data.splice(from..to, other[start..end].iter().copied());
            }
            6 => {
                let moved: Vec<u8> = data.drain(from..to).collect();
                let at = self.rng.usize(..=data.len());
                insert(data, at, &moved);
            }
            7 => {
                // Long runs of one token test nesting and limits on length.
                let token = TOKENS[self.rng.usize(..TOKENS.len())];
                insert(data, from, &token.repeat(1 << self.rng.u32(0..9)));
            }
            _ => insert(data, from, TOKENS[self.rng.usize(..TOKENS.len())]),
        }
    }

    /// A random range, more often a short one than a long one.
    fn range(&mut self, len: usize) -> (usize, usize) {
        let from = self.rng.usize(..=len);
        let most = if self.rng.bool() { 8 } else { len };
        (from, (from + self.rng.usize(..=most)).min(len))
    }
}

fn insert(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    data.splice(at..at, bytes.iter().copied());
}
