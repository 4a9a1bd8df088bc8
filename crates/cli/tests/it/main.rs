//! The program from the outside: run, read, judged by its exit code.

mod demo;
mod process;
mod serve;
mod terminal;
mod watch;
