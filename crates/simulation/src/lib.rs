//! Seeded worlds in which the whole informer runs in one thread against a model.
//!
//! A *world* is a server with an exact history, a few informers with handlers, indexes and work queues, and a
//! schedule of writes and faults. All of it is generated from one seed and runs under paused time. After each
//! step, and after each change of a cache, everything that a user of the informers can observe is compared with
//! the history: caches in `subject/cache.rs`, indexes in `subject/index.rs`, events of handlers in
//! `handler_log.rs`, work queues in `work.rs`, and waits in `subject/waiting.rs`.
//!
//! The same seed gives the same world, which a hash of its trace shows.

mod backend;
mod cluster;
pub mod controllers;
mod faults;
mod handler_log;
mod handlers;
mod history;
mod log;
mod model;
mod network;
mod operator;
mod reader;
mod restarts;
mod retry_after;
mod run_state;
mod runtime;
mod schedule;
mod selection;
mod shrink;
mod subject;
mod tag;
mod totals;
mod truth;
mod until;
mod work;
mod world;

pub use log::Sink;
pub use run_state::RunState;
pub use shrink::Shrunk;
pub use shrink::shrink;
pub use shrink::shrink_restarts;
pub use totals::Fault;
pub use totals::Totals;
pub use world::Failure;
pub use world::Outcome;
pub use world::run;
pub use world::run_restarts;
