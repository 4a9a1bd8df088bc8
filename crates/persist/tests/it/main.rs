//! Tests of the public surface.

mod directory;
mod fixtures;
mod model;
mod recording;
mod restore;
