//! How the program ends.

use std::process::ExitCode;

/// Failures that have an exit code of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server refuses the caller.
    Denied,
    /// There is no server to talk to.
    Unreachable,
}

impl Failure {
    fn code(self) -> u8 {
        match self {
            Self::Denied => 3,
            Self::Unreachable => 4,
        }
    }
}

/// A failure with the words that go with it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Told {
    failure: Failure,
    message: String,
}

/// An error with an exit code of its own.
pub(crate) fn told(failure: Failure, message: impl Into<String>) -> anyhow::Error {
    Told { failure, message: message.into() }.into()
}

/// Says on stderr why the program ends, and with which code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    let told = error.chain().find_map(|cause| cause.downcast_ref::<Told>());
    ExitCode::from(told.map_or(1, |told| told.failure.code()))
}
