//! Measures reads of the cache.

use crate::results::median;
use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{HeapSize, Index, LabelSelector, Lister, Object, ObjectKey, SharedInformer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Number and duration of rounds of each kind of read. The best round counts, because other load of the machine distorts
/// the others.
const ROUNDS: usize = 10;
const ROUND: Duration = Duration::from_millis(70);
/// Maximum number of objects that are decoded in a round.
const DECODED: usize = 2000;

/// Nanoseconds per call.
fn per_call(mut call: impl FnMut(usize)) -> f64 {
    let mut calls = 0;
    let mut round = || {
        let (start, before) = (Instant::now(), calls);
        while start.elapsed() < ROUND {
            for _ in 0..16 {
                call(calls);
                calls += 1;
            }
        }
        start.elapsed().as_nanos() as f64 / (calls - before) as f64
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

pub(super) fn measure(informer: &SharedInformer<Pod>, by_node: &Index<String>) -> anyhow::Result<Value> {
    let lister = informer.lister();
    let mut keys: Vec<ObjectKey> = lister.list().iter().map(|pod| pod.key().clone()).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    let key = |i: usize| &keys[i % keys.len()];
    let nodes = lister.values(by_node)?;
    let node = |i: usize| &nodes[i % nodes.len()];
    let first = lister.get(key(0)).context("no pods")?;
    let selector: LabelSelector = format!(
        "app.kubernetes.io/name={}",
        first.labels().get("app.kubernetes.io/name").unwrap_or_default()
    )
    .parse()?;
    let (decoded_cold, drop_decoded) = cold_decodes(&lister, &keys)?;
    let objects = lister.len();
    Ok(json!({
        "get_ns": per_call(|i| { black_box(lister.get(key(i))); }),
        "get_labels_ns": per_call(|i| { black_box(lister.get(key(i)).map(|pod| pod.labels().get("team").map(str::len))); }),
        "get_decoded_cold_us": decoded_cold,
        "drop_decoded_us": drop_decoded,
        "get_decoded_again_us": per_call(|_| { black_box(lister.get(key(0)).map(|pod| pod.decode().is_ok())); }) / 1e3,
        "view_cold_us": cold_views(&lister, &keys)?,
        "list_us": per_call(|_| { black_box(list_and_read(&lister)); }) / 1e3,
        "list_label_us": per_call(|_| { black_box(list_and_read_label(&lister)); }) / 1e3,
        "list_field_us": list_and_read_field(&lister)?,
        "list_kept_us": list_and_read_kept(informer)?,
        "by_index_us": per_call(|i| { black_box(lister.by(by_node, node(i)).map_or(0, |pods| pods.len())); }) / 1e3,
        "by_selector_us": per_call(|_| { black_box(lister.matching(&selector).len()); }) / 1e3,
        "objects": objects,
    }))
}

/// Lists all objects and reads each.
pub(super) fn list_and_read(lister: &Lister<Pod>) -> u64 {
    let version = |pod: &Object<Pod>| pod.resource_version().number().unwrap_or(0);
    lister.list().iter().map(version).fold(0, u64::wrapping_add)
}

/// Lists all objects and reads a label of each.
fn list_and_read_label(lister: &Lister<Pod>) -> usize {
    lister.list().iter().filter_map(|pod| pod.labels().get("team")).map(str::len).sum()
}

/// Three fields of a pod.
#[derive(Deserialize, HeapSize)]
struct PodView {
    spec: SpecView,
    status: StatusView,
}

#[derive(Deserialize, HeapSize)]
#[serde(rename_all = "camelCase")]
struct SpecView {
    node_name: Option<String>,
}

#[derive(Deserialize, HeapSize)]
#[serde(rename_all = "camelCase")]
struct StatusView {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

impl PodView {
    fn len(&self) -> usize {
        let texts = [&self.spec.node_name, &self.status.phase, &self.status.pod_ip];
        texts.into_iter().flatten().map(String::len).sum()
    }
}

/// Microseconds to get an object and read three fields of its content. Median of the best round.
fn cold_views(lister: &Lister<Pod>, keys: &[ObjectKey]) -> anyhow::Result<f64> {
    let mut best = f64::INFINITY;
    for keys in keys.chunks((keys.len() / ROUNDS).clamp(1, DECODED)).take(ROUNDS) {
        let mut views = Vec::new();
        for key in keys {
            let start = Instant::now();
            black_box(lister.get(key).context("a pod is missing")?.view::<PodView>()?.len());
            views.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        best = best.min(median(views));
    }
    Ok(best)
}

/// Microseconds to list all objects and read three fields of the content of each. The better of two rounds.
fn list_and_read_field(lister: &Lister<Pod>) -> anyhow::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..2 {
        let start = Instant::now();
        let mut sum = 0;
        for pod in &lister.list() {
            sum += pod.view::<PodView>()?.len();
        }
        black_box(sum);
        best = best.min(start.elapsed().as_nanos() as f64 / 1e3);
    }
    Ok(best)
}

/// Microseconds to list all objects and read the same fields of a kept view of each.
fn list_and_read_kept(informer: &SharedInformer<Pod>) -> anyhow::Result<f64> {
    let (lister, views) = (informer.lister(), informer.keep_view::<PodView>());
    // Decodes those that are not filled in yet.
    lister.list().iter().try_for_each(|pod| views.of(pod).map(drop))?;
    let micros = per_call(|_| {
        black_box(lister.list().iter().filter_map(|pod| views.of(pod).ok()).map(PodView::len).sum::<usize>());
    }) / 1e3;
    informer.remove_view(views);
    Ok(micros)
}

/// Microseconds to get and decode an object for the first time, and to drop the decoded value. Each object is decoded once.
/// Medians of the best round.
fn cold_decodes(lister: &Lister<Pod>, keys: &[ObjectKey]) -> anyhow::Result<(f64, f64)> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for keys in keys.chunks((keys.len() / ROUNDS).clamp(1, DECODED)).take(ROUNDS) {
        let (mut decodes, mut drops) = (Vec::new(), Vec::new());
        for key in keys {
            let start = Instant::now();
            let pod = black_box(lister.get(key).context("a pod is missing")?.decode()?);
            let decoded = Instant::now();
            drop(pod);
            decodes.push((decoded - start).as_nanos() as f64 / 1e3);
            drops.push(decoded.elapsed().as_nanos() as f64 / 1e3);
        }
        best = (best.0.min(median(decodes)), best.1.min(median(drops)));
    }
    Ok(best)
}

/// Decodes all objects, and drops each before the next.
pub(super) fn decode_each(informer: &SharedInformer<Pod>) -> anyhow::Result<Value> {
    let start = Instant::now();
    let all = informer.lister().list();
    all.iter().try_for_each(|pod| pod.decode().map(drop))?;
    Ok(json!({"objects": all.len(), "wall_s": start.elapsed().as_secs_f64()}))
}

/// Decodes all objects, keeps them all, and then drops them.
pub(super) fn decode_all(informer: &SharedInformer<Pod>) -> anyhow::Result<Value> {
    let start = Instant::now();
    let all: Vec<_> = informer.lister().list().iter().map(|pod| pod.decode()).collect::<Result<_, _>>()?;
    Ok(json!({"objects": all.len(), "wall_s": start.elapsed().as_secs_f64()}))
}
