//! The log.

use crate::terminal::{LogWriter, note};
use tracing_subscriber::EnvFilter;

/// By default only errors, because every command reports what its user should know; without those of single requests, which
/// are retried or reported.
const DEFAULT_FILTER: &str = "error,kube_client::client=off";

/// Logs to stderr, filtered by `--log` or `RUST_LOG`.
pub(crate) fn start(filter: &Option<String>) {
    let from_environment = || std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = filter.clone().or_else(from_environment).unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(&text).unwrap_or_else(|error| {
        note(&format!("warning: invalid log filter {text:?} ({error}); only errors are logged"));
        EnvFilter::new(DEFAULT_FILTER)
    });
    // In tests a log may be started already; it stays.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LogWriter).try_init();
}
