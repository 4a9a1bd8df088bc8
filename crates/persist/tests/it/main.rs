//! Tests of the public surface.

mod directory;
mod fixtures;
mod restore;
