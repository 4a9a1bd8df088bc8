//! Integration tests of the informer, one binary.

mod acceptance;
mod pipeline;
mod resync;
mod support;
