//! Goals, and whether they are met.

use crate::results::{Figures, Results};

/// Resident memory that is allowed in addition to a share of the settled memory.
const SPARE: f64 = 32e6;

/// What this library took with JSON in the last run of before it spoke protobuf, as ratios to client-go in that
/// run (30,000 pods): its CPU time of a sync to that with protobuf, and its events a second to those with JSON.
const CPU_BEFORE_PROTOBUF: f64 = 2.63 / 7.16;
const EVENTS_BEFORE_PROTOBUF: f64 = 10_311.0 / 1_028.0;

/// A goal: its name, the limit, the measured value and whether it is within the limit.
struct Goal {
    name: String,
    limit: String,
    found: Option<(String, bool)>,
}

impl Goal {
    /// Our figure must be this many times better than that of a peer.
    fn times(name: &str, at_least: f64, ratio: Option<f64>) -> Self {
        let found = ratio.map(|ratio| (format!("{ratio:.2} ×"), ratio >= at_least));
        let limit = format!("≥ {} ×", (at_least * 100.0).round() / 100.0);
        Self { name: name.to_owned(), limit, found }
    }

    fn at_most(name: &str, most: f64, value: Option<f64>, scale: f64, unit: &str) -> Self {
        let found = value.map(|value| (format!("{:.2}{unit}", value / scale), value <= most));
        Self { name: name.to_owned(), limit: format!("≤ {:.2}{unit}", most / scale), found }
    }
}

/// All goals as a Markdown table; empty without our own figures.
pub(crate) fn render(results: &Results) -> String {
    let Some(ours) = results.find("kube-informer", "packed") else { return String::new() };
    let mut out = String::from("| goal | limit | measured | met |\n|---|---:|---:|---|\n");
    for Goal { name, limit, found } in goals(ours, results) {
        let (found, met) = match found {
            Some((found, true)) => (found, "yes"),
            Some((found, false)) => (found, "**no**"),
            None => ("–".to_owned(), "not measured"),
        };
        out += &format!("| {name} | {limit} | {found} | {met} |\n");
    }
    out
}

