//! Worlds of controllers: several replicas of an operator, with leader election or sharding, against the embedded API
//! server.
//!
//! Each replica is a simulated process (`process.rs`) with the real controllers of `kube-informer-controller`
//! (`replica.rs`, `operator.rs`). It reaches the server through a network of its own (`network.rs`). Processes are
//! killed at any of their await points, suspended, partitioned, stopped in order and started again. `truth.rs` records
//! every commit of the store and everything that the operator does, and checks each step (`truth/rules.rs`).

mod network;
mod operator;
mod process;
mod replica;
mod run_many;
mod schedule;
mod server;
mod settings;
mod shrink;
mod site;
mod totals;
mod truth;
mod world;

pub use run_many::Finished;
pub use run_many::run_many;
pub use shrink::shrink;
pub use totals::Fault;
pub use totals::Totals;
pub use world::Outcome;
pub use world::run;
