//! Tests that run the program and check its output and exit code.

mod demo;
#[cfg(feature = "etcd")]
mod etcd;
mod hostile;
mod process;
mod serve;
mod terminal;
mod watch;
