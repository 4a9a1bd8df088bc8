//! Tables of figures and ratios.

use crate::results::{Figures, Results};

/// A row: its title, figure and unit.
struct Row {
    title: &'static str,
    figure: &'static str,
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Kilobytes,
    Megabytes,
    PerSecond,
    Micros,
    Nanos,
    Ratio,
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond)
    }
}

const fn row(title: &'static str, figure: &'static str, unit: Unit) -> Row {
    Row { title, figure, unit }
}

const ROWS: &[Row] = &[
    row("memory per cached pod", "bytes_per_object", Unit::Kilobytes),
    row("the same, stubborn pods", "stubborn_bytes_per_object", Unit::Kilobytes),
    row("settled RSS", "rss_settled_bytes", Unit::Megabytes),
    row("peak RSS, first sync", "rss_peak_bytes", Unit::Megabytes),
    row("peak RSS, relist, nothing changed", "relist_0_peak_bytes", Unit::Megabytes),
    row("peak RSS, relist, 1 % changed", "relist_1_peak_bytes", Unit::Megabytes),
    row("peak RSS, relist, all changed", "relist_100_peak_bytes", Unit::Megabytes),
    row("CPU to sync", "sync_cpu_s", Unit::Seconds),
    row("time to sync", "sync_wall_s", Unit::Seconds),
    row("CPU of the server for the sync", "sync_server_cpu_s", Unit::Seconds),
    row("CPU after the sync: packing again, garbage collection", "upkeep_cpu_s", Unit::Seconds),
    row("CPU of a relist, nothing changed", "relist_0_cpu_s", Unit::Seconds),
    row("CPU of a relist, 1 % changed", "relist_1_cpu_s", Unit::Seconds),
    row("CPU of a relist, all changed", "relist_100_cpu_s", Unit::Seconds),
    row("watch events to a handler", "events_per_s", Unit::PerSecond),
    row("CPU of a watch event", "event_cpu_us", Unit::Micros),
    row("write to handler, p50", "latency_p50_us", Unit::Micros),
    row("write to handler, p99", "latency_p99_us", Unit::Micros),
    row("get", "read_get_ns", Unit::Nanos),
    row("get and read a label", "read_get_labels_ns", Unit::Nanos),
    row("get, decoded, cold", "read_get_decoded_cold_us", Unit::Micros),
    row("drop the decoded pod", "read_drop_decoded_us", Unit::Micros),
    row("view of three fields, cold", "read_view_cold_us", Unit::Micros),
    row("list everything, read each", "read_list_us", Unit::Micros),
    row("list everything, read a label of each", "read_list_label_us", Unit::Micros),
    row("list everything, read three fields of each", "read_list_field_us", Unit::Micros),
    row("the same, of a kept view", "read_list_kept_us", Unit::Micros),
    row("by index", "read_by_index_us", Unit::Micros),
    row("by selector", "read_by_selector_us", Unit::Micros),
    row("left after decoding everything, one by one", "decode_each_left_bytes", Unit::Megabytes),
    row("left after decoding everything at once", "decode_all_left_bytes", Unit::Megabytes),
    row("the same, after malloc_trim", "decode_all_trimmed_left_bytes", Unit::Megabytes),
    row("writer's p99, readers of the same / another informer", "writer_p99_ratio", Unit::Ratio),
    row("writer's p99, while packing again / settled", "repacking_p99_ratio", Unit::Ratio),
    row("growth with a stalled handler", "stall_bytes", Unit::Megabytes),
    row("memory per ConfigMap", "configmaps_bytes_per_object", Unit::Kilobytes),
    row("memory per Secret of 50 KB", "secrets_bytes_per_object", Unit::Kilobytes),
    row("memory per Event", "events_bytes_per_object", Unit::Kilobytes),
    row("memory per custom object", "widgets_bytes_per_object", Unit::Kilobytes),
];

/// A Markdown table of the figures of each contender, and of the ratios of peers with JSON to ours.
pub(crate) fn render(results: &Results) -> String {
    let shown: Vec<&Figures> = results.contenders.iter().collect();
    let ours = results.find("kube-informer", "packed");
    let mut out = String::from("| |");
    shown.iter().for_each(|figures| out += &format!(" {} |", figures.label()));
    out += " against client-go | against kube-rs |\n|---|";
    out += &"---:|".repeat(shown.len() + 2);
    out.push('\n');
    for row in ROWS {
        if shown.iter().all(|figures| figures.get(row.figure).is_none()) {
            continue;
        }
        out += &format!("| {} |", row.title);
        shown.iter().for_each(|figures| out += &format!(" {} |", show(figures.get(row.figure), row.unit)));
        for (peer, variant) in [("client-go", "json"), ("kube-rs", "json")] {
            let ratio = ours
                .and_then(|ours| ours.get(row.figure))
                .zip(results.find(peer, variant).and_then(|peer| peer.get(row.figure)))
                .map(|(ours, theirs)| if row.unit.more_is_better() { ours / theirs } else { theirs / ours })
                .filter(|ratio| ratio.is_finite() && !matches!(row.unit, Unit::Ratio));
            out += &ratio.map_or(" |".to_owned(), |ratio| format!(" {} |", times(ratio)));
        }
        out.push('\n');
    }
    out
}

