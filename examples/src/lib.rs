//! What the examples share: a cluster to run on, and a full controller.
//!
//! Read the programs beside this folder in the order of their numbers.

mod cluster;
pub mod replica_set_controller;

pub use cluster::Cluster;
