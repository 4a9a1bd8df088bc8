//! Worlds in which a program saves its caches to a disk, crashes, and starts again with what the disk has.
//!
//! `schedule.rs` makes the steps, `program.rs` executes crashes and starts, `damage.rs` changes the files in between.
//! `persistence.rs` is how one informer saves its cache, `expected.rs` knows which state its files have, and
//! `undetectable.rs` has the rule that excludes what no client can detect.

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
