//! Seeded worlds in which the whole informer runs in one thread against a model.
//!
//! A *world* is a server with an exact history, a handful of informers with handlers, indexes and work queues,
//! and a schedule of writes and faults, all of it made from one seed and run under a clock that jumps. After
//! each step, and after each change of a cache, what can be seen is compared with what was: see
//! `subject/cache.rs` for caches, `subject/index.rs` for indexes, `tape.rs` for handlers, `work.rs` for queues
//! and `subject/waiting.rs` for those who wait.
//!
//! The same seed gives the same world, down to the hash of its trace.

mod cluster;
mod handlers;
mod history;
mod log;
mod network;
mod operator;
mod place;
mod schedule;
mod shrink;
mod source;
mod subject;
mod tally;
mod tape;
mod totals;
mod trouble;
mod truth;
mod work;
mod world;

pub use log::Sink;
pub use shrink::Shrunk;
pub use shrink::shrink;
pub use tally::Tally;
pub use totals::Fault;
pub use totals::Totals;
pub use world::Failure;
pub use world::Outcome;
pub use world::run;
