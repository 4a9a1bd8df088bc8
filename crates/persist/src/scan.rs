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

/// What has been read so far.
#[derive(Debug, Default)]
struct Walk {
    changes: Vec<Change>,
    dictionaries: Vec<(u32, Range<usize>)>,
    /// The end of the body that is furthest behind.
    bodies_needed: u64,
    committed: Committed,
}

/// What the newest position covers.
#[derive(Debug, Default)]
struct Committed {
    position: Option<Position>,
    changes: usize,
    dictionaries: usize,
    log_end: usize,
    bodies_end: u64,
}

/// Why an intact frame is not used.
enum Refusal {
    /// It is not what the format says.
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
    let mut at = start;
    while at < log.len() {
        let Some(found) = frame::read(log, at, checksums) else {
            // An incomplete end is dropped. If a commit is intact behind it, this is not the end.
            if frame::has_commit_behind(log, at, checksums) {
                return Err(Discarded::Damaged { at: at as u64 });
            }
            break;
        };
        let damaged = Discarded::Damaged { at: at as u64 };
        let Some(entries) = frame::open(log, at, &found, sealing) else { return Err(damaged) };
        match walk.frame(log, found.kind, entries, bodies_len, sealing.is_some()) {
            Ok(()) => at = found.payload.end,
            Err(Refusal::Malformed) => return Err(damaged),
            Err(Refusal::BodiesMissing) if walk.committed.position.is_none() => {
                return Err(Discarded::BodiesMissing);
            }
            Err(Refusal::BodiesMissing) => break,
        }
        if found.kind == FrameKind::Commit {
            walk.committed.log_end = at;
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
                    self.change(end - identity.len() - key.len(), key, identity.len(), Some(content));
                }
                Entry::Delete { key } => self.change(end - key.len(), key, 0, None),
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

    fn change(&mut self, at: usize, key: &str, identity_len: usize, content: Option<SavedContent>) {
        let is_delete = content.is_none();
        let content = content.unwrap_or(SavedContent { tag: 0, len: 0, at: 0, checksum: 0 });
        // Both lengths were read from 32 bits.
        let object =
            SavedObject { at, key_len: key.len() as u32, identity_len: identity_len as u32, content };
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
        let objects = newest_of_each_key(log, self.changes);
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
            bodies_end: self.committed.bodies_end,
        }
    }
}

/// The newest change of each key, without deletes, in the order of keys.
fn newest_of_each_key(log: &[u8], mut changes: Vec<Change>) -> Vec<SavedObject> {
    let key = |change: &Change| key_of(log, &change.object);
    // A list arrives in the order of keys, and a rewrite is written in it: often there is nothing to sort. The sort is
    // stable, so that the newest change of a key is its last one, and fast for a long sorted beginning.
    if !changes.is_sorted_by(|one, next| key(one) < key(next)) {
        changes.sort_by(|one, other| key(one).cmp(key(other)));
        changes.dedup_by(|next, kept| {
            let same = key(next) == key(kept);
            if same {
                *kept = *next;
            }
            same
        });
    }
    changes.into_iter().filter(|change| !change.is_delete).map(|change| change.object).collect()
}
