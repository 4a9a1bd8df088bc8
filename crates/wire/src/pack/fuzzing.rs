//! Unpacks arbitrary bytes, for the fuzz targets.

use super::{Content, Packed, Packer, Packing};
use bytes::Bytes;
use std::sync::LazyLock;

/// Content that was packed with a trained dictionary.
static TRAINED: LazyLock<Option<Packed>> = LazyLock::new(|| {
    let packer = Packer::new(Packing::Packed);
    let mut last = None;
    for i in 0..1000 {
        let setting = format!(r#"{{"name":"SETTING_{}","value":"{}"}}"#, i % 7, i * 31).repeat(6);
        let json =
            format!(r#"{{"kind":"Pod","metadata":{{"name":"cart-{i}"}},"spec":{{"env":[{setting}]}}}}"#);
        if let Content::Packed(packed) = packer.pack_content(Content::Raw(Bytes::from(json)), false) {
            last = packed.dictionary.is_some().then_some(packed);
        }
    }
    last
});

/// Unpacks `bytes`, with a dictionary or without. `None` if they are not packed content of `raw_len` bytes.
pub fn unpack(bytes: &[u8], raw_len: u32, trained: bool) -> Option<Vec<u8>> {
    let dictionary = if trained { TRAINED.as_ref()?.dictionary.clone() } else { None };
    Packed { bytes: bytes.into(), raw_len, dictionary }.read()
}
