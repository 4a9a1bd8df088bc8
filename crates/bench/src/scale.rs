//! Memory of one informer with very many objects, or with objects on disk, and its restart with very many objects.
//!
//! A process of its own generates the objects while it sends them.

use crate::{
    args::ScaleOptions,
    compare::{SERVER_ALLOCATOR, number, text},
    generator::VERSION,
    process::Process,
    progress::print_progress,
    restart::size,
};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(options: &ScaleOptions) -> anyhow::Result<()> {
    let result = match &options.restart {
        Some(cache) => restart(options, cache)?,
        None => memory(options)?,
    };
    let text = serde_json::to_string_pretty(&result)? + "\n";
    std::fs::write(&options.out, &text).with_context(|| format!("cannot write {}", options.out.display()))?;
    println!("{text}");
    Ok(())
}

fn memory(options: &ScaleOptions) -> anyhow::Result<Value> {
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
    Ok(result)
}

/// Kills an informer that has saved its cache, and starts it again.
fn restart(options: &ScaleOptions, cache: &Path) -> anyhow::Result<Value> {
    if cache.exists() {
        std::fs::remove_dir_all(cache).with_context(|| format!("cannot remove {}", cache.display()))?;
    }
    let (generator, url) = generate(options, options.objects)?;
    let own = std::env::current_exe()?;
    let directory = cache.to_string_lossy();
    let arguments = ["saved", "--server", &url, "--directory", &directory];
    print_progress(format!("first start, which lists {} pods and saves them", options.objects));
    let mut first = Process::start(&own, &arguments)?;
    let cold = first.request("start")?;
    first.request(&format!("saved {VERSION}"))?;
    first.kill()?;
    print_progress("second start");
    let mut second = Process::start(&own, &arguments)?;
    let warm = second.request("start")?;
    drop(generator);
    Ok(json!({
        "pods": options.objects,
        "cold_synced_ms": cold["synced_ms"],
        "readable_ms": warm["readable_ms"],
        "synced_ms": warm["synced_ms"],
        "lists": warm["lists"],
        "version_queries": warm["version_queries"],
        "disk_bytes": size(cache)?,
    }))
}

/// An informer that is synced with a generator.
struct Started {
    informer: Process,
    wall_s: f64,
    generator: Process,
}

/// A process that generates objects, and its URL.
fn generate(options: &ScaleOptions, objects: usize) -> anyhow::Result<(Process, String)> {
    let own = std::env::current_exe()?;
    let (count, seed) = (objects.to_string(), options.seed.to_string());
    let mut arguments = vec!["generator", "--kind", &options.kind, "--objects", &count, "--seed", &seed];
    if options.stubborn {
        arguments.push("--stubborn");
    }
    let mut generator = Process::start_with(&own, &arguments, &[SERVER_ALLOCATOR])?;
    let url = text(&generator.request("url")?, "url")?;
    Ok((generator, url))
}

fn start(options: &ScaleOptions, objects: usize) -> anyhow::Result<Started> {
    let own = std::env::current_exe()?;
    let (generator, url) = generate(options, objects)?;
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