/// The rows of the table of controllers.
const CONTROLLER_ROWS: &[Row] = &[
    row("reconciles, as fast as changes arrive", "reconciles_per_s", Unit::PerSecond),
    row("CPU of a change and its reconcile", "reconcile_cpu_us", Unit::Micros),
    row("CPU of an object, from the list to its first reconcile", "initial_cpu_us", Unit::Micros),
    row("write to reconcile, p50", "latency_p50_us", Unit::Micros),
    row("write to reconcile, p99", "latency_p99_us", Unit::Micros),
    row("settled RSS", "rss_settled_bytes", Unit::Megabytes),
];

/// The rows of the table of programs with a store.
const STORE_ROWS: &[Row] = &[
    row("settled RSS", "rss_settled_bytes", Unit::Megabytes),
    row("CPU to sync", "sync_cpu_s", Unit::Seconds),
    row("`find`, all pods", "read_find_s", Unit::Seconds),
    row("peak RSS of it", "read_find_peak_bytes", Unit::Megabytes),
    row("`state`", "read_state_s", Unit::Seconds),
    row("peak RSS of it", "read_state_peak_bytes", Unit::Megabytes),
];

/// A Markdown table of controllers.
pub(crate) fn of_controllers(contenders: &[&Figures]) -> String {
    all_figures(CONTROLLER_ROWS, contenders)
}

/// A Markdown table of programs with a store.
pub(crate) fn of_stores(contenders: &[&Figures]) -> String {
    all_figures(STORE_ROWS, contenders)
}

fn all_figures(rows: &[Row], contenders: &[&Figures]) -> String {
    let mut out = String::from("| |");
    contenders.iter().for_each(|figures| out += &format!(" {} |", figures.label()));
    out += &format!("\n|---|{}\n", "---:|".repeat(contenders.len()));
    for row in rows {
        out += &format!("| {} |", row.title);
        contenders
            .iter()
            .for_each(|figures| out += &format!(" {} |", show(figures.get(row.figure), row.unit)));
        out.push('\n');
    }
    out
}

/// The rows of the short table.
const SHORT: &[(&str, &str)] = &[
    ("memory per cached pod", "bytes_per_object"),
    ("settled memory of the process", "rss_settled_bytes"),
    ("peak during the first sync", "rss_peak_bytes"),
    ("peak during a relist, 1 % changed", "relist_1_peak_bytes"),
    ("processor time to sync", "sync_cpu_s"),
    ("processor time of a watch event", "event_cpu_us"),
    ("watch events to a handler", "events_per_s"),
];

/// A short table: our figures, and those of both peers with JSON, with ratios.
pub(crate) fn short(results: &Results) -> String {
    let Some(ours) = results.find("kube-informer", "packed") else { return String::new() };
    let mut out = String::from("| | kube-informer | client-go | kube-rs |\n|---|---:|---:|---:|\n");
    for (what, figure) in SHORT {
        let Some(unit) = ROWS.iter().find(|row| row.figure == *figure).map(|row| row.unit) else { continue };
        let Some(own) = ours.get(figure) else { continue };
        out += &format!("| {what} | **{}** |", show(Some(own), unit));
        for peer in ["client-go", "kube-rs"] {
            let other = results.find(peer, "json").and_then(|peer| peer.get(figure));
            let ratio = other.map(|other| if unit.more_is_better() { own / other } else { other / own });
            let ratio = ratio.map_or(String::new(), |ratio| format!(" ({})", times(ratio)));
            out += &format!(" {}{ratio} |", show(other, unit));
        }
        out.push('\n');
    }
    out
}

fn times(ratio: f64) -> String {
    if ratio.abs() >= 10.0 { format!("{ratio:.0} ×") } else { format!("{ratio:.2} ×") }
}

fn show(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let (scaled, name) = match unit {
        Unit::Seconds => (value, " s"),
        Unit::Kilobytes => (value / 1e3, " KB"),
        Unit::Megabytes => (value / 1e6, " MB"),
        Unit::PerSecond => (value, " /s"),
        Unit::Micros => (value, " µs"),
        Unit::Nanos => (value, " ns"),
        Unit::Ratio => (value, ""),
    };
    match scaled.abs() {
        large if large >= 100.0 => format!("{scaled:.0}{name}"),
        middle if middle >= 10.0 => format!("{scaled:.1}{name}"),
        _ => format!("{scaled:.2}{name}"),
    }
}
