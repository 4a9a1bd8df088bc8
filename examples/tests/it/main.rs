//! The examples run, and the controller converges.

#![allow(clippy::print_stderr, clippy::print_stdout)] // seeds of failed runs

mod convergence;
mod programs;
