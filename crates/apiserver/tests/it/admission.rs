//! Admission plugins, and evictions.

mod controllers;
mod eviction;
mod not_enforced;
mod plugins;
mod quota;
