//! Damage to the files of a directory between two processes.

use super::persistence::Files;
use crate::totals::Fault;

/// Damage to the files of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    /// A file is shorter.
    Truncated,
    /// Some bits are flipped.
    Flipped,
    /// A part of a file has other bytes.
    Overwritten,
    /// A file is gone.
    Removed,
    /// The directory is an older copy.
    OlderCopy,
    /// Some files are from an older copy.
    MixedCopies,
    /// The directory is that of another cluster.
    OtherCluster,
    /// The next process has another transform.
    OtherTransform,
    /// The next process has another selector.
    OtherSelector,
    /// The next process cannot read.
    Unreadable,
}

impl Damage {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        match rng.u8(0..30) {
            0..5 => Self::Truncated,
            5..10 => Self::Flipped,
            10 | 11 => Self::Overwritten,
            12 => Self::Removed,
            13 | 14 => Self::OlderCopy,
            15 => Self::MixedCopies,
            16 => Self::OtherCluster,
            17 => Self::OtherTransform,
            18 => Self::OtherSelector,
            19 => Self::Unreadable,
            _ => Self::None,
        }
    }

    pub(super) fn fault(self) -> Option<Fault> {
        Some(match self {
            Self::None => return None,
            Self::Truncated => Fault::FileTruncated,
            Self::Flipped => Fault::BitsFlipped,
            Self::Overwritten => Fault::FileOverwritten,
            Self::Removed => Fault::FileRemoved,
            Self::OlderCopy => Fault::OlderCopy,
            Self::MixedCopies => Fault::MixedCopies,
            Self::OtherCluster => Fault::OtherCluster,
            Self::OtherTransform => Fault::OtherTransform,
            Self::OtherSelector => Fault::OtherSelector,
            Self::Unreadable => Fault::Unreadable,
        })
    }

    /// Changes the files. Returns false if there is nothing to change.
    pub(super) fn apply(self, files: &mut Files, copies: &[Files], rng: &mut fastrand::Rng) -> bool {
        match self {
            Self::OlderCopy => match rng.choice(copies) {
                Some(copy) => *files = copy.clone(),
                None => return false,
            },
            Self::MixedCopies => {
                let Some(copy) = rng.choice(copies) else { return false };
                for (name, bytes) in copy {
                    if rng.bool() {
                        files.insert(name.clone(), bytes.clone());
                    }
                }
            }
            Self::Removed => {
                let Some(name) = rng.choice(files.keys().cloned().collect::<Vec<_>>()) else { return false };
                files.remove(&name);
            }
            Self::Truncated | Self::Flipped | Self::Overwritten => {
                let logs_only = rng.u8(0..4) > 0;
                let files = files.iter_mut().filter(|(name, _)| !logs_only || name.ends_with(".log"));
                let files: Vec<_> = files.map(|(_, bytes)| bytes).filter(|bytes| !bytes.is_empty()).collect();
                let Some(bytes) = rng.choice(files) else { return false };
                self.damage(bytes, rng);
            }
            _ => {}
        }
        true
    }

    fn damage(self, bytes: &mut Vec<u8>, rng: &mut fastrand::Rng) {
        // Mostly near the end, where a crash does its damage.
        let last = rng.choice([40, 200, 600, usize::MAX]).unwrap_or(200);
        let first = bytes.len().saturating_sub(last);
        match self {
            Self::Truncated => bytes.truncate(rng.usize(first..bytes.len())),
            Self::Flipped => {
                for _ in 0..rng.usize(1..4) {
                    let at = rng.usize(first..bytes.len());
                    bytes[at] ^= 1 << rng.u8(0..8);
                }
            }
            _ => {
                let at = rng.usize(first..bytes.len());
                let end = bytes.len().min(at + rng.usize(1..600));
                let zeros = rng.bool();
                bytes[at..end].fill_with(|| if zeros { 0 } else { rng.u8(..) });
            }
        }
    }
}
