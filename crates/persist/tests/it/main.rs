//! Tests of the public surface.

mod directory;
mod fixtures;
mod inspect;
mod model;
mod restore;
