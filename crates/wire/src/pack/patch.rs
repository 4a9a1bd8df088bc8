//! Content as a difference to an earlier version of the same object.
//!
//! Most changes of an object change a few bytes: its version, a timestamp, a condition. Finding them takes less time than
//! compressing everything again, and so the new version is stored as the packed bytes of the earlier one, the *base*, and a
//! *patch* that turns the base into the new version.

/// Bytes that must agree for two versions to count as alike again after a difference.
const WINDOW: usize = 8;
/// The longest replacement of as many bytes by others that is found without looking at other positions.
const REPLACED: usize = 64;
/// The longest change that is looked for in the neighbourhood of a difference.
const NEAR: usize = 32;
/// The most by which the neighbourhood shifts.
const SHIFT: isize = 16;
/// Distance of the windows of the base that are found anywhere.
const STRIDE: usize = 4;
/// Bits of a hash of a window.
const HASH_BITS: u32 = 11;
/// Bytes of a match that is found anywhere.
const MIN_FAR: usize = 16;
/// Length of the longest base: reading it allocates as many bytes. No object is as long.
const MAX_BASE: u32 = 256 << 20;

/// The parts of patched content.
pub(super) struct Patched<'a> {
    /// Bytes of the base when it is unpacked.
    pub(super) base_len: u32,
    pub(super) patch: &'a [u8],
    /// The base, packed.
    pub(super) base: &'a [u8],
}

impl<'a> Patched<'a> {
    /// Reads what [`write`] wrote; `None` if it is something else.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (base_len, rest) = bytes.split_first_chunk()?;
        let (patch_len, rest) = rest.split_first_chunk()?;
        let (patch, base) = rest.split_at_checked(u32::from_le_bytes(*patch_len) as usize)?;
        let base_len = u32::from_le_bytes(*base_len);
        (base_len <= MAX_BASE).then_some(Self { base_len, patch, base })
    }
}

/// Replaces the content of `out` by patched content: `packed` is `base` when it is packed. `None` if the patch would have
/// more than `limit` bytes.
pub(super) fn write(base: &[u8], packed: &[u8], new: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    out.extend_from_slice(&u32::try_from(base.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let start = out.len();
    diff(base, new, limit, out)?;
    let patch_len = u32::try_from(out.len() - start).ok()?;
    out[start - 4..start].copy_from_slice(&patch_len.to_le_bytes());
    out.extend_from_slice(packed);
    Some(())
}

/// Replaces the content of `new` by the version of `len` bytes that the patch is for; `None` if it is not a patch for that.
pub(super) fn apply(base: &[u8], mut patch: &[u8], len: usize, new: &mut Vec<u8>) -> Option<()> {
    new.clear();
    new.reserve_exact(len);
    let mut at = 0_usize;
    while !patch.is_empty() {
        let inserted = take_number(&mut patch)?;
        let (inserted, rest) = patch.split_at_checked(usize::try_from(inserted).ok()?)?;
        patch = rest;
        let (moved, copied) = (take_number(&mut patch)?, take_number(&mut patch)?);
        at = at.checked_add_signed(isize::try_from(unfold(moved)).ok()?)?;
        let end = at.checked_add(usize::try_from(copied).ok()?)?;
        let copied = base.get(at..end)?;
        if new.len() + inserted.len() + copied.len() > len {
            return None;
        }
        new.extend_from_slice(inserted);
        new.extend_from_slice(copied);
        at = end;
    }
    (new.len() == len).then_some(())
}

/// Appends a patch to `out`: bytes to insert, and from where to copy how many bytes of the base, again and again.
fn diff(base: &[u8], new: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
    let max = out.len() + limit;
    // Everything before these is in the patch.
    let (mut done, mut last) = (0, 0);
    let (mut in_base, mut in_new) = (0, 0);
    let mut windows = None;
    loop {
        let alike = common_prefix(&base[in_base..], &new[in_new..]);
        let inserted = &new[done..in_new];
        if out.len() + inserted.len() > max {
            return None;
        }
        put_number(out, inserted.len() as u64);
        out.extend_from_slice(inserted);
        put_number(out, fold(in_base as i64 - last as i64));
        put_number(out, alike as u64);
        (in_base, in_new) = (in_base + alike, in_new + alike);
        (done, last) = (in_new, in_base);
        if in_new == new.len() {
            return (out.len() <= max).then_some(());
        }
        let room = max.saturating_sub(out.len());
        let next = near(base, new, in_base, in_new).or_else(|| {
            let windows = windows.get_or_insert_with(|| Windows::of(base));
            windows.find(base, new, in_new, room)
        });
        // Without another match the rest is inserted.
        (in_base, in_new) = next.unwrap_or((base.len(), new.len()));
    }
}

/// The length of the common beginning.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (ones, _) = one.as_chunks::<32>();
    let (others, _) = other.as_chunks::<32>();
    let start = 32 * ones.iter().zip(others).take_while(|(one, other)| one == other).count();
    start + one[start..].iter().zip(&other[start..]).take_while(|(one, other)| one == other).count()
}

/// Where both are alike again in the neighbourhood of a difference.
fn near(base: &[u8], new: &[u8], in_base: usize, in_new: usize) -> Option<(usize, usize)> {
    let is_alike = |at: usize, skipped: usize| {
        window_at(new, in_new + skipped).is_some_and(|wanted| window_at(base, at) == Some(wanted))
    };
    let replaced = (1..=REPLACED).find(|&skipped| is_alike(in_base + skipped, skipped));
    if let Some(skipped) = replaced {
        return Some((in_base + skipped, in_new + skipped));
    }
    for skipped in 0..=NEAR {
        let wanted = window_at(new, in_new + skipped)?;
        for shift in (1..=SHIFT).flat_map(|shift| [shift, -shift]) {
            let at = (in_base + skipped).checked_add_signed(shift).filter(|&at| at >= in_base);
            if let Some(at) = at.filter(|&at| window_at(base, at) == Some(wanted)) {
                return Some((at, in_new + skipped));
            }
        }
    }
    None
}

fn window_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<WINDOW>().map(|window| u64::from_le_bytes(*window))
}

