//! The examples run, and the controller converges.

mod convergence;
mod programs;
