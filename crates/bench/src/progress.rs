//! How far the comparison is.

use std::{fmt, sync::LazyLock, time::Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Says what is being done, and how long it took to get here.
pub(crate) fn say(what: impl fmt::Display) {
    let seconds = START.elapsed().as_secs();
    println!("[{:2}:{:02}] {what}", seconds / 60, seconds % 60);
}
