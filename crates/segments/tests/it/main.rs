//! Tests of the public surface.

mod memory;
mod model;
mod threads;
