//! The log.

use std::io;
use tracing_subscriber::EnvFilter;

/// By default only errors, since every command says itself what its user should know; and not those of requests, which are tried again
/// or reported.
const USUAL: &str = "error,kube_client::client=off";

/// Logs to stderr what `--log` or `RUST_LOG` asks for.
pub(crate) fn start(wanted: &Option<String>) {
    let from_environment = || std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = wanted.clone().or_else(from_environment).unwrap_or_else(|| USUAL.to_owned());
    let filter = EnvFilter::try_new(&text).unwrap_or_else(|error| {
        eprintln!("warning: cannot read the log filter {text:?} ({error}); logging errors only");
        EnvFilter::new(USUAL)
    });
    // A second start, as in tests, keeps the first one's choice.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).try_init();
}
