//! SVG plots with a horizontal bar for each contender.

use crate::results::Results;

/// File name, title, figure, divisor, unit.
const PLOTS: [(&str, &str, &str, f64, &str); 6] = [
    ("memory.svg", "Memory per cached pod (realistic), lower is better", "bytes_per_object", 1e3, "KB"),
    (
        "memory-stubborn.svg",
        "Memory per cached pod (stubborn), lower is better",
        "stubborn_bytes_per_object",
        1e3,
        "KB",
    ),
    ("peak.svg", "Peak RSS of the first sync, lower is better", "rss_peak_bytes", 1e6, "MB"),
    ("cpu.svg", "CPU to sync, lower is better", "sync_cpu_s", 1.0, "s"),
    ("events.svg", "Watch events to a handler, higher is better", "events_per_s", 1.0, "/s"),
    ("relist.svg", "CPU of a relist, 1 % changed, lower is better", "relist_1_cpu_s", 1.0, "s"),
];

const WIDTH: f64 = 720.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 110.0;
const BAR: f64 = 26.0;
const TOP: f64 = 48.0;

/// All plots with figures: file name and content.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, String)> {
    let plot = |(file, title, figure, scale, unit): (&'static str, &str, &str, f64, &str)| {
        let bars: Vec<(String, bool, f64)> = results
            .contenders
            .iter()
            .filter_map(|of| Some((of.label(), of.name() == "kube-informer", of.get(figure)? / scale)))
            .collect();
        (!bars.is_empty()).then(|| (file, render(&format!("{title} ({} pods)", results.pods), &bars, unit)))
    };
    PLOTS.into_iter().filter_map(plot).collect()
}

fn render(title: &str, bars: &[(String, bool, f64)], unit: &str) -> String {
    let most = bars.iter().map(|(_, _, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + bars.len() as f64 * (BAR + 10.0) + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"28\" font-size=\"16\" fill=\"#1f2328\">{title}</text>\n"
    );
    for (i, (label, ours, value)) in bars.iter().enumerate() {
        let (y, colour) = (TOP + i as f64 * (BAR + 10.0), if *ours { "#2f6fde" } else { "#8c959f" });
        let length = ((WIDTH - LEFT - RIGHT) * value.max(0.0) / most).max(1.0);
        let (middle, end) = (y + BAR * 0.68, LEFT + length + 8.0);
        svg += &format!(
            "<text x=\"{x}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#1f2328\">{label}</text>\n\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\n\
             <text x=\"{end:.1}\" y=\"{middle:.1}\" fill=\"#1f2328\">{shown} {unit}</text>\n",
            x = LEFT - 10.0,
            shown = shown(*value),
        );
    }
    svg + "</svg>\n"
}

fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Figures;
    use serde_json::{Map, Value};

    #[test]
    fn a_plot_has_a_bar_for_each_contender_with_the_figure() {
        let (mut ours, mut theirs) =
            (Figures::new("kube-informer", "packed"), Figures::new("client-go", "json"));
        ours.put("bytes_per_object", 1000.0);
        theirs.put("bytes_per_object", 20_000.0);
        ours.missing(&["sync_cpu_s"], "not measured");
        let contenders = vec![ours, theirs];
        let results =
            Results { pods: 10, command: String::new(), machine: Value::Null, data: Map::new(), contenders };
        let plots = all(&results);
        let names: Vec<&str> = plots.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["memory.svg"]);
        assert_eq!(plots[0].1.matches("<rect x").count(), 2);
        assert!(plots[0].1.contains("20.0 KB") && plots[0].1.contains("1.00 KB"));
    }
}
