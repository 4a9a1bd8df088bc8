//! Decompression with contexts that all informers of the process share.

use crate::sync::lock;
use std::sync::Mutex;
use zstd::zstd_safe::{DCtx, DDict};

/// Contexts that are kept for the next reader, of about 95 KB each; more concurrent readers create their own.
const MAX_SPARE: usize = 4;

/// Held only to take one out or put one back. A context has no dictionary: it is passed with each content, so that contexts
/// are shared by all collections, and the tables of a dictionary by all its readers.
static SPARE: Mutex<Vec<DCtx<'static>>> = Mutex::new(Vec::new());

/// Replaces the content of `raw` by the `len` bytes that `packed` has; `None` if it has others, or is not compressed.
pub(super) fn decompress(
    packed: &[u8],
    len: usize,
    dictionary: Option<&DDict<'_>>,
    raw: &mut Vec<u8>,
) -> Option<()> {
    raw.clear();
    raw.reserve_exact(len);
    let spare = lock(&SPARE).pop();
    let mut context = match spare {
        Some(context) => context,
        None => DCtx::try_create()?,
    };
    let written = match dictionary {
        Some(dictionary) => context.decompress_using_ddict(raw, packed, dictionary),
        None => context.decompress(raw, packed),
    };
    let mut spare = lock(&SPARE);
    if spare.len() < MAX_SPARE {
        spare.push(context);
    }
    drop(spare);
    // The buffer may have room for more.
    written.ok().filter(|written| *written == len).map(drop)
}
