use super::super::{Content, tests::pod, tests::repack};
use super::*;
use crate::media_type::Encoded;

/// Twice as many bytes as the samples of the second dictionary.
const COUNT: u64 = 4_000;

/// Pods as a list has them: sorted by application.
fn applications(count: u64) -> impl Iterator<Item = Encoded> {
    (0..count).map(|i| pod(i, &format!("application-{:03}", i / 100)))
}

fn packed(packer: &Packer, count: u64) -> Vec<Content> {
    applications(count).map(|raw| packer.pack_content(&raw, false, None)).collect()
}

#[test]
fn a_dictionary_of_the_whole_collection_packs_it_better() {
    let (first, both) = (Packer::new(Packing::Packed), Packer::new(Packing::Packed));
    let kept = [packed(&first, COUNT), packed(&both, COUNT)];
    both.retrain();
    assert_eq!(both.retrained_at.load(Relaxed), both.live_bytes());
    assert_eq!((first.stats().dictionaries, both.stats().dictionaries), (1, 2));
    repack(&first);
    repack(&both);
    assert!(!both.bodies.context().are_outdated(), "the first one is forgotten");
    let [less, more] = [&both, &first].map(Packer::live_bytes);
    assert!(less < more - more / 20, "{less} and {more} bytes");
    for kept in kept {
        assert!(
            kept.iter().zip(applications(COUNT)).all(|(kept, raw)| kept.read().is_ok_and(|kept| kept == raw))
        );
    }
}

#[test]
fn a_dictionary_that_is_not_better_is_not_used() {
    let packer = Packer::new(Packing::Packed);
    let raw: Vec<Encoded> = (0..COUNT).map(|i| pod(i, "cart")).collect();
    let kept: Vec<Content> = raw.iter().map(|raw| packer.pack_content(raw, false, None)).collect();
    let trained = packer.stats().dictionaries;
    packer.retrain();
    packer.retrain();
    assert!(packer.stats().dictionaries <= trained + 1, "the same samples again yield nothing better");
    assert!(kept.iter().zip(&raw).all(|(kept, raw)| kept.read().is_ok_and(|kept| kept == *raw)));
}

#[test]
fn a_large_collection_is_sampled_once_and_again_when_it_has_grown() {
    for (live, before, due) in [
        (MIN_LIVE - 1, 0, false),
        (MIN_LIVE, 0, true),
        (MIN_LIVE, MIN_LIVE, false),
        (GROWTH * MIN_LIVE - 1, MIN_LIVE, false),
        (GROWTH * MIN_LIVE, MIN_LIVE, true),
    ] {
        assert_eq!(is_due(live, before), due, "{live} and {before} bytes");
    }
}

#[test]
fn secrets_are_no_samples() {
    let secrets = Packer::new(Packing::Packed);
    let kept: Vec<Content> = applications(COUNT).map(|raw| secrets.pack_content(&raw, true, None)).collect();
    secrets.retrain();
    assert_eq!(secrets.stats().dictionaries, 0);
    drop(kept);
}

#[test]
fn a_dictionary_that_was_replaced_meanwhile_is_not_replaced_again() {
    let packer = Packer::new(Packing::Packed);
    let kept = packed(&packer, COUNT);
    let before = packer.bodies.context().newest().unwrap();
    packer.retrain();
    let newest = packer.bodies.context().newest().unwrap();
    assert_ne!(newest.id, before.id);
    packer.replace(&before, before.bytes().to_vec());
    assert_eq!(packer.bodies.context().newest().unwrap().id, newest.id);
    drop(kept);
}
