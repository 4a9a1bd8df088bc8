//! The program from the outside: run, read, judged by its exit code.

mod process;
mod serve;
mod watch;