/// Windows of a base by their hash.
struct Windows(Vec<u32>);

impl Windows {
    fn of(base: &[u8]) -> Self {
        let mut table = vec![u32::MAX; 1 << HASH_BITS];
        // Of equal ones the last counts.
        for at in (0..base.len().min(u32::MAX as usize)).step_by(STRIDE) {
            if let Some(window) = window_at(base, at) {
                table[hash(window)] = at as u32;
            }
        }
        Self(table)
    }

    /// The first position in `new` from `from` on, at most `room` bytes later, that continues like the base somewhere.
    fn find(&self, base: &[u8], new: &[u8], from: usize, room: usize) -> Option<(usize, usize)> {
        for in_new in from..from.saturating_add(room).min(new.len()) {
            let window = window_at(new, in_new)?;
            let at = self.0[hash(window)] as usize;
            if window_at(base, at) == Some(window) && common_prefix(&base[at..], &new[in_new..]) >= MIN_FAR {
                let before = base[..at].iter().rev().zip(new[from..in_new].iter().rev());
                let back = before.take_while(|(one, other)| one == other).count();
                return Some((at - back, in_new - back));
            }
        }
        None
    }
}

fn hash(window: u64) -> usize {
    (window.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASH_BITS)) as usize
}

/// A signed number as an unsigned one, small if it is close to zero.
fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unfold(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(base: &[u8], patch: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut new = b"before".to_vec();
        apply(base, patch, len, &mut new).map(|()| new)
    }
    use proptest::prelude::*;

    fn patch(base: &[u8], new: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        diff(base, new, limit, &mut out).map(|()| out)
    }

    #[test]
    fn a_small_change_is_a_small_patch() {
        let base: Vec<u8> = (0..12_000_u32).map(|i| ((i * i) >> 7) as u8).collect();
        let mut new = base.clone();
        new[100..106].copy_from_slice(b"834112");
        new.splice(5000..5004, *b"False");
        new.splice(9000..9000, *b"a whole new condition, longer than all that is looked for nearby");
        new.drain(11_000..11_100);
        let patch = patch(&base, &new, 200).expect("a patch");
        assert!(patch.len() < 140, "{}", patch.len());
        assert_eq!(applied(&base, &patch, new.len()), Some(new));
    }

    #[test]
    fn another_content_has_no_patch() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut noise = || std::iter::repeat_with(|| rng.u8(..)).take(4000).collect::<Vec<u8>>();
        assert_eq!(patch(&noise(), &noise(), 1000), None);
        assert_eq!(patch(&[], &noise(), 100), None);
        assert!(patch(&noise(), &[], 100).is_some(), "everything is removed");
    }

    #[test]
    fn patched_content_has_its_parts() {
        let mut out = vec![1, 2, 3];
        write(b"one base", b"packed", b"one base more", 100, &mut out).expect("a patch");
        let Patched { base_len, patch, base } = Patched::read(&out).expect("its parts");
        assert_eq!((base_len, base), (8, &b"packed"[..]));
        assert_eq!(applied(b"one base", patch, 13).as_deref(), Some(&b"one base more"[..]));
        assert_eq!(applied(b"one base", patch, 12), None, "another length");
        assert_eq!(applied(b"one", patch, 13), None, "another base");
        assert!(Patched::read(&out[..7]).is_none());
    }

    proptest! {
        #[test]
        fn a_patch_turns_the_base_into_the_new_version(
            base in prop::collection::vec(0_u8..4, 0..600),
            edits in prop::collection::vec((0_usize..600, 0_usize..40, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        ) {
            let mut new = base.clone();
            for (at, removed, inserted) in edits {
                let at = at.min(new.len());
                new.splice(at..(at + removed).min(new.len()), inserted);
            }
            let patch = patch(&base, &new, 10_000).expect("no limit");
            prop_assert_eq!(applied(&base, &patch, new.len()), Some(new));
        }

        #[test]
        fn any_bytes_are_a_patch_or_none(
            base in prop::collection::vec(any::<u8>(), 0..50),
            patch in prop::collection::vec(any::<u8>(), 0..50),
            len in 0_usize..100,
        ) {
            let applied = applied(&base, &patch, len);
            prop_assert!(applied.is_none_or(|new| new.len() == len));
        }
    }
}
