//! Tests of the public surface.

mod disk;
mod disk_model;
mod faulty;
mod memory;
mod model;
mod outside;
mod threads;
