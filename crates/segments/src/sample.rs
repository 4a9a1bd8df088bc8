//! Reading a few bodies of many.

use crate::{location::Location, store::Shared};

/// Calls `visit` with the tag and the bytes of bodies in memory, one in each of `count` equal parts of all segments.
pub(crate) fn sample(shared: &Shared, count: usize, mut visit: impl FnMut(u64, &[u8])) {
    let segments = shared.table.all();
    let in_memory = || segments.iter().filter(|(_, segment)| segment.is_in_memory());
    let words: usize = in_memory().map(|(_, segment)| segment.written()).sum();
    let part = (words / count.max(1)).max(1);
    let (mut passed, mut next, mut buffer) = (0, part / 2, Vec::new());
    for (number, segment) in in_memory() {
        let (mut word, end) = (0, segment.written());
        while word < end {
            let (location, header) = (Location { segment: number, word: word as u32 }, segment.header(word));
            word += header.words();
            passed += header.words();
            // A segment is written once: its bytes are those of the body even if it moves meanwhile.
            if passed > next
                && shared.slots.get(header.slot) == location
                && segment.read(location.word as usize, &mut buffer).is_ok()
            {
                visit(header.tag, &buffer);
                next = passed.max(next + part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SegmentStore;

    #[test]
    fn samples_are_spread_over_all_bodies_in_use() {
        let store = SegmentStore::new();
        let bodies: Vec<_> =
            (0..10_000_u64).map(|tag| store.insert(tag, &tag.to_le_bytes().repeat(20))).collect();
        let mut tags = Vec::new();
        store.sample(100, |tag, bytes| {
            assert_eq!(bytes, tag.to_le_bytes().repeat(20));
            tags.push(tag);
        });
        assert!((95..=101).contains(&tags.len()), "{}", tags.len());
        assert!(tags.iter().zip(0..).all(|(tag, part)| tag / 100 == part), "{tags:?}");
        let dropped: Vec<_> = bodies.into_iter().enumerate().filter(|(at, _)| at % 2 == 0).collect();
        let mut left = 0;
        store.sample(100, |tag, _| left += u64::from(tag % 2 == 0));
        assert!(left >= 95, "only bodies in use: {left}");
        drop(dropped);
    }

    #[test]
    fn few_bodies_are_all_visited_once() {
        let store = SegmentStore::new();
        let bodies: Vec<_> = (0..7).map(|tag| store.insert(tag, &[0; 100])).collect();
        let mut tags = Vec::new();
        store.sample(1000, |tag, _| tags.push(tag));
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6]);
        drop(bodies);
        store.sample(1000, |_, _| panic!("no body is in use"));
        store.sample(0, |_, _| panic!("no body is in use"));
    }
}
