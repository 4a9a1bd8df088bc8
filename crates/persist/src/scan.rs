//! Finds the newest intact position of a log, and the state there.

use crate::{
    bodies::stored_len,
    checksum::Checksums,
    codec::Decoder,
    discarded::Discarded,
    entry::{Entry, PUT_HEADER},
    frame::{self, FrameKind},
    position::Position,
    restored::{SavedContent, SavedObject, key_of},
    seal::Sealing,
};
use std::ops::Range;

/// The state at the newest intact position.
#[derive(Debug)]
pub(crate) struct Scan {
    /// `None` if nothing was committed.
    pub(crate) position: Option<Position>,
    pub(crate) objects: Vec<SavedObject>,
    pub(crate) dictionaries: Vec<(u32, Vec<u8>)>,
    /// Where the log ends behind that position.
    pub(crate) log_end: usize,
    /// The checksum of the last frame there.
    pub(crate) checksum: u32,
    /// How much of the log was synced.
    pub(crate) synced: u64,
    /// Where the bodies ended at that position.
    pub(crate) bodies_end: u64,
    /// How many bytes of the log and of the bodies belong to the objects.
    pub(crate) live: u64,
}

/// A change of one key.
#[derive(Debug, Clone, Copy)]
struct Change {
    object: SavedObject,
    is_delete: bool,
}

/// The state of a scan: the entries that were read so far.
#[derive(Debug, Default)]
struct Walk {
    changes: Vec<Change>,
    /// How many of them, from the first on, are in the order of keys.
    sorted: usize,
    dictionaries: Vec<(u32, Range<usize>)>,
    /// The end of the body that is furthest behind.
    bodies_needed: u64,
    committed: Committed,
}

/// The part of the log that the newest position covers.
#[derive(Debug, Default)]
struct Committed {
    position: Option<Position>,
    changes: usize,
    dictionaries: usize,
    log_end: usize,
    checksum: u32,
    synced: u64,
    bodies_end: u64,
}

/// Why an intact frame is not used.
enum Refusal {
    /// It contradicts the format.
    Malformed,
    /// Its position covers bodies that are not in the file of bodies.
    BodiesMissing,
}

/// Reads the frames from `start` on and decrypts them in place. `bodies_len` is the length of the file of bodies.
pub(crate) fn scan(
    log: &mut [u8],
    start: usize,
    bodies_len: u64,
    checksums: Checksums,
    sealing: Option<&Sealing>,
) -> Result<Scan, Discarded> {
    let mut walk =
        Walk { committed: Committed { log_end: start, ..Committed::default() }, ..Walk::default() };
    let (mut at, mut previous) = (start, 0);
    while at < log.len() {
        let damaged = Discarded::Damaged { at: at as u64 };
        let next = frame::read(log, at, checksums).filter(|next| next.place.previous == previous);
        let Some(found) = next else {
            // The end of a log may be incomplete, but not what was on the disk already.
            if frame::was_synced(log, at, checksums) {
                return Err(damaged);
            }
            break;
        };
        let Some(entries) = found.open(log, sealing) else { return Err(damaged) };
        match walk.frame(log, found.kind, entries, bodies_len, sealing.is_some()) {
            Ok(()) => (at, previous) = (found.payload.end, found.checksum),
            Err(Refusal::Malformed) => return Err(damaged),
            Err(Refusal::BodiesMissing) if walk.committed.position.is_none() => {
                return Err(Discarded::BodiesMissing);
            }
            Err(Refusal::BodiesMissing) => break,
        }
        if found.kind == FrameKind::Commit {
            (walk.committed.log_end, walk.committed.checksum) = (at, previous);
            walk.committed.synced = found.place.synced;
        }
    }
    Ok(walk.finish(log, sealing.is_some()))
}

