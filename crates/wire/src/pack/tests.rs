mod restored;

use super::*;
use kube_informer_segments::DiskOptions;
use serde_json::json;
use std::{
    pin::pin,
    task::{Context, Wake, Waker},
};

pub(super) fn pod(i: u64, flavour: &str) -> Encoded {
    let mut rng = fastrand::Rng::with_seed(i);
    let hash = format!("{:016x}", rng.u64(..));
    let pod = json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": format!("{flavour}-{hash}"), "namespace": "shop", "uid": hash,
            "labels": {"app": flavour, "pod-template-hash": hash}},
        "spec": {"containers": (0..3).map(|c| json!({"name": format!("{flavour}-{c}"),
            "image": format!("registry.example/{flavour}/server:{c}"),
            "env": (0..9).map(|e| json!({"name": format!("{flavour}_SETTING_{e}"), "value": e.to_string()})).collect::<Vec<_>>(),
        })).collect::<Vec<_>>()},
        "status": {"phase": "Running", "podIP": format!("10.{}.{}.{}", rng.u8(..), rng.u8(..), rng.u8(..))},
    });
    Encoded::json(pod.to_string().into())
}

#[test]
fn packed_content_unpacks_to_the_same() {
    let packer = Packer::new(Packing::Packed);
    let raw: Vec<Encoded> = (0..1000).map(|i| pod(i, "cart")).collect();
    let kept: Vec<Content> = raw.iter().map(|raw| packer.pack_content(raw, false, None)).collect();
    for (raw, kept) in raw.iter().zip(&kept) {
        assert_eq!(&kept.read().unwrap(), raw);
        assert_eq!(kept.raw_len(), raw.bytes.len());
    }
    assert_eq!(packer.stats().dictionaries, 1);
    let late: usize = kept[500..].iter().map(Content::packed_len).sum();
    let late_raw: usize = raw[500..].iter().map(|raw| raw.bytes.len()).sum();
    assert!(late * 10 < late_raw, "a trained dictionary leaves {late} of {late_raw} bytes");
}

#[test]
fn buffers_are_kept_for_the_next_object_unless_they_are_large() {
    let packer = Packer::new(Packing::Packed);
    packer.pack_content(&pod(1, "cart"), false, None);
    assert!(packer.lock().scratch.capacity() > 0);
    let mut rng = fastrand::Rng::with_seed(1);
    let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(1 << 20).collect();
    packer.pack_content(&Encoded::json(json!({ "text": text }).to_string().into()), false, None);
    assert!(packer.lock().scratch.capacity() <= MAX_SCRATCH);
}

#[test]
fn values_of_secrets_are_not_kept() {
    let packer = Packer::new(Packing::Decoded);
    for secret in [false, true] {
        let content = packer.pack_content(&pod(1, "cart"), secret, None);
        assert_eq!(content.decoded_cell().is_some(), !secret);
    }
}

