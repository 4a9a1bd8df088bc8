//! Counts brackets in JSON, 64 bytes at a time.
//!
//! Each block is turned into bit masks, one bit for each byte: quotes, escaped bytes, bytes inside strings, opening and
//! closing brackets. All steps are arithmetic on whole words, so that the cost hardly depends on the text.

use wide::u8x16;

pub(super) const BLOCK: usize = 64;

/// The nesting at the current position of a text.
#[derive(Debug)]
pub(super) struct BracketCounter {
    /// Open brackets; at least one until the end is found.
    depth: usize,
    limit: usize,
    /// Whether the depth was over the limit.
    pub(super) too_deep: bool,
    in_string: bool,
    /// Whether the next byte follows a backslash.
    escaped: bool,
}

impl BracketCounter {
    /// A counter after the first opening bracket.
    pub(super) fn inside(limit: usize) -> Self {
        Self { depth: 1, limit, too_deep: limit < 1, in_string: false, escaped: false }
    }

    /// Counts in the first `length` bytes of a block. Returns the position after the byte at which the depth falls to zero.
    pub(super) fn block(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let masks = Masks::of(block);
        let outside = !self.strings(&masks, length);
        let (opens, closes) = (masks.opens & outside, masks.closes & outside);
        let (opened, closed) = (opens.count_ones() as usize, closes.count_ones() as usize);
        if self.depth <= closed || self.depth + opened > self.limit {
            return self.one_by_one(opens, closes);
        }
        self.depth = self.depth + opened - closed;
        None
    }

    /// The bytes inside strings: from the opening quote up to the closing one, which is excluded.
    fn strings(&mut self, masks: &Masks, length: usize) -> u64 {
        let escaped = if masks.backslashes == 0 {
            u64::from(self.escaped)
        } else {
            escaped(masks.backslashes, self.escaped)
        };
        // If the chunk ends after a backslash, the first byte of the next chunk is escaped.
        self.escaped = match length {
            BLOCK => ends_escaping(masks.backslashes, self.escaped),
            _ => escaped >> length & 1 == 1,
        };
        let inside = prefix_xor(masks.quotes & !escaped) ^ if self.in_string { u64::MAX } else { 0 };
        self.in_string = inside >> (BLOCK - 1) == 1;
        inside
    }

    fn one_by_one(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if opens >> at & 1 == 1 {
                self.depth += 1;
                self.too_deep |= self.depth > self.limit;
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
        }
        None
    }
}

/// One bit for each byte of a block.
struct Masks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

impl Masks {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut masks = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        for (part, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            // Square brackets become curly ones: they differ in this bit only.
            let curly = bytes | u8x16::splat(0x20);
            let bits =
                |bytes: u8x16, byte| u64::from(bytes.simd_eq(u8x16::splat(byte)).to_bitmask()) << (16 * part);
            masks.quotes |= bits(bytes, b'"');
            masks.backslashes |= bits(bytes, b'\\');
            masks.opens |= bits(curly, b'{');
            masks.closes |= bits(curly, b'}');
        }
        masks
    }
}

const EVEN: u64 = 0x5555_5555_5555_5555;

/// Adds each run of backslashes that starts at an odd position to itself: the carry out of the run is its parity.
fn runs(backslashes: u64, escaped: bool) -> (u64, u64, bool) {
    let backslashes = backslashes & !u64::from(escaped);
    let follows = backslashes << 1 | u64::from(escaped);
    let odd_starts = backslashes & !EVEN & !follows;
    let (sum, carried) = odd_starts.overflowing_add(backslashes);
    (follows, sum << 1, carried)
}

/// The bytes after an odd number of backslashes.
fn escaped(backslashes: u64, escaped: bool) -> u64 {
    let (follows, inverted, _) = runs(backslashes, escaped);
    (EVEN ^ inverted) & follows
}

/// Whether the byte after the block follows an odd number of backslashes.
fn ends_escaping(backslashes: u64, escaped: bool) -> bool {
    if backslashes >> (BLOCK - 1) == 0 {
        return false;
    }
    let (_, _, carried) = runs(backslashes, escaped);
    carried
}

/// Each bit is the parity of the bits up to it.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}
