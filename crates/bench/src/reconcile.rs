//! Controllers side by side: what one reconcile costs beside the work of the user. And a program with a store of pods, on kube-rs and
//! on the drop-in for it.

use crate::{
    args::ReconcileOptions,
    compare::{number, start_driver, text},
    peers::{self, Peer, REFLECTOR},
    process::Process,
    progress::print_progress,
    results::{Figures, machine},
    table,
};
use anyhow::Context;
use serde_json::{Value, json};
use std::{thread::sleep, time::Duration};

/// Time without a reconcile after which a controller is done.
const IDLE: Duration = Duration::from_secs(1);
/// Changes a second when latency is measured, and for how many seconds.
const RATE: (u64, u64) = (200, 8);

/// Measures all controllers and stores, prints tables and writes `reconcile.json`.
pub(crate) fn run(options: &ReconcileOptions) -> anyhow::Result<()> {
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot create the directory {}", options.out.display()))?;
    let peers = peers::controllers(&options.only)?;
    let mut driver = start_driver(options.seed, None, None)?;
    let url = text(&driver.request("url")?, "url")?;
    print_progress(format!("seeding {} pods, recording {} events", options.pods, options.burst));
    driver.request(&format!("seed realistic {}", options.pods))?;
    let recorded = driver.request(&format!("record {}", options.burst))?;
    let mut contenders = Vec::new();
    for peer in &peers {
        let mut figures = Figures::new(peer.name, peer.variant);
        print_progress(format!("measurement {}", peer.label()));
        let measured = match peer.variant {
            REFLECTOR => measure_store(peer, &url, &mut figures),
            _ => measure(options, peer, (&url, &recorded), &mut driver, &mut figures),
        };
        if let Err(error) = measured {
            print_progress(format!("{} failed: {error:#}", peer.label()));
            figures.missing(&["rss_settled_bytes"], &format!("{error:#}"));
        }
        contenders.push(figures);
    }
    let all: Vec<Value> = contenders.iter().map(Figures::json).collect();
    let results = json!({"pods": options.pods, "machine": machine(), "contenders": all});
    std::fs::write(options.out.join("reconcile.json"), serde_json::to_string_pretty(&results)? + "\n")?;
    let (stores, controllers): (Vec<_>, Vec<_>) =
        contenders.iter().partition(|figures| figures.variant() == REFLECTOR);
    println!("{}\n{}", table::of_controllers(&controllers), table::of_stores(&stores));
    Ok(())
}

fn measure(
    options: &ReconcileOptions,
    peer: &Peer,
    (url, recorded): (&str, &Value),
    driver: &mut Process,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    driver.request("hold")?;
    let mut process = start(peer, &text(recorded, "url")?)?;
    process.request("start")?;
    process.request(&format!("await-count {}", options.pods))?;
    figures.put("initial_cpu_us", process.cpu()? * 1e6 / options.pods as f64);
    sleep(IDLE);
    process.request("settle")?;
    figures.put("rss_settled_bytes", process.rss()? as f64);

    process.request("reset")?;
    let before = process.cpu()?;
    driver.request("release")?;
    // Reconciles need not run in the order of versions.
    let done = process.wait_until_idle(&recorded["version"], IDLE)?;
    let (calls, seconds) =
        (number(&done, "calls")?, (number(&done, "last")? - number(&done, "first")?) / 1e9);
    figures.put("reconciles", calls);
    figures.put("reconciles_per_s", calls / seconds);
    figures.put("reconcile_cpu_us", (process.cpu()? - before) * 1e6 / calls);
    drop(process);

    let mut process = start(peer, url)?;
    process.request("start")?;
    process.request(&format!("await-count {}", options.pods))?;
    sleep(IDLE);
    process.request("reset")?;
    let written = driver.request(&format!("rate {} {}", RATE.0, RATE.1))?;
    process.wait_until_idle(&written["version"], IDLE)?;
    let latency = process.request("latency")?;
    figures.put("latency_p50_us", number(&latency, "p50_us")?);
    figures.put("latency_p99_us", number(&latency, "p99_us")?);
    Ok(())
}

/// Measures a program with a store of pods: its memory, and what it costs to read all of them.
fn measure_store(peer: &Peer, url: &str, figures: &mut Figures) -> anyhow::Result<()> {
    let mut process = start(peer, url)?;
    process.request("start")?;
    figures.put("sync_cpu_s", process.cpu()?);
    sleep(IDLE);
    process.request("settle")?;
    figures.put("rss_settled_bytes", process.rss()? as f64);
    for how in ["find", "state"] {
        process.reset_peak()?;
        let read = process.request(&format!("read {how}"))?;
        figures.put(&format!("read_{how}_s"), number(&read, "seconds")?);
        figures.put(&format!("read_{how}_peak_bytes"), process.peak()? as f64);
    }
    Ok(())
}

fn start(peer: &Peer, url: &str) -> anyhow::Result<Process> {
    let (program, arguments) = peer.program.as_ref().map_err(|reason| anyhow::anyhow!(reason.clone()))?;
    let mut arguments = arguments.clone();
    arguments.extend(["--server", url, "--variant", peer.variant]);
    Process::start(program, &arguments)
}
