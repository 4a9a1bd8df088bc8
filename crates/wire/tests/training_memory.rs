//! Resident memory after training. Alone in its program, because other tests would change the figure.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use kube_informer_wire::{Kind, Limits, Object, Origin, Packer, Packing};
use serde_json::{Value, json};
use std::{sync::Arc, thread};

/// Training needs about 12 MB for a moment. Without a call that returns them, glibc keeps 7 MB.
const MOST: usize = 4 << 20;

/// Resident bytes of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

fn pod(origin: &Arc<Origin>, i: u64) -> Object<Value> {
    let mut random = fastrand::Rng::with_seed(i);
    let mut texts = |count: usize| -> Vec<String> {
        // A few hundred texts, so that there is something to learn, and some that no other pod has.
        let mut text = || {
            if random.u8(..4) == 0 {
                random.u64(..)
            } else {
                random.u64(..300).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            }
        };
        (0..count).map(|_| format!("{:016x}", text())).collect()
    };
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"texts": texts(400)},
        "metadata": {"name": format!("pod-{i}"), "namespace": "shop", "resourceVersion": "1"}});
    Object::parse(origin, pod.to_string().into(), &Limits::default()).expect("a pod")
}

/// Packs pods until a dictionary is trained, then until the content is sampled again.
fn grown_by_training() -> usize {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    let packer = Packer::new(Packing::Packed);
    let mut kept: Vec<_> = (0..10).map(|i| packer.pack(pod(&origin, i))).collect();
    let before = resident();
    while packer.stats().dictionaries == 0 {
        kept.push(packer.pack(pod(&origin, kept.len() as u64)));
    }
    packer.retrain();
    let used = packer.usage().total();
    resident().saturating_sub(before + used)
}

#[test]
fn the_memory_of_a_training_is_returned_to_the_system() {
    // In a thread of its own, as a task of a runtime: the main thread has another kind of heap.
    let grown = thread::spawn(grown_by_training).join().expect("no panic");
    assert!(grown < MOST, "{grown} bytes stay resident");
}
