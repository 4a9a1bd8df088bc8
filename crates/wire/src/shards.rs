//! Shards of a collection: ranges of hashes of uids (`shardSelector`, KEP-5866).

use crate::Uid;
use std::{fmt, num::NonZeroU32};

/// The offset basis and the prime of 64-bit FNV-1a.
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x0000_0100_0000_01b3);

/// The 64-bit FNV-1a hash of a text.
fn fnv1a(text: impl Iterator<Item = u8>) -> u64 {
    text.fold(FNV.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV.1))
}

impl Uid {
    /// The hash by which objects are divided into shards: 64-bit FNV-1a of the uid's text. If only a digest of the uid is
    /// stored, that of the digest, which is not what a server computes.
    pub fn shard_hash(&self) -> u64 {
        let hex = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        fnv1a(self.as_bytes().iter().enumerate().flat_map(|(at, byte)| {
            let hyphen = matches!(at, 4 | 6 | 8 | 10).then_some(b'-');
            hyphen.into_iter().chain([hex(byte >> 4), hex(byte & 0xf)])
        }))
    }
}

/// A range of hashes of uids.
///
/// ```
/// use kube_informer_wire::{ShardRange, Uid};
///
/// let (low, high) = (ShardRange::nth(0, 2).unwrap(), ShardRange::nth(1, 2).unwrap());
/// let uid = Uid::from("0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1");
/// assert!(low.contains(uid) != high.contains(uid));
/// assert_eq!(
///     high.to_string(),
///     "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardRange {
    first: u64,
    /// Included. Invariant: not below `first`.
    last: u64,
}

impl ShardRange {
    /// One of `of` ranges of the same size that together cover all hashes; `None` unless `index` is below `of`.
    pub fn nth(index: u32, of: u32) -> Option<Self> {
        let of = NonZeroU32::new(of).filter(|of| index < of.get())?;
        let start = |index: u64| (u128::from(index) << 64).div_ceil(u128::from(of.get()));
        let (start, end) = (start(u64::from(index)), start(u64::from(index) + 1));
        // The end is above the start, and at most 2^64.
        Some(Self { first: u64::try_from(start).ok()?, last: u64::try_from(end - 1).ok()? })
    }

    /// The index of the range that contains a uid, if all hashes are divided into `of` ranges.
    pub fn index_of(uid: Uid, of: NonZeroU32) -> u32 {
        let index = (u128::from(uid.shard_hash()) * u128::from(of.get())) >> 64;
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// Whether the range contains a uid.
    pub fn contains(&self, uid: Uid) -> bool {
        (self.first..=self.last).contains(&uid.shard_hash())
    }
}

impl fmt::Display for ShardRange {
    /// As a server reads it: the end is excluded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = (self.first, u128::from(self.last) + 1);
        write!(f, "shardRange(object.metadata.uid, '{start:#018x}', '{end:#018x}')")
    }
}

/// Selects objects by the hashes of their uids; everything by default.
///
/// A server without the feature `ShardedListAndWatch` (alpha in Kubernetes 1.36) ignores the selector silently and sends
/// everything: a client has to select again.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardSelector {
    /// Selects everything if empty.
    ranges: Vec<ShardRange>,
}

impl ShardSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether an object with this uid is selected.
    pub fn matches(&self, uid: Uid) -> bool {
        if self.is_everything() {
            return true;
        }
        let hash = uid.shard_hash();
        self.ranges.iter().any(|range| (range.first..=range.last).contains(&hash))
    }
}

impl From<ShardRange> for ShardSelector {
    fn from(range: ShardRange) -> Self {
        Self { ranges: vec![range] }
    }
}

impl FromIterator<ShardRange> for ShardSelector {
    /// Selects objects in any of the ranges. Without a range, selects everything.
    fn from_iter<I: IntoIterator<Item = ShardRange>>(ranges: I) -> Self {
        Self { ranges: ranges.into_iter().collect() }
    }
}

impl fmt::Display for ShardSelector {
    /// The value of the query parameter; empty if everything is selected.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            let separator = if index == 0 { "" } else { " || " };
            write!(f, "{separator}{range}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_fnv_1a() {
        // Test vectors of the authors of FNV.
        for (text, hash) in [("", FNV.0), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)] {
            assert_eq!(fnv1a(text.bytes()), hash, "{text}");
        }
        let uid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
        assert_eq!(Uid::from(uid).shard_hash(), fnv1a(uid.bytes()));
    }

    #[test]
    fn ranges_cover_all_hashes_once_and_agree_with_their_index() {
        for of in [1, 2, 3, 7, 8, 1000] {
            let ranges: Vec<_> = (0..of).map(|index| ShardRange::nth(index, of).unwrap()).collect();
            assert_eq!((ranges[0].first, ranges[ranges.len() - 1].last), (0, u64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].last + 1 == pair[1].first), "{of}");
            let count = NonZeroU32::new(of).unwrap();
            for number in 0..200u32 {
                let uid = Uid::from(format!("{number:08x}-36ce-4a0a-bd2f-9be5cf7bd0a1").as_str());
                let holding: Vec<_> = (0..of).filter(|index| ranges[*index as usize].contains(uid)).collect();
                assert_eq!(holding, [ShardRange::index_of(uid, count)], "{uid} of {of}");
            }
            assert_eq!(ShardRange::nth(of, of), None);
        }
        assert_eq!(ShardRange::nth(0, 0), None);
    }

    #[test]
    fn selectors_are_written_as_servers_read_them() {
        let range = |index, of| ShardRange::nth(index, of).unwrap();
        let low = "shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000')";
        let high = "shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')";
        let selector: ShardSelector = [range(0, 4), range(3, 4)].into_iter().collect();
        assert_eq!(selector.to_string(), format!("{low} || {high}"));
        assert_eq!(ShardSelector::everything().to_string(), "");
        let uid = Uid::from("0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1");
        assert!(ShardSelector::everything().matches(uid));
        assert_eq!(selector.matches(uid), range(0, 4).contains(uid) || range(3, 4).contains(uid));
        assert_eq!(ShardSelector::from(range(1, 4)).matches(uid), range(1, 4).contains(uid));
    }
}
