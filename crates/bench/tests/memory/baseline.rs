//! Compares bytes per cached object with the baseline.

use crate::fixed_source::FixedSource;
use cap::Cap;
use kube_informer::{
    DiskOptions, HandlerFuncs, InformerBuilder, Kind, ListWatch, Packing, SharedInformer, Stop, Storage,
};
use kube_informer_workload::{Pods, StubbornPods, config_map, event, secret};
use serde_json::{Map, Value};
use std::{alloc::System, fs, path::PathBuf, sync::Arc, time::Duration};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Allowed increase over the baseline.
const TOLERANCE: f64 = 1.10;

/// Memory of the cache of decoded values.
const DECODE_CACHE: f64 = 2e6;

fn baseline_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "memory-baseline.json"].iter().collect()
}

/// Bytes of recent content in memory, with content on disk. Few, because there are few objects.
const DISK_CACHE: usize = 64 << 10;
/// Bytes in memory that a Secret of 50 KB may take with its content on disk.
const SECRET_ON_DISK: f64 = 3000.0;

/// One measurement.
struct Case {
    name: &'static str,
    packing: Packing,
    storage: Storage,
    source: FixedSource,
    objects: usize,
}

impl Case {
    fn new(name: &'static str, packing: Packing, source: FixedSource, objects: usize) -> Self {
        Self { name, packing, storage: Storage::Memory, source, objects }
    }
}

fn cases() -> Vec<Case> {
    let kind = |kind: &str, plural: &str| Kind::namespaced("", "v1", kind, plural);
    let pods = || kind("Pod", "pods");
    let mut rng = fastrand::Rng::with_seed(1);
    let mut many = |make: fn(&mut fastrand::Rng, usize) -> Value, count: usize| -> Vec<Value> {
        (0..count).map(|number| make(&mut rng, number)).collect()
    };
    let secrets = |secrets: Vec<Value>| FixedSource::new(kind("Secret", "secrets"), secrets.into_iter());
    vec![
        Case::new(
            "pods packed",
            Packing::Packed,
            FixedSource::new(pods(), Pods::new(1, 24).take(1200)),
            1200,
        ),
        Case::new("pods raw", Packing::Raw, FixedSource::new(pods(), Pods::new(1, 24).take(200)), 200),
        Case::new(
            "stubborn pods packed",
            Packing::Packed,
            FixedSource::new(pods(), StubbornPods::new(1, 24).take(600)),
            600,
        ),
        Case::new(
            "configmaps packed",
            Packing::Packed,
            FixedSource::new(kind("ConfigMap", "configmaps"), many(config_map, 1000).into_iter()),
            1000,
        ),
        Case::new("secrets packed", Packing::Packed, secrets(many(secret, 50)), 50),
        Case::new(
            "events packed",
            Packing::Packed,
            FixedSource::new(kind("Event", "events"), many(event, 1000).into_iter()),
            1000,
        ),
        Case {
            storage: Storage::Disk(DiskOptions::default().cache_bytes(DISK_CACHE)),
            ..Case::new("secrets on disk", Packing::Packed, secrets(many(secret, 200)), 200)
        },
    ]
}

/// Bytes per object of a synced informer with an index by node and one handler after its content was repacked, and bytes
/// that are left after all objects were decoded once.
async fn measure(Case { packing, storage, source, objects, .. }: Case) -> (f64, f64) {
    let on_disk = storage != Storage::Memory;
    let (origin, source) = (Arc::clone(&source.origin), Arc::new(source) as Arc<dyn ListWatch>);
    let before = ALLOCATOR.allocated();
    let informer: SharedInformer<Value> =
        InformerBuilder::new(origin).packing(packing).storage(storage).build(move |_| Arc::clone(&source));
    informer.index_field("spec.nodeName").expect("an index");
    let registration = informer.add_handler(HandlerFuncs::new());
    informer.start();
    informer.synced(Duration::from_secs(60)).await.expect("synced");
    registration.synced().await.expect("synced");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(informer.lister().len(), objects);
    let settled = ALLOCATOR.allocated();
    let (usage, allocated) = (informer.memory(), settled - before);
    let reported = usage.total() as f64 / allocated as f64;
    // The rest is fixed, and a larger part of little memory.
    let least = if on_disk { 0.85 } else { 0.95 };
    assert!((least..1.02).contains(&reported), "{allocated} bytes are allocated, reported are {usage:?}");
    if on_disk {
        assert!(usage.total() as f64 <= SECRET_ON_DISK * objects as f64, "{usage:?}");
        assert!(usage.disk() > 30_000 * objects && usage.disk() <= usage.disk_content * 5 / 4, "{usage:?}");
    }
    let all: Vec<_> = informer.lister().list().iter().map(|object| object.decode()).collect();
    assert!(all.iter().all(Result::is_ok));
    drop(all);
    let left = ALLOCATOR.allocated() as f64 - settled as f64;
    informer.stop(Stop::Drop).await;
    ((settled - before) as f64 / objects as f64, left)
}

#[tokio::test(start_paused = true)]
async fn memory_per_object_stays_within_a_tenth_of_the_baseline() {
    let wanted: Map<String, Value> = match std::env::var_os("UPDATE_BASELINE") {
        Some(_) => Map::new(),
        None => {
            serde_json::from_slice(&fs::read(baseline_file()).expect("a baseline")).expect("a JSON object")
        }
    };
    let mut found = Map::new();
    for case in cases() {
        let name = case.name;
        let (bytes, left) = measure(case).await;
        println!("{name}: {bytes:.0} bytes each, {left:.0} left after decoding everything");
        assert!(left < DECODE_CACHE, "{name}: decoding everything once leaves {left} bytes");
        if let Some(most) = wanted.get(name).and_then(Value::as_f64) {
            assert!(
                bytes <= most * TOLERANCE,
                "{name}: {bytes:.0} bytes each, the baseline is {most:.0}; if that is intended, run the test with UPDATE_BASELINE=1"
            );
        } else {
            assert!(wanted.is_empty(), "{name} is not in the baseline; run the test with UPDATE_BASELINE=1");
        }
        found.insert(name.to_owned(), (bytes.round() as u64).into());
    }
    if wanted.is_empty() {
        fs::write(baseline_file(), serde_json::to_string_pretty(&found).expect("JSON") + "\n")
            .expect("written");
    }
}
