//! Tests of the public surface.

mod restore;
