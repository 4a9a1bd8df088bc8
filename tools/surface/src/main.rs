//! Lists the public API of the published libraries, for `tools/public-api`.
//!
//! Reads the JSON that rustdoc wrote for each library and compares the listing with the file `public-api.txt` of that
//! library, or writes the file.

use anyhow::{Context, Result, bail, ensure};
use public_api::Builder;
use serde_json::Value;
use similar::TextDiff;
use std::{fs, path::Path, process::ExitCode};

/// Format of rustdoc's JSON that `public-api` reads: that of Rust 1.95.
const FORMAT: u64 = 57;

/// Crate name and directory of each published library.
const LIBRARIES: &[(&str, &str)] = &[
    ("kube_informer_types", "crates/types"),
    ("kube_informer_segments", "crates/segments"),
    ("kube_informer_persist", "crates/persist"),
    ("kube_informer_wire", "crates/wire"),
    ("kube_informer_cel", "crates/cel"),
    ("kube_workqueue", "crates/workqueue"),
    ("kube_informer", "crates/informer"),
    ("kube_informer_controller", "crates/controller"),
    ("kube_embedded_apiserver", "crates/apiserver"),
];

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (directory, accept) = match &arguments[..] {
        [directory] => (Path::new(directory), false),
        [directory, option] if option == "--accept" => (Path::new(directory), true),
        _ => bail!("usage: surface DIRECTORY_OF_RUSTDOC_JSON [--accept]"),
    };
    let mut changed = false;
    for (name, package) in LIBRARIES {
        let json = directory.join(format!("{name}.json"));
        let format = format_version(&json)?;
        if format != FORMAT {
            println!(
                "SKIPPED: rustdoc wrote JSON of format {format}, and tools/surface reads {FORMAT}; update public-api in \
                 tools/surface/Cargo.toml to the version for this Rust"
            );
            return Ok(ExitCode::SUCCESS);
        }
        changed |= compare(&listing(&json)?, &Path::new(package).join("public-api.txt"), accept)?;
    }
    if !changed {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "\nThe public API has changed. If that is intended, run `tools/public-api --accept`, commit the listings, and name \
         renamed or removed items in CHANGELOG.md."
    );
    Ok(ExitCode::FAILURE)
}

/// Compares a listing with its file and prints the difference, or writes the file. Returns whether they differ.
fn compare(listing: &str, file: &Path, accept: bool) -> Result<bool> {
    if accept {
        fs::write(file, listing)?;
        return Ok(false);
    }
    let committed = fs::read_to_string(file).unwrap_or_default();
    let diff = TextDiff::from_lines(committed.as_str(), listing);
    print!("{}", diff.unified_diff().context_radius(0).header(&file.display().to_string(), "the code"));
    Ok(committed != listing)
}

fn format_version(json: &Path) -> Result<u64> {
    let text = fs::read(json).with_context(|| format!("cannot read {}", json.display()))?;
    let value: Value = serde_json::from_slice(&text)?;
    value["format_version"].as_u64().with_context(|| format!("{} has no format_version", json.display()))
}

/// One line for each public item. Blanket implementations are left out, and of the auto traits all but `Send` and `Sync`.
fn listing(json: &Path) -> Result<String> {
    let api = Builder::from_rustdoc_json(json).omit_blanket_impls(true).build()?;
    let lines: Vec<String> = api.items().map(ToString::to_string).filter(|line| is_listed(line)).collect();
    ensure!(!lines.is_empty(), "{} has no public items", json.display());
    Ok(lines.join("\n") + "\n")
}

fn is_listed(line: &str) -> bool {
    let left_out = ["core::marker::Freeze for", "core::marker::Unpin for", "UnwindSafe for"];
    !(line.starts_with("impl") && left_out.iter().any(|name| line.contains(name)))
}
