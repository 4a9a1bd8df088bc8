//! A small comparison: the embedded server, this library, and a peer that cannot be built.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use serde_json::Value;
use std::process::Command;

const MEASURED: [&str; 19] = [
    "sync_wall_s",
    "sync_cpu_s",
    "rss_peak_bytes",
    "rss_settled_bytes",
    "bytes_per_object",
    "relist_0_peak_bytes",
    "relist_1_cpu_s",
    "relist_100_settled_bytes",
    "events_per_s",
    "event_cpu_us",
    "read_get_ns",
    "read_get_decoded_cold_us",
    "read_drop_decoded_us",
    "read_list_us",
    "read_by_index_us",
    "read_by_selector_us",
    "decode_each_left_bytes",
    "decode_all_left_bytes",
    "decode_all_trimmed_left_bytes",
];

#[test]
fn a_small_comparison_has_all_figures_and_names_missing_peers() {
    let out = tempfile::tempdir().unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["compare", "--pods", "60", "--burst", "200", "--idle-ms", "300", "--corpora", "realistic"])
        .args(["--stages", "relist,events,reads,decode", "--only", "kube-informer/packed,kube-rs", "--out"])
        .arg(out.path())
        .env("CARGO", "/no/such/program")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.contains("kube-rs/json: skipped: cannot run"), "{printed}");

    let results = std::fs::read_to_string(out.path().join("results.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["pods"], 60);
    let contender = |name: &str| {
        let all = results["contenders"].as_array().unwrap();
        all.iter().find(|contender| contender["name"] == name).unwrap()
    };
    let ours = contender("kube-informer");
    for figure in MEASURED {
        assert!(ours[figure].is_number(), "{figure} is {}: {}", ours[figure], ours["reasons"]);
    }
    assert_eq!(ours["objects"], 60.0);
    assert_eq!(ours["relist_100_calls"], 60.0, "every pod changed: one call for each");
    assert_eq!(ours["events"], 200.0);
    let missing = contender("kube-rs");
    assert_eq!(missing["bytes_per_object"], Value::Null);
    assert!(missing["reasons"]["bytes_per_object"].is_string());

    for file in ["table.md", "goals.md", "readme.md", "memory.svg", "cpu.svg"] {
        assert!(out.path().join(file).is_file(), "{file}");
    }
}
