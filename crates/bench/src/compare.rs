//! The comparison: one server, and every contender in its own process.

mod repacking;
mod stages;

use crate::{
    args::{CompareOptions, Corpus, Stage},
    goals,
    peers::{self, Peer},
    plot,
    process::Process,
    progress::print_progress,
    results::{Figures, Results, machine},
    table,
};
use anyhow::Context;
use serde_json::{Map, Value};
use stages::{Measurement, Recording};
use std::path::Path;

/// Other kinds, and their number beside 30,000 pods.
const KINDS: [(&str, &str, usize); 4] = [
    ("configmaps", "/api/v1/configmaps", 10_000),
    ("secrets", "/api/v1/secrets", 500),
    ("events", "/api/v1/events", 10_000),
    ("widgets", "/apis/example.com/v1/widgets", 10_000),
];

/// Allocator settings of the server, which is not measured: glibc allocates its many small values three times as fast.
pub(crate) const SERVER_ALLOCATOR: (&str, &str) =
    ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=10000:glibc.malloc.mxfast=0");

pub(crate) fn run(options: &CompareOptions) -> anyhow::Result<()> {
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot create the directory {}", options.out.display()))?;
    print_progress("building the programs of the peers, which takes some minutes the first time");
    let peers = peers::all(&options.only)?;
    let contenders = peers.iter().map(|peer| Figures::new(peer.name, peer.variant)).collect();
    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let command = format!("cargo run --release -p bench -- {command}");
    let mut results =
        Results { pods: options.pods, command, machine: machine(), data: Map::new(), contenders };
    for corpus in options.corpora() {
        measure_corpus(options, corpus, &peers, &mut results)?;
        // Written after each corpus, in case a later one fails.
        write(&options.out, &results)?;
    }
    print_progress(format!("done; results and plots are in {}", options.out.display()));
    println!("{}\n{}", table::render(&results), goals::render(&results));
    Ok(())
}

fn measure_corpus(
    options: &CompareOptions,
    corpus: Corpus,
    peers: &[Peer],
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut driver = start_driver(options.seed, options.server.as_deref(), options.kubeconfig.as_deref())?;
    let url = text(&driver.request("url")?, "url")?;
    print_progress(format!("seeding {} {} pods at {url}", options.pods, corpus.name()));
    driver.request(&format!("seed {} {}", corpus.name(), options.pods))?;
    describe(&mut driver, corpus.name(), "/api/v1/pods", &mut results.data)?;
    let kinds = seed_kinds(options, corpus, &mut driver, &mut results.data);
    let protobuf = supports_protobuf(&mut driver)?;
    let recording = record(options, corpus, &mut driver);
    for (peer, figures) in peers.iter().zip(&mut results.contenders) {
        let Ok((program, arguments)) = &peer.program else {
            figures.missing(&["bytes_per_object"], peer.program.as_ref().err().map_or("", String::as_str));
            continue;
        };
        if peer.name == "client-go" && peer.variant != "json" && !protobuf {
            figures.missing(
                &["sync_wall_s", "sync_cpu_s", "rss_peak_bytes", "rss_settled_bytes", "bytes_per_object"],
                "the server does not support protobuf",
            );
            continue;
        }
        print_progress(format!("measurement {} on {} pods", peer.label(), corpus.name()));
        let mut measurement = Measurement {
            options,
            url: &url,
            program,
            arguments,
            peer,
            driver: &mut driver,
            figures,
            recording: &recording,
        };
        let measured = match corpus {
            Corpus::Realistic => measurement.everything(&kinds),
            Corpus::Stubborn => measurement.sync_only("stubborn_"),
        };
        // A failed contender does not stop the others.
        if let Err(error) = measured {
            print_progress(format!("{} failed: {error:#}", peer.label()));
            figures.missing(&["remaining_stages"], &format!("{error:#}"));
        }
    }
    Ok(())
}

/// Records watch events if they are measured.
fn record(options: &CompareOptions, corpus: Corpus, driver: &mut Process) -> Result<Recording, String> {
    if corpus != Corpus::Realistic || !options.wants(Stage::Events) {
        return Err("not requested".to_owned());
    }
    print_progress(format!("recording {} watch events", options.burst));
    let recorded = driver.request(&format!("record {}", options.burst));
    let recording = recorded.and_then(|found| {
        let version = found["version"].as_u64().context("no version")?;
        Ok(Recording { url: text(&found, "url")?, changed: number(&found, "changed")?, version })
    });
    recording.map_err(|error| format!("{error:#}"))
}

pub(crate) fn start_driver(
    seed: u64,
    server: Option<&str>,
    kubeconfig: Option<&Path>,
) -> anyhow::Result<Process> {
    let own = std::env::current_exe()?;
    let seed = seed.to_string();
    let mut arguments = vec!["driver", "--seed", &seed];
    if let Some(server) = server {
        arguments.extend(["--server", server]);
    }
    if let Some(kubeconfig) = kubeconfig.and_then(Path::to_str) {
        arguments.extend(["--kubeconfig", kubeconfig]);
    }
    Process::start_with(&own, &arguments, &[SERVER_ALLOCATOR])
}

/// Seeds the other kinds. Returns the kinds, with the reason for those that the server lacks.
fn seed_kinds(
    options: &CompareOptions,
    corpus: Corpus,
    driver: &mut Process,
    data: &mut Map<String, Value>,
) -> Vec<(&'static str, Result<(), String>)> {
    if corpus != Corpus::Realistic || !options.wants(Stage::Kinds) {
        return Vec::new();
    }
    let mut seed = |kind: &str, path: &str, share: usize| -> anyhow::Result<()> {
        let count = options.objects.unwrap_or((options.pods * share / 30_000).max(20));
        driver.request(&format!("seed-kind {kind} {count}"))?;
        describe(driver, kind, path, data)
    };
    KINDS
        .into_iter()
        .map(|(kind, path, share)| {
            let seeded = seed(kind, path, share).map_err(|error| format!("{error:#}"));
            if let Err(reason) = &seeded {
                println!("{kind}: skipped: {reason}");
            }
            (kind, seeded)
        })
        .collect()
}

fn describe(
    driver: &mut Process,
    name: &str,
    path: &str,
    data: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let found = driver.request(&format!("compressibility {path}"))?;
    let (bytes, packed) = (number(&found, "bytes")?, number(&found, "zstd_bytes")?);
    println!("{name}: {bytes:.0} bytes each, {packed:.0} after plain zstd, a ratio of {:.1}", bytes / packed);
    data.insert(name.to_owned(), found);
    Ok(())
}

fn supports_protobuf(driver: &mut Process) -> anyhow::Result<bool> {
    Ok(driver.request("protobuf")?["protobuf"] == true)
}

fn write(out: &Path, results: &Results) -> anyhow::Result<()> {
    std::fs::write(out.join("results.json"), serde_json::to_string_pretty(&results.json())? + "\n")?;
    for (name, svg) in plot::all(results) {
        std::fs::write(out.join(name), svg)?;
    }
    std::fs::write(out.join("readme.md"), table::short(results))?;
    std::fs::write(out.join("goals.md"), goals::render(results))?;
    Ok(std::fs::write(out.join("table.md"), table::render(results))?)
}

pub(crate) fn number(response: &Value, field: &str) -> anyhow::Result<f64> {
    response[field].as_f64().with_context(|| format!("no number {field:?} in {response}"))
}

pub(crate) fn text(response: &Value, field: &str) -> anyhow::Result<String> {
    Ok(response[field].as_str().with_context(|| format!("no string {field:?} in {response}"))?.to_owned())
}
