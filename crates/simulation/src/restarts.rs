//! Worlds in which a program saves its caches to a disk, crashes, and starts again with the files on the disk.
//!
//! `schedule.rs` makes the steps, `program.rs` executes crashes and starts, `damage.rs` changes the files in between.
//! `persistence.rs` has the options of one informer and its disk, `expected.rs` finds the state that its files have, and
//! `undetectable.rs` has the rule that excludes restores which no client can detect.

mod damage;
mod expected;
mod persistence;
mod program;
mod schedule;
mod undetectable;

pub(crate) use damage::Damage;
pub(crate) use expected::Expected;
pub(crate) use persistence::Persistence;
pub(crate) use program::{Boot, ClockChange, Crash, DiskFault, Ending, Program};
