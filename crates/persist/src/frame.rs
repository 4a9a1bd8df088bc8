//! Frames: the unit that is written and verified as a whole.
//!
//! ```text
//! magic 4 | length of the payload u32 | checksum of the payload u32 | checksum of these 12 bytes u32 | payload
//! ```
//!
//! A frame of changes has changes that no position covers yet. A commit frame has changes and ends with a position.
//! The checksum of the header has the offset of the frame in it, so that a frame is valid only where it was written.

use crate::{
    checksum::Checksums,
    codec::{Decoder, put_u32},
    disk::Disk,
    seal::{Purpose, Sealing},
};
use memchr::memmem;
use std::{io, ops::Range};

/// The length of the header of a frame.
pub(crate) const HEADER: usize = 16;

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

    fn purpose(self) -> Purpose {
        match self {
            Self::Changes => Purpose::Changes,
            Self::Commit => Purpose::Commit,
        }
    }
}

/// Makes the bytes of a frame at an offset of the log.
pub(crate) fn encode<D: Disk>(
    disk: &D,
    kind: FrameKind,
    at: u64,
    entries: &[u8],
    checksums: Checksums,
    sealing: Option<&Sealing>,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER + entries.len() + crate::seal::OVERHEAD);
    bytes.extend_from_slice(&[0; HEADER]);
    bytes.extend_from_slice(entries);
    if let Some(sealing) = sealing {
        sealing.seal(disk, kind.purpose(), &at.to_le_bytes(), &mut bytes, HEADER)?;
    }
    let (header, payload) = bytes.split_at_mut(HEADER);
    let len = u32::try_from(payload.len()).map_err(|_| io::Error::other("a frame above 4 GiB"))?;
    let mut fields = kind.magic().to_vec();
    put_u32(&mut fields, len);
    put_u32(&mut fields, crc32fast::hash(payload));
    let checksum = checksums.of(at, &fields);
    put_u32(&mut fields, checksum);
    header.copy_from_slice(&fields);
    Ok(bytes)
}

/// A frame whose checksums match.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// Where its payload is in the log.
    pub(crate) payload: Range<usize>,
}

/// Reads the frame at an offset. `None` if it is incomplete or damaged.
pub(crate) fn read(log: &[u8], at: usize, checksums: Checksums) -> Option<Frame> {
    let header = log.get(at..at.checked_add(HEADER)?)?;
    let mut from = Decoder::new(header);
    let (magic, len, of_payload, of_header) = (from.array()?, from.u32()?, from.u32()?, from.u32()?);
    let kind = [FrameKind::Changes, FrameKind::Commit].into_iter().find(|kind| kind.magic() == magic)?;
    if checksums.of(at as u64, &header[..HEADER - 4]) != of_header {
        return None;
    }
    let payload = at + HEADER..(at + HEADER).checked_add(len as usize)?;
    (crc32fast::hash(log.get(payload.clone())?) == of_payload).then_some(Frame { kind, payload })
}

/// Decrypts the payload of a frame in place, and returns where its entries are. `None` if it was not made with this
/// key for this place.
pub(crate) fn open(
    log: &mut [u8],
    at: usize,
    frame: &Frame,
    sealing: Option<&Sealing>,
) -> Option<Range<usize>> {
    let Some(sealing) = sealing else { return Some(frame.payload.clone()) };
    let opened =
        sealing.open(frame.kind.purpose(), &(at as u64).to_le_bytes(), &mut log[frame.payload.clone()])?;
    let len = opened.len();
    let start = frame.payload.start + ring::aead::NONCE_LEN;
    Some(start..start + len)
}

/// Whether an intact commit begins behind an offset.
pub(crate) fn has_commit_behind(log: &[u8], at: usize, checksums: Checksums) -> bool {
    let behind = at.saturating_add(1).min(log.len());
    memmem::find_iter(&log[behind..], &FrameKind::Commit.magic())
        .any(|found| read(log, behind + found, checksums).is_some())
}