impl Walk {
    fn frame(
        &mut self,
        log: &[u8],
        kind: FrameKind,
        entries: Range<usize>,
        bodies_len: u64,
        is_encrypted: bool,
    ) -> Result<(), Refusal> {
        let mut from = Decoder::new(&log[entries.clone()]);
        let mut ended = false;
        while !from.is_empty() {
            if ended {
                return Err(Refusal::Malformed);
            }
            let entry = Entry::decode(&mut from).ok_or(Refusal::Malformed)?;
            let end = entries.end - from.remaining();
            match entry {
                Entry::Put { key, identity, content } => {
                    let needed = content.at.checked_add(stored_len(content.len, is_encrypted) as u64);
                    self.bodies_needed = self.bodies_needed.max(needed.ok_or(Refusal::Malformed)?);
                    self.change(log, end - identity.len() - key.len(), key, identity.len(), Some(content));
                }
                Entry::Delete { key } => self.change(log, end - key.len(), key, 0, None),
                Entry::Dictionary { id, bytes } => self.dictionaries.push((id, end - bytes.len()..end)),
                Entry::Position { bodies_len: covered, position } => {
                    if kind != FrameKind::Commit || self.bodies_needed > covered {
                        return Err(Refusal::Malformed);
                    }
                    if covered > bodies_len {
                        return Err(Refusal::BodiesMissing);
                    }
                    self.commit(position, covered);
                    ended = true;
                }
            }
        }
        if ended == (kind == FrameKind::Commit) { Ok(()) } else { Err(Refusal::Malformed) }
    }

    fn change(
        &mut self,
        log: &[u8],
        at: usize,
        key: &str,
        identity_len: usize,
        content: Option<SavedContent>,
    ) {
        let is_delete = content.is_none();
        let content = content.unwrap_or(SavedContent { tag: 0, len: 0, at: 0, checksum: 0 });
        // Both lengths were read from 32 bits.
        let object =
            SavedObject { at, key_len: key.len() as u32, identity_len: identity_len as u32, content };
        // Compared here, while both keys are in the cache of the processor.
        let is_behind = |last: &Change| key_of(log, &last.object) < key.as_bytes();
        if self.sorted == self.changes.len() && self.changes.last().is_none_or(is_behind) {
            self.sorted += 1;
        }
        self.changes.push(Change { object, is_delete });
    }

    fn commit(&mut self, position: Position, bodies_end: u64) {
        self.committed.position = Some(position);
        self.committed.changes = self.changes.len();
        self.committed.dictionaries = self.dictionaries.len();
        self.committed.bodies_end = bodies_end;
    }

    fn finish(mut self, log: &[u8], is_encrypted: bool) -> Scan {
        self.changes.truncate(self.committed.changes);
        self.dictionaries.truncate(self.committed.dictionaries);
        let objects = newest_of_each_key(log, &self.changes, self.sorted.min(self.changes.len()));
        let mut dictionaries: Vec<(u32, Vec<u8>)> = Vec::new();
        for (id, range) in self.dictionaries.into_iter().rev() {
            if dictionaries.iter().all(|(other, _)| *other != id) {
                dictionaries.push((id, log[range].to_vec()));
            }
        }
        dictionaries.sort_unstable_by_key(|(id, _)| *id);
        let size = |object: &SavedObject| {
            let entry = PUT_HEADER as u64 + u64::from(object.key_len) + u64::from(object.identity_len);
            entry + stored_len(object.content.len, is_encrypted) as u64
        };
        let of_dictionaries: u64 = dictionaries.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        Scan {
            live: objects.iter().map(size).sum::<u64>() + of_dictionaries,
            position: self.committed.position,
            objects,
            dictionaries,
            log_end: self.committed.log_end,
            checksum: self.committed.checksum,
            synced: self.committed.synced,
            bodies_end: self.committed.bodies_end,
        }
    }
}

/// The newest change of each key, without deletes, in the order of keys.
///
/// A list arrives in the order of keys, and a rewrite is written in it, so that most of a log is `sorted` already: only
/// what was appended later is sorted, and merged with it.
fn newest_of_each_key(log: &[u8], changes: &[Change], sorted: usize) -> Vec<SavedObject> {
    let key = |change: &Change| key_of(log, &change.object);
    let (sorted, rest) = changes.split_at(sorted);
    let mut rest = rest.to_vec();
    // The sort is stable: the newest change of a key is its last one.
    rest.sort_by(|one, other| key(one).cmp(key(other)));
    rest.dedup_by(|next, kept| {
        let is_same = key(next) == key(kept);
        if is_same {
            *kept = *next;
        }
        is_same
    });
    let mut objects = Vec::with_capacity(sorted.len() + rest.len());
    let mut keep = |change: &Change| {
        if !change.is_delete {
            objects.push(change.object);
        }
    };
    let mut older = sorted.iter().peekable();
    for change in &rest {
        while let Some(before) = older.next_if(|older| key(older) < key(change)) {
            keep(before);
        }
        older.next_if(|older| key(older) == key(change));
        keep(change);
    }
    older.for_each(keep);
    objects
}
