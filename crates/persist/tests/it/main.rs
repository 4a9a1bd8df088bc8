//! Tests of the public surface.

mod directory;
mod fixtures;
mod inspect;
mod model;
mod recording;
mod restore;
