//! A restart after `kill -9`: how soon the cache can be read, how soon it is synced, and what handlers receive.
//!
//! One process saves its cache and is killed, while another one, which never stops, records what its handler receives. Pods are
//! changed while the first one is down. Then it is started again.

use crate::{
    args::RestartOptions,
    compare::{SERVER_ALLOCATOR, number, text},
    peers,
    process::Process,
    progress::print_progress,
};
use anyhow::Context;
use serde_json::{Value, json};
use std::{path::Path, time::Instant};

pub(crate) fn run(options: &RestartOptions) -> anyhow::Result<()> {
    let RestartOptions { out, pods, changes, .. } = options;
    std::fs::create_dir_all(out).with_context(|| format!("cannot create the directory {}", out.display()))?;
    let cache = out.join("cache");
    if cache.exists() {
        std::fs::remove_dir_all(&cache).with_context(|| format!("cannot remove {}", cache.display()))?;
    }
    let own = std::env::current_exe()?;
    let mut driver =
        Process::start_with(&own, &["driver", "--seed", &options.seed.to_string()], &[SERVER_ALLOCATOR])?;
    let url = text(&driver.request("url")?, "url")?;
    print_progress(format!("seeding {pods} pods at {url}"));
    driver.request(&format!("seed realistic {pods}"))?;
    let start = |directory: Option<&Path>| {
        let directory = directory.map(|directory| directory.to_string_lossy().into_owned());
        let mut arguments = vec!["saved", "--server", &url];
        arguments.extend(directory.iter().flat_map(|directory| ["--directory", directory]));
        Process::start(&own, &arguments)
    };

    print_progress("first start, which lists everything and saves it");
    let mut steady = start(None)?;
    steady.request("start")?;
    let mut first = start(Some(&cache))?;
    let cold = first.request("start")?;
    // A change shows where both are.
    let version = number(&driver.request("change 1")?, "version")?;
    first.request(&format!("saved {version}"))?;
    steady.request(&format!("await {version}"))?;
    let before = steady.request("state")?;
    steady.request("reset")?;
    first.kill()?;

    print_progress(format!("{changes} changes while the process is down, and the second start"));
    let version = number(&driver.request(&format!("change {changes}"))?, "version")?;
    let mut second = start(Some(&cache))?;
    let warm = second.request("start")?;
    for process in [&mut second, &mut steady] {
        process.request(&format!("await {version}"))?;
    }
    let (replay, unbroken) = (second.request("trace")?, steady.request("trace")?);
    let (same_replay, same_changes) =
        (replay["initial"] == before["state"], replay["changes"] == unbroken["changes"]);
    if !same_changes {
        let both = [&replay, &unbroken].map(|trace| trace["changes"].as_array().cloned().unwrap_or_default());
        let at = both[0].iter().zip(&both[1]).take_while(|(a, b)| a == b).count();
        let lengths = both.each_ref().map(Vec::len);
        println!("change {at} differs ({lengths:?} in all): {:?}, {:?}", both[0].get(at), both[1].get(at));
    } else if !same_replay {
        println!("the replayed objects are not those of the saved version");
    }
    drop((second, steady));

    let mut result = json!({
        "pods": pods,
        "changes": changes,
        "cold_synced_ms": cold["synced_ms"],
        "readable_ms": warm["readable_ms"],
        "synced_ms": warm["synced_ms"],
        "lists": warm["lists"],
        "version_queries": warm["version_queries"],
        "trace_equal": same_replay && same_changes,
        "disk_bytes": size(&cache)?,
    });
    for (name, figure) in [("client-go", "client_go_synced_ms"), ("kube-rs", "kube_rs_synced_ms")] {
        let is_wanted = options.peers.iter().any(|peer| peer == name);
        result[figure] = if is_wanted { peer(name, &url)? } else { Value::Null };
    }
    let text = serde_json::to_string_pretty(&result)? + "\n";
    std::fs::write(out.join("restart.json"), &text)?;
    println!("{text}");
    Ok(())
}

/// Milliseconds until a peer is synced after a restart, which is a start; null if its program is missing. It uses its fastest
/// encoding.
fn peer(name: &'static str, url: &str) -> anyhow::Result<Value> {
    let variant = if name == "client-go" { "proto" } else { "json" };
    print_progress(format!("{name}, which lists everything"));
    let peers = peers::all(&[format!("{name}/{variant}")])?;
    let Some(Ok((program, arguments))) = peers.into_iter().next().map(|peer| peer.program) else {
        return Ok(Value::Null);
    };
    let mut arguments = arguments;
    arguments.extend(["--server", url, "--kind", "pods", "--variant", variant]);
    let start = Instant::now();
    Process::start(&program, &arguments)?.request("start")?;
    Ok(json!(start.elapsed().as_secs_f64() * 1e3))
}

/// Bytes of the files in a directory.
pub(crate) fn size(directory: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(directory)? {
        bytes += file?.metadata()?.len();
    }
    Ok(bytes)
}
