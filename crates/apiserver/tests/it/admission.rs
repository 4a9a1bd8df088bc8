//! Admission plugins, and evictions.

mod eviction;
mod not_enforced;
mod plugins;
mod quota;
