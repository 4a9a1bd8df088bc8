//! Admission plugins, and evictions.

mod eviction;
mod plugins;
mod quota;
