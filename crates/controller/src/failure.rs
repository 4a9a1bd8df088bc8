//! Failures of a reconcile.

use crate::barrier::StaleCache;
use kube_informer::ObjectKey;
use std::{any::Any, error::Error, fmt, sync::Arc, time::Duration};

/// Any error. `?` converts every error type into it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Longest part of a panic message that is kept.
const MESSAGE_CHARS: usize = 200;

/// A reconcile that failed and will be retried, as [`Controller::on_error`](crate::Controller::on_error) receives it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReconcileFailure {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The key that was reconciled.
    pub key: ObjectKey,
    /// Number of failures in a row, this one included.
    pub failures: u32,
    /// The cause.
    pub cause: FailureCause,
}

impl fmt::Display for ReconcileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controller, key, cause, .. } = self;
        let call = cause.call();
        write!(f, "{controller}: {call} of {key} failed: {cause}")
    }
}

/// The cause of a failed reconcile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailureCause {
    /// The reconcile function returned an error.
    #[error("{}", chain(&**.0))]
    Error(BoxError),
    /// The cleanup function of [`Controller::finalizer`](crate::Controller::finalizer) returned an error or panicked, so the
    /// finalizer stays, and with it the object.
    #[error("finalizer {finalizer} and the object stay: {}", chain(&**.source))]
    CleanUp {
        /// The finalizer.
        finalizer: Arc<str>,
        /// The error, or the message of the panic.
        source: BoxError,
    },
    /// The reconcile function panicked with this message.
    #[error("panicked: {0}")]
    Panic(String),
    /// The reconcile function did not return within its deadline and was cancelled.
    #[error("did not return within {0:?} and was cancelled; see Controller::deadline")]
    Deadline(Duration),
    /// The reconcile did not start, because a cache does not show what an earlier one wrote.
    #[error(transparent)]
    StaleCache(#[from] StaleCache),
}

impl FailureCause {
    /// The cause for an error that the reconcile of a key returned.
    pub(crate) fn error(error: BoxError) -> Self {
        match error.downcast::<CleanUpFailed>() {
            Ok(failed) => Self::CleanUp { finalizer: failed.finalizer, source: failed.source },
            Err(error) => Self::Error(error),
        }
    }

    /// Which function failed.
    pub(crate) fn call(&self) -> &'static str {
        match self {
            Self::CleanUp { .. } => "cleanup",
            _ => "reconcile",
        }
    }

    /// The cause for a caught panic.
    pub(crate) fn panic(panic: &(dyn Any + Send)) -> Self {
        Self::Panic(panic_message(panic))
    }

    /// Whether a function of the user panicked.
    pub(crate) fn is_panic(&self) -> bool {
        matches!(self, Self::Panic(_))
            || matches!(self, Self::CleanUp { source, .. } if source.is::<Panicked>())
    }

    /// The label `result` of metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Panic(_) => "panic",
            Self::CleanUp { .. } if self.is_panic() => "panic",
            Self::Error(_) | Self::CleanUp { .. } => "error",
            Self::Deadline(_) => "deadline",
            Self::StaleCache(_) => "stale_cache",
        }
    }
}

/// A panic of a cleanup function, with its message.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub(crate) struct Panicked(String);

impl Panicked {
    pub(crate) fn new(panic: &(dyn Any + Send)) -> Self {
        Self(panic_message(panic))
    }
}

/// Carries the error of a cleanup through the result of its reconcile.
#[derive(Debug, thiserror::Error)]
#[error("cleanup of finalizer {finalizer} failed")]
pub(crate) struct CleanUpFailed {
    pub(crate) finalizer: Arc<str>,
    pub(crate) source: BoxError,
}

/// The message of a panic, cut to a bounded length.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
    message.unwrap_or_else(|| "no message".to_owned()).chars().take(MESSAGE_CHARS).collect()
}

/// An error and its sources on one line. A source that the text before it contains is left out.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (own, status) = describe(error);
        if !text.contains(&own) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&own);
        }
        next = if status { None } else { error.source() };
    }
    text
}

/// The text of an error without its sources, and whether it is a response of the server, of which `Display` of kube prints all
/// fields.
fn describe(error: &(dyn Error + 'static)) -> (String, bool) {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => (format!("{} ({})", status.message, status.code), true),
        _ => (error.to_string(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_is_in_the_text_once_and_a_response_without_its_fields() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}: {1}")]
        struct Outer(&'static str, #[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("inner")]
        struct Inner(#[source] std::num::ParseIntError);
        let cause = "x".parse::<u8>().unwrap_err();
        assert_eq!(chain(&Outer("outer", Inner(cause))), "outer: inner: invalid digit found in string");
        let status = kube::core::Status::failure("not allowed", "Forbidden").with_code(403).boxed();
        assert_eq!(chain(&kube::Error::Api(status)), "not allowed (403)");
    }
}
