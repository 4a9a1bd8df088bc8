//! Switches of the mutants of this crate. Added to the copy of the crate by tools/mutants.
//!
//! `MUTANT` has the id of the mutant that is switched on. `MUTANT_COVERAGE` names a file to which the ids of all mutants that
//! are reached are appended.

use std::{
    fs::OpenOptions,
    io::Write,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

const FIRST: u32 = 0; // set by tools/mutants
const COUNT: usize = 0; // set by tools/mutants

/// The environment has not been read yet.
const UNREAD: u32 = u32::MAX;
/// No mutant is switched on, and those that are reached are recorded.
const RECORDING: u32 = u32::MAX - 1;

/// The mutant that is switched on, 0 for none, `UNREAD` or `RECORDING`.
static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Returns whether a mutant is switched on.
#[inline]
pub(crate) fn on(id: u32) -> bool {
    let active = ACTIVE.load(Ordering::Relaxed);
    if active < RECORDING { active == id } else { read_or_record(id) }
}

#[cold]
fn read_or_record(id: u32) -> bool {
    if ACTIVE.load(Ordering::Relaxed) == UNREAD {
        let mutant = std::env::var("MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0);
        let active = if std::env::var_os("MUTANT_COVERAGE").is_some() { RECORDING } else { mutant };
        ACTIVE.store(active, Ordering::Relaxed);
        if active != RECORDING {
            return active == id;
        }
    }
    if !REACHED[(id - FIRST) as usize].swap(true, Ordering::Relaxed) {
        let file = std::env::var_os("MUTANT_COVERAGE").expect("MUTANT_COVERAGE is set");
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("MUTANT_COVERAGE can be written");
        file.write_all(format!("{id}\n").as_bytes()).expect("MUTANT_COVERAGE can be written");
    }
    false
}
