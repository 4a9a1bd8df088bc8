//! Frames: the unit that is written and verified as a whole.
//!
//! ```text
//! magic 4 | length of the payload u32 | checksum of the previous header u32 | length of the log that was synced u64
//! checksum of the payload u32 | checksum of these 24 bytes u32 | payload
//! ```
//!
//! A frame of changes has changes that no position covers yet. A commit frame has changes and ends with a position.
//!
//! A frame is valid only where it was written: the checksum of its header includes its offset. It is valid only behind
//! the frame that was there: it names the checksum of that frame. Frames that were cut off and come back after a loss
//! of power are therefore never read as a continuation of newer ones.

use crate::{
    checksum::Checksums,
    codec::{Decoder, put_u32, put_u64},
    disk::Disk,
    seal::{OVERHEAD, Purpose, Sealing},
};
use memchr::memmem;
use std::{io, ops::Range};

/// The length of the header of a frame.
const HEADER: usize = 28;
/// The part of the header before the checksums.
const FIELDS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Changes,
    Commit,
}

impl FrameKind {
    fn magic(self) -> [u8; 4] {
        match self {
            Self::Changes => *b"\xabchg",
            Self::Commit => *b"\xabpos",
        }
    }
}

/// Where a frame is, and what was before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The offset in the log.
    pub(crate) at: u64,
    /// The checksum of the previous frame, 0 for the first one.
    pub(crate) previous: u32,
    /// How much of the log was on the disk for certain when the frame was written.
    pub(crate) synced: u64,
}

/// Makes the bytes of a frame, and returns its checksum.
pub(crate) fn encode<D: Disk>(
    disk: &D,
    kind: FrameKind,
    place: Place,
    entries: &[u8],
    checksums: Checksums,
    sealing: Option<&Sealing>,
) -> io::Result<(Vec<u8>, u32)> {
    let payload_len = entries.len() + if sealing.is_some() { OVERHEAD } else { 0 };
    let mut bytes = Vec::with_capacity(HEADER + payload_len);
    bytes.extend_from_slice(&kind.magic());
    put_u32(&mut bytes, u32::try_from(payload_len).map_err(|_| io::Error::other("a frame above 4 GiB"))?);
    put_u32(&mut bytes, place.previous);
    put_u64(&mut bytes, place.synced);
    let context = context(place.at, &bytes);
    bytes.resize(HEADER, 0);
    bytes.extend_from_slice(entries);
    if let Some(sealing) = sealing {
        sealing.seal(disk, Purpose::Frame, &context, &mut bytes, HEADER)?;
    }
    let of_payload = crc32fast::hash(&bytes[HEADER..]);
    bytes[FIELDS..HEADER - 4].copy_from_slice(&of_payload.to_le_bytes());
    let checksum = checksums.of(place.at, &bytes[..HEADER - 4]);
    bytes[HEADER - 4..HEADER].copy_from_slice(&checksum.to_le_bytes());
    Ok((bytes, checksum))
}

/// A frame whose checksums match.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) place: Place,
    /// Names this frame in the next one.
    pub(crate) checksum: u32,
    /// Where its payload is in the log.
    pub(crate) payload: Range<usize>,
}

/// Reads the frame at an offset. `None` if it is incomplete or damaged.
pub(crate) fn read(log: &[u8], at: usize, checksums: Checksums) -> Option<Frame> {
    let header = log.get(at..at.checked_add(HEADER)?)?;
    let mut from = Decoder::new(header);
    let (magic, len, previous, synced) = (from.array()?, from.u32()?, from.u32()?, from.u64()?);
    let (of_payload, checksum) = (from.u32()?, from.u32()?);
    let kind = [FrameKind::Changes, FrameKind::Commit].into_iter().find(|kind| kind.magic() == magic)?;
    if checksums.of(at as u64, &header[..HEADER - 4]) != checksum {
        return None;
    }
    let payload = at + HEADER..(at + HEADER).checked_add(len as usize)?;
    let is_intact = crc32fast::hash(log.get(payload.clone())?) == of_payload;
    let place = Place { at: at as u64, previous, synced };
    is_intact.then_some(Frame { kind, place, checksum, payload })
}

impl Frame {
    /// Decrypts the payload in place, and returns where the entries are. `None` if it was not made with this key for
    /// this place.
    pub(crate) fn open(&self, log: &mut [u8], sealing: Option<&Sealing>) -> Option<Range<usize>> {
        let Some(sealing) = sealing else { return Some(self.payload.clone()) };
        let header = self.payload.start - HEADER;
        let context = context(self.place.at, &log[header..header + FIELDS]);
        let opened = sealing.open(Purpose::Frame, &context, &mut log[self.payload.clone()])?;
        let len = opened.len();
        let start = self.payload.start + ring::aead::NONCE_LEN;
        Some(start..start + len)
    }
}

/// Whether the log at an offset was on the disk for certain, as an intact commit behind it says.
pub(crate) fn was_synced(log: &[u8], at: usize, checksums: Checksums) -> bool {
    memmem::find_iter(&log[at..], &FrameKind::Commit.magic())
        .filter_map(|found| read(log, at + found, checksums))
        .any(|commit| commit.place.synced > at as u64)
}

/// The context that an encrypted frame is authenticated with.
fn context(at: u64, fields: &[u8]) -> Vec<u8> {
    [&at.to_le_bytes()[..], fields].concat()
}
