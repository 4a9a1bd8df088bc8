//! Unpacks arbitrary bytes, for the fuzz targets.

use super::{
    Packer, Packing,
    encoding::{self, Encoding, Tag},
};
use crate::{MediaType, media_type::Encoded};
use std::sync::LazyLock;

/// A packer with a trained dictionary.
static TRAINED: LazyLock<Packer> = LazyLock::new(|| {
    let packer = Packer::new(Packing::Packed);
    for i in 0..1000 {
        let setting = format!(r#"{{"name":"SETTING_{}","value":"{}"}}"#, i % 7, i * 31).repeat(6);
        let json =
            format!(r#"{{"kind":"Pod","metadata":{{"name":"cart-{i}"}},"spec":{{"env":[{setting}]}}}}"#);
        packer.pack_content(&Encoded::json(json.into()), false, None);
    }
    packer
});

/// Unpacks `bytes`, with a dictionary or without. `None` if they are not packed content of `raw_len` bytes.
pub fn unpack(bytes: &[u8], raw_len: u32, trained: bool) -> Option<Vec<u8>> {
    let dictionaries = TRAINED.bodies.context();
    let encoding = if trained { Encoding::Dictionary(dictionaries.newest()?.id) } else { Encoding::Plain };
    let (tag, mut raw) = (Tag::loose(raw_len, MediaType::Json, encoding), Vec::new());
    encoding::unpack(tag, bytes, dictionaries, &mut raw).ok()?.map(|()| raw)
}
