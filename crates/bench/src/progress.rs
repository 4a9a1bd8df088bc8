//! Progress of the comparison.

use std::{fmt, sync::LazyLock, time::Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Prints the current step and the time since the start.
pub(crate) fn print_progress(step: impl fmt::Display) {
    let seconds = START.elapsed().as_secs();
    println!("[{:2}:{:02}] {step}", seconds / 60, seconds % 60);
}
