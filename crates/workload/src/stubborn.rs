//! Pods that compress badly.

use crate::{
    app::{App, word},
    pod::pod,
};
use fastrand::Rng;
use serde_json::{Value, json};

/// An endless iterator of pods that compress badly.
///
/// 1. Every pod belongs to a different application: no two share names, images, hashes or settings.
/// 2. Every setting has a random value, and each pod has annotations of random text, like tokens, signatures and encoded
///    configuration, which make up about half of it.
/// 3. The same seed and number of nodes give the same pods. Names are unique.
#[derive(Debug)]
pub struct StubbornPods {
    rng: Rng,
    nodes: usize,
    apps: usize,
}

impl StubbornPods {
    /// Pods on the nodes `node-0` to `node-(nodes - 1)`.
    pub fn new(seed: u64, nodes: usize) -> Self {
        Self { rng: Rng::with_seed(seed), nodes: nodes.max(1), apps: 0 }
    }
}

impl Iterator for StubbornPods {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let rng = &mut self.rng;
        let app = App::generate(rng, self.apps);
        self.apps += 1;
        let mut pod = pod(rng, &app, self.nodes);
        let annotations = &mut pod["metadata"]["annotations"];
        annotations["vault.example.com/token"] = base64(rng, 600).into();
        annotations["policy.example.com/signature"] = base64(rng, 684).into();
        annotations["build.example.com/provenance"] = words(rng, 120).into();
        annotations["config.example.com/encoded"] = base64(rng, 1200).into();
        randomize(rng, &mut pod["spec"]["containers"]);
        Some(pod)
    }
}

/// Replaces settings by random values, like encoded secrets and generated addresses.
fn randomize(rng: &mut Rng, containers: &mut Value) {
    for container in containers.as_array_mut().into_iter().flatten() {
        for variable in container["env"].as_array_mut().into_iter().flatten() {
            if variable.get("value").is_some() {
                let length = rng.usize(24..72);
                variable["name"] = word(rng, 12).to_uppercase().into();
                variable["value"] = base64(rng, length).into();
            }
        }
        container["command"] = json!(["/bin/start", words(rng, 6)]);
    }
}

fn base64(rng: &mut Rng, len: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..len).map(|_| char::from(crate::app::pick(rng, DIGITS))).collect()
}

fn words(rng: &mut Rng, count: usize) -> String {
    let words: Vec<String> = (0..count)
        .map(|_| {
            let length = rng.usize(3..10);
            word(rng, length)
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_depend_on_the_seed_only_and_have_different_images() {
        let pods = |seed| StubbornPods::new(seed, 5).take(50).collect::<Vec<_>>();
        assert_eq!(pods(1), pods(1));
        assert_ne!(pods(1), pods(2));
        let images: std::collections::BTreeSet<String> =
            pods(1).iter().map(|pod| pod["spec"]["containers"][0]["image"].to_string()).collect();
        assert_eq!(images.len(), 50);
    }
}