#[test]
fn repacking_is_due_when_more_than_the_allowed_bytes_are_loose() {
    let packer = Packer::new(Packing::Packed);
    for (more, due) in [(0, false), (1, true)] {
        packer.loose.store(packer.most_loose() + more, Relaxed);
        assert_eq!(packer.is_repacking_due(), due);
    }
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn the_task_that_repacks_is_woken_when_there_is_work() {
    let (packer, wakes) = (Packer::new(Packing::Packed), Arc::new(Wakes::default()));
    let waker = Waker::from(Arc::clone(&wakes));
    let (mut kept, mut loose, mut trained) = (Vec::new(), 0, 0);
    for i in 0..1000 {
        let mut due = pin!(packer.compaction_due_or(|| false));
        assert!(due.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        kept.push(packer.pack_content(&pod(i, "cart"), false, None));
        let (loose_before, trained_before) = (loose, trained);
        (loose, trained) = (packer.loose_bytes(), packer.stats().dictionaries);
        let has_work = trained > trained_before || loose_before <= MIN_REPACK && loose > MIN_REPACK;
        assert_eq!(wakes.0.swap(0, Relaxed), usize::from(has_work), "object {i}");
    }
    assert!(trained == 1 && loose > MIN_REPACK && packer.most_loose() == MIN_REPACK);
}

#[test]
fn a_dictionary_is_made_only_for_many_objects() {
    let packer = Packer::new(Packing::Packed);
    for i in 0..2000 {
        packer.keeps(100);
        packer.pack_content(&pod(i % 100, "cart"), false, None);
    }
    assert_eq!(packer.stats().dictionaries, 0, "a hundred objects that change all the time");
    for i in 0..4000 {
        packer.keeps(100 + i);
        packer.pack_content(&pod(i as u64, "cart"), false, None);
    }
    assert_eq!(packer.stats().dictionaries, 1);
}

/// Reads the encoding of packed content.
fn encoding(content: &Content) -> Option<Encoding> {
    match content {
        Content::Packed(body) => Some(Tag::from_bits(body.tag()).encoding),
        Content::Unpacked(_) => None,
    }
}

#[test]
fn content_that_does_not_shrink_is_stored_as_it_is() {
    let mut rng = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(4096).collect();
    let packer = Packer::new(Packing::Packed);
    for raw in [noise, b"{}".to_vec()].map(|raw| Encoded::json(raw.into())) {
        let kept = packer.pack_content(&raw, false, None);
        assert_eq!(encoding(&kept), Some(Encoding::Stored));
        assert_eq!(kept.read().unwrap(), raw);
    }
    let raw = Packer::new(Packing::Raw);
    assert_eq!(encoding(&raw.pack_content(&pod(1, "cart"), false, None)), None);
}

#[test]
fn secrets_never_become_part_of_a_dictionary() {
    let packer = Packer::new(Packing::Packed);
    let kept: Vec<Content> = (0..1000).map(|i| packer.pack_content(&pod(i, "secret"), true, None)).collect();
    repack(&packer);
    for (i, kept) in kept.iter().enumerate() {
        assert_eq!(encoding(kept), Some(Encoding::Plain));
        assert_eq!(kept.read().unwrap(), pod(i as u64, "secret"));
    }
    assert_eq!(packer.stats().dictionaries, 0);
}

#[test]
fn a_secret_is_packed_without_the_dictionary_of_other_objects() {
    let packer = Packer::new(Packing::Packed);
    (0..1000).for_each(|i| drop(packer.pack_content(&pod(i, "cart"), false, None)));
    assert_eq!(packer.stats().dictionaries, 1);
    let secret = packer.pack_content(&pod(1, "cart"), true, None);
    assert_eq!(encoding(&secret), Some(Encoding::Plain));
    assert_eq!(secret.read().unwrap(), pod(1, "cart"));
}

#[test]
fn short_content_is_stored_as_it_is() {
    let packer = Packer::new(Packing::Packed);
    for (length, expected) in [(MIN_LENGTH - 1, Encoding::Stored), (MIN_LENGTH, Encoding::Plain)] {
        let raw = Encoded::json("a".repeat(length as usize).into());
        assert_eq!(encoding(&packer.pack_content(&raw, false, None)), Some(expected), "{length} bytes");
    }
}

pub(super) fn repack(packer: &Packer) {
    packer.begin_repacking();
    while packer.repack(10_000) {}
}

/// Another kind of content altogether: long texts of random words.
fn texts(packer: &Packer) -> Vec<Content> {
    let mut rng = fastrand::Rng::with_seed(7);
    let text = |i: usize| {
        let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(1500).collect();
        let raw = json!({"metadata": {"name": i.to_string()}, "data": {"text": text, "again": &text[..700]}});
        packer.pack_content(&Encoded::json(raw.to_string().into()), false, None)
    };
    (0..8000).map(text).collect()
}

#[test]
fn a_dictionary_that_no_longer_fits_is_replaced_and_the_old_one_goes() {
    let packer = Packer::new(Packing::Packed);
    let old: Vec<Content> = (0..3000).map(|i| packer.pack_content(&pod(i, "cart"), false, None)).collect();
    assert_eq!(packer.stats().dictionaries, 1);
    let dictionary = Arc::downgrade(&packer.bodies.context().newest().unwrap());
    drop(texts(&packer));
    assert!(packer.stats().dictionaries > 1);
    assert_eq!(old[2999].read().unwrap(), pod(2999, "cart"), "old objects keep their dictionary");
    while packer.compact(10_000) {}
    assert!(packer.is_repacking_due());
    repack(&packer);
    assert!(!packer.is_repacking_due());
    assert!(dictionary.upgrade().is_none(), "old objects are packed again");
    for (i, old) in old.iter().enumerate() {
        assert_eq!(old.read().unwrap(), pod(i as u64, "cart"));
    }
}

#[test]
fn repacking_packs_better_and_only_once() {
    let packer = Packer::new(Packing::Packed);
    let kept: Vec<Content> = (0..3000).map(|i| packer.pack_content(&pod(i, "cart"), false, None)).collect();
    let newest = packer.bodies.context().newest().unwrap().id;
    assert_eq!(encoding(&kept[0]), Some(Encoding::Plain), "before there was a dictionary");
    let before = packer.live_bytes();
    assert!(packer.is_repacking_due());
    repack(&packer);
    assert!(!packer.is_repacking_due());
    assert!(packer.live_bytes() < before * 95 / 100, "{} of {before}", packer.live_bytes());
    for (i, kept) in kept.iter().enumerate() {
        assert_eq!(encoding(kept), Some(Encoding::Dictionary(newest)));
        assert_eq!(kept.read().unwrap(), pod(i as u64, "cart"));
    }
    let mut rewriter = Rewriter::default();
    let Content::Packed(body) = &kept[0] else { panic!("packed") };
    let (mut packed, mut out) = (Vec::new(), Vec::new());
    let tag = body.read(&mut packed).unwrap();
    for which in [Repack::Loose, Repack::Outdated] {
        assert_eq!(rewriter.rewrite(which, (tag, &packed), &mut out, packer.bodies.context()), None);
    }
}

#[test]
fn protobuf_of_the_first_list_is_packed_in_less_time_and_later_objects_better() {
    for (encoded, same) in [(in_protobuf as fn(Encoded) -> Encoded, false), (|json| json, true)] {
        let packer = Packer::new(Packing::Packed);
        let pack = || -> Vec<Content> {
            (0..2000).map(|i| packer.pack_content(&encoded(pod(i, "cart")), false, None)).collect()
        };
        let bytes = |kept: &[Content]| kept[1000..].iter().map(Content::packed_len).sum::<usize>();
        let listed = pack();
        let in_list = bytes(&listed);
        repack(&packer);
        let changed = bytes(&pack());
        assert_eq!(packer.stats().dictionaries, 1);
        assert_eq!(in_list == changed, same, "{in_list} and {changed} bytes");
        assert!(changed <= in_list && bytes(&listed) < changed, "{in_list}, {changed}, {}", bytes(&listed));
    }
}

#[test]
fn compressors_and_buffers_are_dropped_until_the_next_object() {
    let packer = Packer::new(Packing::Packed);
    let kept: Vec<Content> = (0..1000).map(|i| packer.pack_content(&pod(i, "cart"), false, None)).collect();
    let secret = packer.pack_content(&pod(1, "cart"), true, None);
    repack(&packer);
    let mut state = packer.lock();
    assert!(state.trained.as_ref().is_some_and(|trained| trained.compressor.is_none()));
    assert!(state.buffers().iter().all(|buffer| buffer.capacity() == 0));
    drop(state);
    let next = packer.pack_content(&pod(1000, "cart"), false, None);
    assert_eq!(encoding(&next), encoding(&kept[999]), "with the same dictionary");
    assert_eq!(next.read().unwrap(), pod(1000, "cart"));
    assert_eq!(secret.read().unwrap(), pod(1, "cart"));
}

#[test]
fn readers_share_contexts_with_all_dictionaries_and_none() {
    let packers = [Packer::new(Packing::Packed), Packer::new(Packing::Packed)];
    let raw = |i: u64| pod(i, ["cart", "shop"][i as usize % 2]);
    let kept: Vec<Content> =
        (0..2000).map(|i| packers[i as usize % 2].pack_content(&raw(i), i % 10 < 2, None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                assert!(kept.iter().zip(0..).all(|(kept, i)| kept.read().is_ok_and(|kept| kept == raw(i))));
            });
        }
    });
    let nonsense = Tag::loose(10, MediaType::Json, Encoding::Plain);
    let mut out = Vec::new();
    for encoding in [Encoding::Plain, Encoding::Dictionary(packers[0].bodies.context().newest().unwrap().id)]
    {
        let tag = Tag { encoding, ..nonsense };
        assert_eq!(encoding::unpack(tag, b"nonsense", packers[0].bodies.context(), &mut out), Ok(None));
    }
    assert_eq!(kept[1999].read().unwrap(), raw(1999), "a context can be used after an error");
}

