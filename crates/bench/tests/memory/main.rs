//! Memory per cached object, counted by the allocator, against a committed baseline.
//!
//! One test, because the allocator counts for the whole process.
#![allow(missing_docs, clippy::print_stdout)]

mod baseline;
mod fixed_source;
