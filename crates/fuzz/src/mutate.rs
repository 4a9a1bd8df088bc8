//! Changing inputs at random, from a seed.

use fastrand::Rng;

/// Longest input that mutations lead to.
const LONGEST: usize = 8 << 10;

/// What parsers look at.
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

/// Makes inputs from inputs.
#[derive(Debug)]
pub struct Mutator {
    rng: Rng,
}

impl Mutator {
    /// The same seed gives the same mutations.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }

    /// One of the inputs, changed in one place or in a few. There must be at least one.
    pub fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut data = corpus[self.rng.usize(..corpus.len())].clone();
        for _ in 0..1 << self.rng.u32(0..4) {
            self.change(&mut data, corpus);
        }
        data.truncate(LONGEST);
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
                // Long runs of one thing: nesting, and bounds on length.
                let token = TOKENS[self.rng.usize(..TOKENS.len())];
                insert(data, from, &token.repeat(1 << self.rng.u32(0..9)));
            }
            _ => insert(data, from, TOKENS[self.rng.usize(..TOKENS.len())]),
        }
    }

    /// A short stretch more often than a long one.
    fn range(&mut self, len: usize) -> (usize, usize) {
        let from = self.rng.usize(..=len);
        let most = if self.rng.bool() { 8 } else { len };
        (from, (from + self.rng.usize(..=most)).min(len))
    }
}

fn insert(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    data.splice(at..at, bytes.iter().copied());
}
