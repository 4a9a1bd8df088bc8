//! Switches of the sabotage patches of this crate. Added to the copy of the crate by tools/mutants.
//!
//! `SABOTAGE` has the number of the patch that is switched on. `SABOTAGE_REACHED` names a file that is created when the code
//! that the patch changes is reached.

use std::sync::{
    LazyLock,
    atomic::{AtomicBool, Ordering},
};

static ACTIVE: LazyLock<u32> =
    LazyLock::new(|| std::env::var("SABOTAGE").ok().and_then(|id| id.parse().ok()).unwrap_or(0));
static IS_REACHED: AtomicBool = AtomicBool::new(false);

/// Returns whether a patch is switched on.
#[inline]
pub(crate) fn on(id: u32) -> bool {
    *ACTIVE == id
}

/// Records that the changed code of a patch is reached.
pub(crate) fn reached(id: u32) {
    if !IS_REACHED.swap(true, Ordering::Relaxed)
        && let Some(file) = std::env::var_os("SABOTAGE_REACHED")
    {
        std::fs::write(file, format!("{id}\n")).expect("SABOTAGE_REACHED can be written");
    }
}
