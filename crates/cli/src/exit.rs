//! Errors and exit codes.

use crate::terminal::{note, printable};
use std::process::ExitCode;

/// Classes of failures, by exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Any other failure.
    Other,
    /// The server rejects the credentials or permissions of the caller.
    Denied,
    /// The server cannot be reached.
    Unreachable,
}

impl Failure {
    fn code(self) -> u8 {
        match self {
            Self::Other => 1,
            Self::Denied => 3,
            Self::Unreachable => 4,
        }
    }
}

/// An error with an exit code and with advice, which is printed on a line of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    failure: Failure,
    message: String,
    advice: String,
}

/// An error with an exit code and advice; no advice if that is empty.
pub(crate) fn error(
    failure: Failure,
    message: impl Into<String>,
    advice: impl Into<String>,
) -> anyhow::Error {
    CommandError { failure, message: message.into(), advice: advice.into() }.into()
}

/// Prints an error on stderr and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", printable(&format!("{error:#}")));
    let command_error = error.chain().find_map(|cause| cause.downcast_ref::<CommandError>());
    if let Some(advice) = command_error.map(|error| &error.advice).filter(|advice| !advice.is_empty()) {
        note(advice);
    }
    ExitCode::from(command_error.map_or(1, |error| error.failure.code()))
}
