//! Admission plugins, and evictions.

mod controllers;
mod eviction;
mod plugins;
mod quota;
