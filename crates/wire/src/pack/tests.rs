use super::*;
use serde_json::json;

fn pod(i: u64, flavour: &str) -> Bytes {
    let mut rng = fastrand::Rng::with_seed(i);
    let hash = format!("{:016x}", rng.u64(..));
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": format!("{flavour}-{hash}"), "namespace": "shop", "uid": hash,
            "labels": {"app": flavour, "pod-template-hash": hash}},
        "spec": {"containers": (0..3).map(|c| json!({"name": format!("{flavour}-{c}"),
            "image": format!("registry.example/{flavour}/server:{c}"),
            "env": (0..9).map(|e| json!({"name": format!("{flavour}_SETTING_{e}"), "value": e.to_string()})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>()},
        "status": {"phase": "Running", "podIP": format!("10.{}.{}.{}", rng.u8(..), rng.u8(..), rng.u8(..))},
    })
    .to_string()
    .into()
}

#[test]
fn packed_content_unpacks_to_the_same() {
    let packer = Packer::new(Packing::Packed);
    let raw: Vec<Bytes> = (0..1000).map(|i| pod(i, "cart")).collect();
    let kept: Vec<Content> =
        raw.iter().map(|raw| packer.pack_content(Content::Raw(raw.clone()), false)).collect();
    for (raw, kept) in raw.iter().zip(&kept) {
        assert_eq!(kept.read().unwrap(), raw);
        assert_eq!(kept.raw_len(), raw.len());
    }
    assert_eq!(packer.stats().dictionaries, 1);
    let late: usize = kept[500..].iter().map(Content::heap_len).sum();
    let late_raw: usize = raw[500..].iter().map(Bytes::len).sum();
    assert!(late * 10 < late_raw, "a trained dictionary leaves {late} of {late_raw} bytes");
}

#[test]
fn a_dictionary_is_made_only_for_many_objects() {
    let packer = Packer::new(Packing::Packed);
    for i in 0..2000 {
        packer.keeps(100);
        packer.pack_content(Content::Raw(pod(i % 100, "cart")), false);
    }
    assert_eq!(packer.stats().dictionaries, 0, "a hundred objects that change all the time");
    for i in 0..4000 {
        packer.keeps(100 + i);
        packer.pack_content(Content::Raw(pod(i as u64, "cart")), false);
    }
    assert_eq!(packer.stats().dictionaries, 1);
}

#[test]
fn content_that_does_not_shrink_is_stored_as_it_is() {
    let mut rng = fastrand::Rng::with_seed(1);
    let noise: Bytes = std::iter::repeat_with(|| rng.u8(..)).take(4096).collect::<Vec<_>>().into();
    let packer = Packer::new(Packing::Packed);
    assert!(matches!(packer.pack_content(Content::Raw(noise.clone()), false), Content::Raw(_)));
    assert!(matches!(packer.pack_content(Content::Raw(Bytes::from_static(b"{}")), false), Content::Raw(_)));
    let raw = Packer::new(Packing::Raw);
    assert!(matches!(raw.pack_content(Content::Raw(pod(1, "cart")), false), Content::Raw(_)));
}

#[test]
fn secrets_never_become_part_of_a_dictionary() {
    let packer = Packer::new(Packing::Packed);
    for i in 0..1000 {
        let kept = packer.pack_content(Content::Raw(pod(i, "secret")), true);
        if let Content::Packed(packed) = &kept {
            assert!(packed.dictionary.is_none());
        }
        assert_eq!(kept.read().unwrap(), pod(i, "secret"));
    }
    assert_eq!(packer.stats().dictionaries, 0);
}

#[test]
fn a_dictionary_that_no_longer_fits_is_replaced_and_the_old_one_goes() {
    let packer = Packer::new(Packing::Packed);
    let old: Vec<Content> =
        (0..3000).map(|i| packer.pack_content(Content::Raw(pod(i, "cart")), false)).collect();
    assert_eq!(packer.stats().dictionaries, 1);
    let dictionary = old.iter().rev().find_map(|content| match content {
        Content::Packed(packed) => packed.dictionary.as_ref().map(Arc::downgrade),
        Content::Raw(_) | Content::Decoded(_) => None,
    });
    let mut rng = fastrand::Rng::with_seed(7);
    for i in 0..8000 {
        // Another kind of content altogether: long texts of random words.
        let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(1500).collect();
        let raw = json!({"metadata": {"name": i.to_string()}, "data": {"text": text, "again": &text[..700]}});
        packer.pack_content(Content::Raw(raw.to_string().into()), false);
    }
    assert!(packer.stats().dictionaries > 1);
    assert_eq!(old[2999].read().unwrap(), pod(2999, "cart"), "old objects keep their dictionary");
    drop(old);
    assert!(dictionary.unwrap().upgrade().is_none());
}
