//! Content of a saved cache.

use super::*;
use kube_informer_segments::{BodySource, OutsideBody, ReadError};

/// One content that was saved.
struct OneBody(Vec<u8>);

impl BodySource for OneBody {
    fn read(&self, _: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.clone_from(&self.0);
        Ok(())
    }
}

fn restored(packer: &Packer, tag: u64, bytes: Vec<u8>, secret: bool) -> Content {
    let saved = OutsideBody { number: 0, tag, len: bytes.len() as u32 };
    let source: Arc<dyn BodySource> = Arc::new(OneBody(bytes));
    packer.restored_contents(&source, &[saved], secret, u32::MAX).expect("content").remove(0)
}

#[test]
fn a_base_that_is_longer_than_any_object_is_not_unpacked() {
    let packer = Arc::new(Packer::new(Packing::Packed));
    (0..1000).for_each(|i| drop(packer.pack_content(&pod(i, "cart"), false, None)));
    let newest = packer.bodies.context().newest().unwrap().id;
    let mut bytes = Vec::new();
    patch::write(b"", b"", b"new", 100, &mut bytes).expect("a patch");
    bytes[..4].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    let tag = Tag { patched: true, ..Tag::loose(3, MediaType::Json, Encoding::Dictionary(newest)) };
    let restoring = packer.restoring();
    let before = restored(&packer, tag.bits(), bytes, false);
    drop(restoring);
    while packer.compact(1 << 20) {}
    let mut state = packer.lock();
    assert!(state.patch(&pod(1, "cart"), &before).is_none());
    assert!(state.base.capacity() < 1 << 30, "as many bytes were allocated");
    drop(state);
    assert!(before.read().is_err() && before.is_lost());
}

#[test]
fn restored_content_goes_to_disk_whatever_the_packing() {
    for (packing, secret) in [(Packing::Raw, false), (Packing::Raw, true), (Packing::Decoded, true)] {
        let packer = Packer::with_storage(packing, Storage::Disk(DiskOptions::default().cache_bytes(0)));
        let kept: Vec<Content> = (0..500)
            .map(|i| {
                let Encoded { media_type, bytes } = pod(i, "cart");
                let tag = Tag::loose(bytes.len() as u32, media_type, Encoding::Stored).bits();
                restored(&packer, tag, bytes.to_vec(), secret)
            })
            .collect();
        spill(&packer);
        assert!(packer.usage().disk_live > 256 << 10, "{packing:?}: {:?}", packer.usage());
        assert!(!packer.is_repacking_due(), "{packing:?}");
        for (i, kept) in kept.iter().enumerate() {
            assert_eq!(kept.read().unwrap(), pod(i as u64, "cart"));
        }
    }
}

/// A large cache takes long to restore, and another namespace may be quiet meanwhile.
#[test]
fn a_dictionary_is_not_forgotten_while_content_is_restored() {
    let trained = |flavour: &str| {
        let packer = Packer::new(Packing::Packed);
        let kept: Vec<Content> =
            (0..1000).map(|i| packer.pack_content(&pod(i, flavour), false, None)).collect();
        let dictionary = packer.bodies.context().newest().unwrap().bytes().to_vec();
        let mut packed = Vec::new();
        let tag = kept[999].save(&mut packed).unwrap();
        (dictionary, tag, packed)
    };
    let ((old, tag, packed), (new, ..)) = (trained("cart"), trained("shop"));
    for begun in [false, true] {
        let packer = Arc::new(Packer::new(Packing::Packed));
        packer.add_saved_dictionaries(vec![(1, new.clone())]).unwrap();
        if begun {
            packer.begin_repacking();
        }
        let restoring = packer.restoring();
        packer.add_saved_dictionaries(vec![(0, old.clone()), (1, new.clone())]).unwrap();
        if !begun {
            assert!(!packer.is_repacking_due());
            packer.begin_repacking();
        }
        let restored = restored(&packer, tag, packed.clone(), false);
        while packer.repack(20_000) {}
        drop(restoring);
        assert_eq!(restored.read().unwrap(), pod(999, "cart"), "begun before: {begun}");
        assert!(packer.is_repacking_due());
        repack(&packer);
        assert_eq!(restored.read().unwrap(), pod(999, "cart"), "begun before: {begun}");
        assert!(!packer.bodies.context().are_outdated());
    }
}
