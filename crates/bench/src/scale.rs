//! Memory of one informer with very many objects, or with objects on disk.
//!
//! A process of its own generates the objects while it sends them.

use crate::{
    args::ScaleOptions,
    compare::{SERVER_ALLOCATOR, number, text},
    process::Process,
    progress::print_progress,
};
use anyhow::{Context, ensure};
use serde_json::json;

pub(crate) fn run(options: &ScaleOptions) -> anyhow::Result<()> {
    let ScaleOptions { objects, kind, .. } = options;
    print_progress("sync of no objects");
    let empty = start(options, 0)?.informer.rss()?;
    print_progress(format!("sync of {objects} {kind}"));
    let Started { mut informer, wall_s, generator } = start(options, *objects)?;
    let (cpu, peak, synced) = (informer.cpu()?, informer.peak()?, informer.rss()?);
    print_progress("waiting until the content is packed again");
    informer.request("settle")?;
    let settled = informer.rss()?;
    let each = |bytes: u64| bytes.saturating_sub(empty) as f64 / (*objects).max(1) as f64;
    let result = json!({
        "kind": kind,
        "stubborn": options.stubborn,
        "storage": if options.disk { "disk" } else { "memory" },
        "objects": objects,
        "sync_wall_s": wall_s,
        "sync_cpu_s": cpu,
        "upkeep_cpu_s": informer.cpu()? - cpu,
        "rss_empty_bytes": empty,
        "rss_peak_bytes": peak,
        "rss_synced_bytes": synced,
        "rss_settled_bytes": settled,
        "bytes_per_object_synced": each(synced),
        "bytes_per_object": each(settled),
        "memory": informer.request("memory")?,
    });
    drop(generator);
    let text = serde_json::to_string_pretty(&result)? + "\n";
    std::fs::write(&options.out, &text).with_context(|| format!("cannot write {}", options.out.display()))?;
    println!("{text}");
    Ok(())
}

/// An informer that is synced with a generator.
struct Started {
    informer: Process,
    wall_s: f64,
    generator: Process,
}

fn start(options: &ScaleOptions, objects: usize) -> anyhow::Result<Started> {
    let own = std::env::current_exe()?;
    let (count, seed) = (objects.to_string(), options.seed.to_string());
    let mut arguments = vec!["generator", "--kind", &options.kind, "--objects", &count, "--seed", &seed];
    if options.stubborn {
        arguments.push("--stubborn");
    }
    let mut generator = Process::start_with(&own, &arguments, &[SERVER_ALLOCATOR])?;
    let url = text(&generator.request("url")?, "url")?;
    let mut arguments = vec!["contender", "--server", &url, "--kind", &options.kind];
    if options.disk {
        arguments.push("--disk");
    }
    let mut informer = Process::start(&own, &arguments)?;
    let synced = informer.request("start")?;
    let cached = number(&synced, "objects")?;
    ensure!(cached == objects as f64, "{cached} objects are cached instead of {objects}");
    Ok(Started { informer, wall_s: number(&synced, "wall_s")?, generator })
}