#[test]
fn garbage_goes_and_the_report_follows() {
    let packer = Packer::new(Packing::Packed);
    let mut kept: Vec<Content> =
        (0..2000).map(|i| packer.pack_content(&pod(i, "cart"), false, None)).collect();
    for i in 0..1000 {
        kept[i * 2] = packer.pack_content(&pod(i as u64, "new"), false, None);
    }
    assert!(packer.usage().garbage > packer.usage().live / 4, "{:?}", packer.usage());
    while packer.compact(10_000) {}
    let usage = packer.usage();
    assert!(usage.garbage <= usage.live / 10 + 8192, "{usage:?}");
    assert_eq!(usage.live, packer.live_bytes());
    drop(kept);
    assert_eq!(packer.live_bytes(), 0);
}

fn packed_object(packer: &Packer, content: Encoded) -> Object<serde_json::Value> {
    let origin = Arc::new(crate::Origin::new(crate::Kind::namespaced("", "v1", "Pod", "pods")));
    packer.pack(Object::parse(&origin, content.bytes, &crate::Limits::default()).unwrap())
}

#[test]
fn different_owners_share_their_kind() {
    let packer = Packer::new(Packing::Packed);
    let owned = |owner: &str| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true});
        let pod = json!({"metadata": {"name": "a", "ownerReferences": [owner]}});
        packed_object(&packer, Encoded::json(pod.to_string().into()))
    };
    let pods = ["a", "b", "a"].map(owned);
    let [a, b, again] = pods.each_ref().map(|pod| pod.controller().unwrap());
    assert!(std::ptr::eq(a, again));
    assert_eq!((&*a.name, &*b.name, &*b.kind, &*b.api_version), ("a", "b", "ReplicaSet", "apps/v1"));
    assert!(Arc::ptr_eq(&a.kind, &b.kind) && Arc::ptr_eq(&a.api_version, &b.api_version));
    drop(pods);
    assert!(packer.usage().owners > 0);
    while packer.compact(1 << 20) {}
    assert_eq!(packer.usage().owners, Packer::new(Packing::Packed).usage().owners, "no owner is left");
}

