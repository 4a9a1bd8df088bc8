//! Why a log was not used.

use crate::header::FORMAT;

/// Why a log was discarded. It is a cache: the caller lists again, and a new log takes its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Discarded {
    /// It was written for something else.
    #[error("the saved state belongs to another {pair}")]
    OtherOwner {
        /// The name of the first pair that differs.
        pair: String,
    },
    /// It was written in a format that this version does not read.
    #[error("the saved state has format {format}, and this version reads only format {FORMAT}")]
    OtherFormat {
        /// Its format.
        format: u32,
    },
    /// A checksum does not match in a part of the log that was on the disk, or the log is malformed.
    #[error("the saved state is damaged at byte {at} of the log")]
    Damaged {
        /// Where in the log.
        at: u64,
    },
    /// The file of bodies is missing, or too short for every position in the log.
    #[error("the saved state has no bodies")]
    BodiesMissing,
    /// It is encrypted, and no key was given.
    #[error("the saved state is encrypted, and no key was given")]
    KeyMissing,
    /// It is encrypted with another key.
    #[error("the saved state is encrypted with another key")]
    WrongKey,
    /// It is not encrypted, but a key was given.
    #[error("the saved state is not encrypted, but a key was given")]
    NotEncrypted,
    /// The operating system could not read it.
    #[error("the saved state cannot be read: {message}")]
    CannotRead {
        /// The error.
        message: String,
    },
}
