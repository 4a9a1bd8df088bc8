//! The program from the outside: run, read, judged by its exit code.

mod demo;
#[cfg(feature = "etcd")]
mod etcd;
mod process;
mod serve;
mod terminal;
mod watch;