#[test]
fn labels_go_with_the_objects_that_had_them() {
    let packer = Packer::new(Packing::Packed);
    let objects: Vec<_> = (0..3000).map(|i| packed_object(&packer, pod(i, "cart"))).collect();
    let full = packer.usage().labels;
    drop(objects);
    let (mut empty, mut more, mut largest_step) = (full, true, 0);
    while more {
        more = packer.compact(1 << 20);
        let before = std::mem::replace(&mut empty, packer.usage().labels);
        largest_step = largest_step.max(before - empty);
    }
    assert!(empty * 20 < full, "{empty} of {full} bytes");
    assert!(largest_step * 2 < full, "{largest_step} of {full} bytes while the lock was held");
}

/// Writes everything to disk that can be written.
fn spill(packer: &Packer) {
    while packer.is_spill_due() {
        packer.spill().unwrap();
    }
}

#[test]
fn content_on_disk_is_repacked_and_read() {
    for packing in [Packing::Packed, Packing::Raw] {
        let packer = Packer::with_storage(packing, Storage::Disk(DiskOptions::default().cache_bytes(0)));
        let kept: Vec<Content> = (0..2000)
            .map(|i| {
                let content = packer.pack_content(&pod(i, "cart"), false, None);
                spill(&packer);
                content
            })
            .collect();
        assert!(packer.usage().disk_live > 0, "{:?}", packer.usage());
        assert_eq!(packer.is_repacking_due(), packing == Packing::Packed);
        packer.begin_repacking();
        while packer.repack(20_000) {
            spill(&packer);
        }
        let usage = packer.usage();
        assert!(usage.live < 600_000, "{usage:?}");
        assert_eq!(usage.live + usage.disk_live, packer.live_bytes());
        assert!(packing == Packing::Raw || !packer.bodies.context().are_outdated());
        for (i, kept) in kept.iter().enumerate() {
            assert_eq!(kept.read().unwrap(), pod(i as u64, "cart"));
        }
    }
}

