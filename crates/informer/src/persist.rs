//! Saving caches, so that the next process starts with them.
//!
//! `options.rs` has the options of the user, `cluster.rs` and `belongs_to.rs` say what a saved state belongs to. `directory.rs` opens
//! the log of a partition and restores its objects, `names.rs` gives each log a name of its own, `load.rs` restores when the
//! informer starts, `partition_log.rs` encodes objects, and `persister.rs` is the task that saves what changes.

mod belongs_to;
mod cluster;
mod directory;
mod load;
mod names;
mod options;
mod partition_log;
mod persister;
mod setup;
mod status;

pub(crate) use belongs_to::Subject;
pub(crate) use cluster::{Cluster, authority_of};
pub use options::PersistError;
pub use options::PersistOptions;
pub(crate) use options::Persistence;
pub(crate) use persister::Persister;
pub(crate) use setup::{Setup, SharedParts};
pub use status::PersistStatus;
