//! Tests that run the program and check its output and exit code.

// Skipped tests are reported.
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod demo;
#[cfg(feature = "etcd")]
mod etcd;
mod hostile;
mod process;
mod serve;
mod terminal;
mod watch;
