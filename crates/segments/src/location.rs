//! Where a body is.

/// The number of a segment, and the word in it at which a body starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) segment: u32,
    pub(crate) word: u32,
}

/// The number of no segment: segments are numbered from 1.
const NO_SEGMENT: u32 = 0;

impl Location {
    /// The location of a slot that is not in use.
    pub(crate) const NONE: Self = Self { segment: NO_SEGMENT, word: 0 };

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { segment: (bits >> 32) as u32, word: bits as u32 }
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.segment) << 32 | u64::from(self.word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_one_word() {
        for location in
            [Location::NONE, Location { segment: 1, word: u32::MAX }, Location { segment: u32::MAX, word: 2 }]
        {
            assert_eq!(Location::from_bits(location.bits()), location);
        }
        assert_eq!(Location::NONE.bits(), 0);
    }
}