fn goals(ours: &Figures, results: &Results) -> Vec<Goal> {
    let against = |peer: &str, variant: &str, figure: &str, more_is_better: bool| {
        let (own, other) = (ours.get(figure)?, results.find(peer, variant)?.get(figure)?);
        Some(if more_is_better { own / other } else { other / own })
    };
    let go = |figure: &str| against("client-go", "json", figure, false);
    let go_protobuf = |figure: &str| against("client-go", "proto", figure, false);
    let rs = |figure: &str| against("kube-rs", "json", figure, false);
    let tuned = results.find("kube-informer", "tuned");
    let with_json = |figure: &str| {
        let json = results.find("kube-informer", "json")?;
        Some(json.get(figure)? / ours.get(figure)?)
    };
    let settled = ours.get("rss_settled_bytes").unwrap_or(f64::NAN);
    let peak = |name: &str, share: f64, figure: &str| {
        Goal::at_most(name, share * settled + SPARE, ours.get(figure), 1e6, " MB")
    };
    let left = |name: &str, figure: &str| Goal::at_most(name, settled / 20.0, ours.get(figure), 1e6, " MB");
    vec![
        Goal::at_most("memory per pod", 1600.0, ours.get("bytes_per_object"), 1e3, " KB"),
        Goal::at_most("memory per stubborn pod", 5400.0, ours.get("stubborn_bytes_per_object"), 1e3, " KB"),
        Goal::times("memory per pod, client-go", 20.0, go("bytes_per_object")),
        Goal::times("memory per pod, both tuned, client-go", 12.0, {
            let theirs = results.find("client-go", "tuned").and_then(|peer| peer.get("bytes_per_object"));
            let own = tuned.and_then(|tuned| tuned.get("bytes_per_object"));
            theirs.zip(own).map(|(theirs, own)| theirs / own)
        }),
        Goal::times("memory per pod, with JSON", 1.0, with_json("bytes_per_object")),
        Goal::times("memory per pod, kube-rs", 40.0, rs("bytes_per_object")),
        Goal::times("memory per stubborn pod, client-go", 3.0, go("stubborn_bytes_per_object")),
        Goal::times("memory per stubborn pod, kube-rs", 12.0, rs("stubborn_bytes_per_object")),
        peak("peak of the first sync", 1.25, "rss_peak_bytes"),
        peak("peak of a relist, nothing changed", 1.25, "relist_0_peak_bytes"),
        peak("peak of a relist, 1 % changed", 1.25, "relist_1_peak_bytes"),
        peak("peak of a relist, all changed", 2.2, "relist_100_peak_bytes"),
        Goal::times("CPU to sync, client-go JSON", 5.0, go("sync_cpu_s")),
        Goal::times("CPU to sync, kube-rs", 3.0, rs("sync_cpu_s")),
        Goal::times("CPU to sync, client-go protobuf", 5.0, go_protobuf("sync_cpu_s")),
        Goal::times(
            "CPU to sync, our JSON before protobuf",
            2.0,
            go_protobuf("sync_cpu_s").map(|ratio| ratio * CPU_BEFORE_PROTOBUF),
        ),
        Goal::times("time to sync, client-go protobuf", 1.0 / 1.05, go_protobuf("sync_wall_s")),
        Goal::times("watch events, client-go", 10.0, against("client-go", "json", "events_per_s", true)),
        Goal::times(
            "watch events, client-go protobuf",
            4.0,
            against("client-go", "proto", "events_per_s", true),
        ),
        Goal::times(
            "watch events, our JSON before protobuf",
            2.0,
            against("client-go", "json", "events_per_s", true).map(|ratio| ratio / EVENTS_BEFORE_PROTOBUF),
        ),
        Goal::times("watch events, kube-rs", 2.0, against("kube-rs", "json", "events_per_s", true)),
        Goal::at_most("CPU of a watch event", 20.0, ours.get("event_cpu_us"), 1.0, " µs"),
        Goal::at_most(
            "CPU of a watch event, JSON",
            30.0,
            results.find("kube-informer", "json").and_then(|json| json.get("event_cpu_us")),
            1.0,
            " µs",
        ),
        Goal::times("get, decoded, cold, with JSON", 2.0, with_json("read_get_decoded_cold_us")),
        Goal::at_most(
            "get, decoded, cold, without managedFields",
            25.0,
            tuned.and_then(|tuned| tuned.get("read_get_decoded_cold_us")),
            1.0,
            " µs",
        ),
        Goal::at_most("view of three fields, cold", 8.0, ours.get("read_view_cold_us"), 1.0, " µs"),
        Goal::times("get, client-go", 1.0 / 0.7, go("read_get_ns")),
        Goal::times("get and read a label, client-go", 1.0, go("read_get_labels_ns")),
        Goal::times("list and read each, client-go", 1.0, go("read_list_us")),
        Goal::times("by index, client-go", 1.0, go("read_by_index_us")),
        Goal::times("list and read a label of each, client-go", 1.0, go("read_list_label_us")),
        Goal::times("three fields of a kept view of each, client-go", 1.0, {
            let theirs = results.find("client-go", "json").and_then(|peer| peer.get("read_list_field_us"));
            theirs.zip(ours.get("read_list_kept_us")).map(|(theirs, own)| theirs / own)
        }),
        left("left after decoding everything, one by one", "decode_each_left_bytes"),
        left("left after decoding everything at once", "decode_all_left_bytes"),
        left("the same, after malloc_trim", "decode_all_trimmed_left_bytes"),
        Goal::at_most(
            "writer's p99, readers of the same / another informer",
            1.1,
            ours.get("writer_p99_ratio"),
            1.0,
            "",
        ),
        Goal::at_most(
            "writer's p99, while packing again / settled",
            1.2,
            ours.get("repacking_p99_ratio"),
            1.0,
            "",
        ),
        Goal::times("memory per ConfigMap, client-go", 3.0, go("configmaps_bytes_per_object")),
        Goal::times("memory per Event, client-go", 3.0, go("events_bytes_per_object")),
        Goal::times("memory per custom object, client-go", 3.0, go("widgets_bytes_per_object")),
    ]
}