fn is_patched(content: &Content) -> bool {
    matches!(content, Content::Packed(body) if Tag::from_bits(body.tag()).patched)
}

/// A pod in another phase.
fn pod_in(i: usize, phase: &str) -> Encoded {
    let json = String::from_utf8(pod(i as u64, "cart").bytes.to_vec()).unwrap();
    Encoded::json(json.replace("Running", phase).into())
}

#[test]
fn a_small_change_is_stored_as_a_difference_until_everything_is_packed_again() {
    let packer = Packer::new(Packing::Packed);
    let first: Vec<Content> =
        (0..1000).map(|i| packer.pack_content(&pod_in(i, "Running"), false, None)).collect();
    let mut kept: Vec<Content> = Vec::new();
    for (i, before) in first.iter().enumerate().skip(500) {
        let failed = packer.pack_content(&pod_in(i, "Failed"), false, Some(before));
        let unknown = packer.pack_content(&pod_in(i, "Unknown"), false, Some(&failed));
        assert!(is_patched(&failed) && is_patched(&unknown));
        assert_eq!(failed.read().unwrap(), pod_in(i, "Failed"));
        assert!(unknown.packed_len() <= before.packed_len() * 5 / 4 + 8, "patches do not add up");
        kept.push(unknown);
    }
    assert!(packer.is_repacking_due());
    repack(&packer);
    for (i, kept) in kept.iter().enumerate() {
        assert!(!is_patched(kept));
        assert_eq!(kept.read().unwrap(), pod_in(i + 500, "Unknown"));
    }
}

#[test]
fn a_large_change_and_content_with_an_older_dictionary_are_packed_as_a_whole() {
    let packer = Packer::new(Packing::Packed);
    let kept: Vec<Content> =
        (0..1000).map(|i| packer.pack_content(&pod_in(i, "Running"), false, None)).collect();
    let other = packer.pack_content(&pod(1, "other"), false, Some(&kept[999]));
    assert!(!is_patched(&other));
    assert_eq!(other.read().unwrap(), pod(1, "other"));
    let plain = packer.pack_content(&pod_in(0, "Failed"), false, Some(&kept[0]));
    assert!(!is_patched(&plain), "packed before there was a dictionary");
    assert_eq!(encoding(&plain), encoding(&kept[999]));
}

/// The same bytes in the other encoding.
fn in_protobuf(json: Encoded) -> Encoded {
    Encoded::protobuf(json.bytes)
}

#[test]
fn a_few_objects_in_the_other_encoding_keep_the_dictionary() {
    let late_bytes = |packer: &Packer, raw: &dyn Fn(u64) -> Encoded| {
        let kept: Vec<Content> = (0..3000).map(|i| packer.pack_content(&raw(i), false, None)).collect();
        for (i, kept) in (0..).zip(&kept) {
            assert_eq!(kept.read().unwrap(), raw(i));
        }
        kept[1000..].iter().map(Content::packed_len).sum::<usize>()
    };
    let one_encoding = late_bytes(&Packer::new(Packing::Packed), &|i| in_protobuf(pod(i, "cart")));
    for nth in [2, 3, 300, 1000] {
        let packer = Packer::new(Packing::Packed);
        let raw = |i: u64| if i % nth == 1 { in_protobuf(pod(i, "cart")) } else { pod(i, "cart") };
        let late = late_bytes(&packer, &raw);
        assert_eq!(packer.stats().dictionaries, 1, "one of {nth} in protobuf");
        let most = one_encoding + one_encoding / 20;
        assert!(late <= most, "one of {nth} in protobuf: {late} bytes, {one_encoding} in one encoding");
    }
}

#[test]
fn a_collection_in_another_encoding_gets_a_dictionary_of_its_own() {
    let packer = Packer::new(Packing::Packed);
    let _json: Vec<Content> = (0..1000).map(|i| packer.pack_content(&pod(i, "cart"), false, None)).collect();
    let protobuf: Vec<Content> =
        (0..1000).map(|i| packer.pack_content(&in_protobuf(pod(i, "cart")), false, None)).collect();
    assert_eq!(packer.stats().dictionaries, 2);
    let newest = packer.bodies.context().newest().unwrap().id;
    assert_eq!(encoding(&protobuf[999]), Some(Encoding::Dictionary(newest)));
}
