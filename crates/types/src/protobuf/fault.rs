//! The error of reading a message, while it is read.

use std::fmt;

use super::ProtobufError;

/// A [`ProtobufError`] behind a pointer. Every value that is read is returned in a `Result` with it through several calls,
/// and that `Result` must not be larger than the value.
#[derive(Debug)]
pub(super) struct Fault(Box<ProtobufError>);

impl From<ProtobufError> for Fault {
    // Out of line: errors are rare, and what reads values should be small.
    #[cold]
    fn from(error: ProtobufError) -> Self {
        Self(Box::new(error))
    }
}

impl From<Fault> for ProtobufError {
    fn from(fault: Fault) -> Self {
        *fault.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        ProtobufError::Refused(message.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_no_larger_than_its_text() {
        assert_eq!(size_of::<Result<Option<String>, Fault>>(), size_of::<Option<String>>());
    }
}
