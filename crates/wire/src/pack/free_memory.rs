//! Returns the memory of a training, and of segments that packing again has freed, to the system.
//!
//! zstd allocates tables of 4 and 2 MB several times for a training. glibc takes the first one from the system and gives it
//! back, but raises its thresholds when that happens: allocations of up to 4 MB now come from the heap of the thread's arena,
//! and the free end of a heap is returned only when it has 8 MB. The tables that follow stay there as free memory, and so do
//! segments that are freed later. `malloc_trim` does not return them: it trims the end of the main heap alone.

use std::hint::black_box;

/// Bytes of a block: less than the threshold, so that it comes from the heap.
const BLOCK: usize = (4 << 20) - (64 << 10);
/// Number of blocks: together, more than a heap may have free at its end.
const BLOCKS: usize = 3;

/// Makes the free end of this thread's heap so long that glibc returns all of it, in some microseconds. The blocks are never
/// written to, and take no memory. Elsewhere, or with other thresholds, it has no effect.
pub(super) fn return_to_system() {
    let mut blocks: [Vec<u8>; BLOCKS] = Default::default();
    for block in &mut blocks {
        // Without address space for it there is nothing to return.
        if black_box(block).try_reserve_exact(BLOCK).is_err() {
            break;
        }
    }
    drop(black_box(blocks));
}
