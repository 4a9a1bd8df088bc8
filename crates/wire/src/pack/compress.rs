//! Compression without a dictionary, with compressors that all informers of the process share.

use super::LEVEL;
use crate::sync::lock;
use std::sync::Mutex;
use zstd::{bulk::Compressor, zstd_safe::compress_bound};

/// Compressors that are kept for the next object, of some ten KB each; more informers that pack at once create their own.
/// A process may have many informers of a few objects, which never get a dictionary.
const MAX_SPARE: usize = 4;

/// Held only to take one out or put one back.
static SPARE: Mutex<Vec<Compressor<'static>>> = Mutex::new(Vec::new());

/// Replaces the content of `packed` by the compressed bytes of `raw`.
pub(super) fn compress(raw: &[u8], packed: &mut Vec<u8>) -> Option<()> {
    let spare = lock(&SPARE).pop();
    let mut compressor = match spare {
        Some(compressor) => compressor,
        None => Compressor::new(LEVEL).ok()?,
    };
    let compressed = compress_with(&mut compressor, raw, packed);
    let mut spare = lock(&SPARE);
    if spare.len() < MAX_SPARE {
        spare.push(compressor);
    }
    compressed
}

/// Replaces the content of `packed` by the bytes of `raw`, compressed with this compressor.
pub(super) fn compress_with(compressor: &mut Compressor<'_>, raw: &[u8], packed: &mut Vec<u8>) -> Option<()> {
    packed.clear();
    packed.reserve_exact(compress_bound(raw.len()));
    compressor.compress_to_buffer(raw, packed).ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::decompress::decompress;

    #[test]
    fn few_compressors_are_kept() {
        let raw = b"one of many informers of a few objects ".repeat(20);
        std::thread::scope(|scope| {
            for _ in 0..4 * MAX_SPARE {
                scope.spawn(|| {
                    let (mut packed, mut unpacked) = (b"before".to_vec(), Vec::new());
                    compress(&raw, &mut packed).expect("compressed");
                    assert!(packed.len() < raw.len() / 4);
                    decompress(&packed, raw.len(), None, &mut unpacked).expect("what was compressed");
                    assert_eq!(unpacked, raw);
                });
            }
        });
        let spare = lock(&SPARE).len();
        assert!((1..=MAX_SPARE).contains(&spare), "{spare}");
    }
}
