//! Finds the end of a string, eight bytes at a time.
//!
//! Strings in Kubernetes objects are short (keys, names, images): setting up a vector search for each one would cost more
//! than the search.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of `word` that are zero. Marks above the lowest one may be wrong.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

/// Marks the bytes of `word` that are below a space. Marks above the lowest one may be wrong.
fn controls(word: u64) -> u64 {
    word.wrapping_sub(ONES * 0x20) & !word & HIGHS
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Position of the first quote, backslash or control character from `at` on, or the length.
#[inline]
pub(super) fn find_special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(bytes, at) {
        let marks =
            zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\'))) | controls(word);
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes[at.min(bytes.len())..].iter().position(special).map_or(bytes.len(), |found| at + found)
}
