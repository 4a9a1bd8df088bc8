//! Errors of reading a body.

use std::{error::Error, fmt, io, sync::Arc};

/// The bytes of a body that is on disk or outside of the store cannot be read. Reading it again may succeed, if the disk
/// recovers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    Io(Arc<io::Error>),
    /// The file does not have the bytes that were written.
    WrongBytes,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read from the file: {error}"),
            Self::WrongBytes => f.write_str("the file does not have the bytes that were written"),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::WrongBytes => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
