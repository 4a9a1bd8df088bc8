//! Integration tests of the informer, one binary.

mod pipeline;
mod support;
