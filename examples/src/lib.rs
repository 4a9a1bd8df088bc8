//! Code of the examples: a cluster to run on, and a complete controller.
//!
//! Read the programs in the order of their numbers.

mod cluster;
mod replica_set_controller;

pub use cluster::Cluster;
pub use replica_set_controller::replica_set_controller;
