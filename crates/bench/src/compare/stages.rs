//! The measurements of one contender.

use super::number;
use crate::{
    args::{CompareOptions, Stage},
    peers::Peer,
    process::Process,
    progress::print_progress,
    results::{Figures, median},
};
use std::{path::Path, thread::sleep, time::Duration};

/// Syncs of which wall and CPU time are the medians.
const SYNCS: usize = 5;
/// Changes a second when latency is measured, and for how many seconds.
pub(super) const RATE: (u64, u64) = (200, 8);
/// Lists a second of all concurrent readers together.
const READS: u32 = 50;
/// Number and seconds of rounds in which the writer is measured with readers of its own informer and of another one:
/// many short rounds in turn, so that other load of the machine affects both alike.
pub(super) const ROUNDS: (usize, u64) = (11, 2);

/// The measurements of one contender.
pub(super) struct Measurement<'a> {
    pub(super) options: &'a CompareOptions,
    pub(super) url: &'a str,
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [&'static str],
    pub(super) peer: &'a Peer,
    pub(super) driver: &'a mut Process,
    pub(super) figures: &'a mut Figures,
    /// The recorded events, or the reason why there are none.
    pub(super) recording: &'a Result<Recording, String>,
}

/// Watch events that a server of their own replays.
pub(super) struct Recording {
    pub(super) url: String,
    /// Number of events, and the version of the last one.
    pub(super) changed: f64,
    pub(super) version: u64,
}

impl Measurement<'_> {
    /// All measurements on the realistic corpus.
    pub(super) fn everything(&mut self, kinds: &[(&'static str, Result<(), String>)]) -> anyhow::Result<()> {
        let mut process = self.sync("", "pods")?;
        self.more_syncs()?;
        self.stage(Stage::Relist, &mut process, Self::relists)?;
        self.stage(Stage::Latency, &mut process, Self::latency)?;
        self.stage(Stage::Reads, &mut process, Self::reads)?;
        self.stage(Stage::Decode, &mut process, Self::decode)?;
        self.stage(Stage::Readers, &mut process, Self::readers)?;
        if (self.peer.name, self.peer.variant) == ("kube-informer", "packed") {
            self.stage(Stage::Repacking, &mut process, Self::repacking)?;
        }
        drop(process);
        if self.wants(Stage::Events) {
            self.events()?;
        }
        if self.wants(Stage::Stall) {
            self.stall()?;
        }
        if !self.peer.thorough && self.options.stages.is_empty() {
            let names = ["relist_1_cpu_s", "latency_p99_us", "writer_p99_ratio", "stall_bytes"];
            self.figures.missing(&names, "name this variant with --only, or the stages with --stages");
        }
        if !self.wants(Stage::Kinds) {
            return Ok(());
        }
        for (kind, seeded) in kinds {
            let figure = format!("{kind}_bytes_per_object");
            match seeded {
                Ok(()) => drop(self.sync(&format!("{kind}_"), kind)?),
                Err(reason) => self.figures.missing(&[&figure], reason),
            }
        }
        Ok(())
    }

    pub(super) fn sync_only(&mut self, prefix: &str) -> anyhow::Result<()> {
        self.sync(prefix, "pods").map(drop)
    }

    fn stage(
        &mut self,
        stage: Stage,
        process: &mut Process,
        measure: fn(&mut Self, &mut Process) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.wants(stage) {
            print_progress(format!("  {stage:?}"));
            measure(self, process)?;
        }
        Ok(())
    }

    /// Whether a stage is measured for this contender. Long stages are measured for one variant of each, and for those that
    /// were requested.
    fn wants(&self, stage: Stage) -> bool {
        let quick = matches!(stage, Stage::Reads | Stage::Decode | Stage::Events);
        self.options.wants(stage) && (quick || self.peer.thorough || !self.options.stages.is_empty())
    }

    /// Time for a contender to become idle.
    fn idle(&self) -> Duration {
        Duration::from_millis(self.options.idle_ms)
    }

    pub(super) fn start(&self, kind: &str, namespace: Option<&str>) -> anyhow::Result<Process> {
        self.start_at(self.url, kind, namespace)
    }

    fn start_at(&self, url: &str, kind: &str, namespace: Option<&str>) -> anyhow::Result<Process> {
        let mut arguments = self.arguments.to_vec();
        arguments.extend(["--server", url, "--kind", kind, "--variant", self.peer.variant]);
        let kubeconfig = self.options.kubeconfig.as_deref().and_then(Path::to_str);
        if let Some(kubeconfig) = kubeconfig.filter(|_| url == self.url) {
            arguments.extend(["--kubeconfig", kubeconfig]);
        }
        if let Some(namespace) = namespace {
            arguments.extend(["--namespace", namespace]);
        }
        Process::start(self.program, &arguments)
    }

    /// Memory of the same program without objects.
    fn empty(&self, kind: &str) -> anyhow::Result<u64> {
        let mut process = self.start(kind, Some("bench-empty"))?;
        process.request("start")?;
        sleep(self.idle() / 3);
        process.request("settle")?;
        process.rss()
    }

    /// The initial sync, and the memory when the process is idle.
    fn sync(&mut self, prefix: &str, kind: &str) -> anyhow::Result<Process> {
        let empty = self.empty(kind)?;
        let mut process = self.start(kind, None)?;
        let server_before = self.driver.cpu()?;
        let synced = process.request("start")?;
        let (cpu, peak, server_cpu) = (process.cpu()?, process.peak()?, self.driver.cpu()? - server_before);
        let objects = number(&synced, "objects")?;
        sleep(self.idle());
        let rested = process.rss()?;
        process.request("settle")?;
        let settled = process.rss()?.min(rested);
        let upkeep_cpu = process.cpu()? - cpu;
        let serves = self.options.is_embedded();
        let mut put = |name: &str, value: f64| self.figures.put(&format!("{prefix}{name}"), value);
        put("objects", objects);
        put("sync_wall_s", number(&synced, "wall_s")?);
        put("sync_cpu_s", cpu);
        if serves {
            put("sync_server_cpu_s", server_cpu);
        }
        put("upkeep_cpu_s", upkeep_cpu);
        put("rss_empty_bytes", empty as f64);
        put("rss_peak_bytes", peak as f64);
        put("rss_rested_bytes", rested as f64);
        put("rss_settled_bytes", settled as f64);
        put("bytes_per_object", (settled.saturating_sub(empty)) as f64 / objects.max(1.0));
        Ok(process)
    }

    /// Replaces the times of the first sync by the medians of several.
    fn more_syncs(&mut self) -> anyhow::Result<()> {
        let mut names = vec!["sync_wall_s", "sync_cpu_s"];
        if self.options.is_embedded() {
            names.push("sync_server_cpu_s");
        }
        let mut times: Vec<Vec<f64>> =
            names.iter().map(|name| self.figures.get(name).into_iter().collect()).collect();
        for _ in 1..SYNCS {
            let mut process = self.start("pods", None)?;
            let server_before = self.driver.cpu()?;
            let synced = process.request("start")?;
            let found = [number(&synced, "wall_s")?, process.cpu()?, self.driver.cpu()? - server_before];
            times.iter_mut().zip(found).for_each(|(times, time)| times.push(time));
        }
        for (name, times) in names.into_iter().zip(times) {
            self.figures.put(name, median(times));
        }
        Ok(())
    }

    fn relists(&mut self, process: &mut Process) -> anyhow::Result<()> {
        for percent in [0, 1, 100] {
            let names = ["cpu_s", "wall_s", "peak_bytes", "settled_bytes", "calls"]
                .map(|figure| format!("relist_{percent}_{figure}"));
            process.request("reset")?;
            process.request("settle")?;
            process.reset_peak()?;
            let before = process.cpu()?;
            let changed = match self.driver.request(&format!("relist {percent}")) {
                Ok(changed) => changed,
                Err(error) => {
                    self.figures.missing(&names.each_ref().map(String::as_str), &format!("{error:#}"));
                    continue;
                }
            };
            // A contender may deliver that version before the end of a list.
            let calls = process.wait_until_idle(&changed["version"], self.idle())?;
            let (peak, wall) = (process.peak()?, number(&calls, "last")? - number(&changed, "released_at")?);
            let cpu = process.cpu()? - before;
            process.request("settle")?;
            let values = [cpu, wall / 1e9, peak as f64, process.rss()? as f64, number(&calls, "calls")?];
            names.iter().zip(values).for_each(|(name, value)| self.figures.put(name, value));
        }
        Ok(())
    }

    /// A burst of recorded events, which arrive as fast as the contender reads them.
    fn events(&mut self) -> anyhow::Result<()> {
        print_progress("  Events");
        let Recording { url, changed, version } = match self.recording {
            Ok(recording) => recording,
            Err(reason) => {
                self.figures.missing(&["events_per_s", "event_cpu_us"], reason);
                return Ok(());
            }
        };
        self.driver.request("hold")?;
        let mut process = self.start_at(url, "pods", None)?;
        process.request("start")?;
        sleep(self.idle());
        process.request("settle")?;
        process.request("reset")?;
        let before = process.cpu()?;
        self.driver.request("release")?;
        let calls = process.request(&format!("await {version}"))?;
        sleep(Duration::from_millis(300));
        let cpu = process.cpu()? - before;
        let (events, seconds) = (*changed, (number(&calls, "last")? - number(&calls, "first")?) / 1e9);
        self.figures.put("events", events);
        self.figures.put("event_calls", number(&calls, "calls")?);
        self.figures.put("events_per_s", events / seconds);
        self.figures.put("event_cpu_us", cpu * 1e6 / events);
        Ok(())
    }

    fn latency(&mut self, process: &mut Process) -> anyhow::Result<()> {
        let (p50, p99) = self.latencies(process, RATE.0, RATE.1)?;
        self.figures.put("latency_p50_us", p50);
        self.figures.put("latency_p99_us", p99);
        Ok(())
    }

    /// Median and 99th percentile of the latency from a write to the handler.
    fn latencies(&mut self, process: &mut Process, rate: u64, seconds: u64) -> anyhow::Result<(f64, f64)> {
        process.request("reset")?;
        let written = self.driver.request(&format!("rate {rate} {seconds}"))?;
        process.request(&format!("await {}", written["version"]))?;
        let latency = process.request("latency")?;
        Ok((number(&latency, "p50_us")?, number(&latency, "p99_us")?))
    }

    fn reads(&mut self, process: &mut Process) -> anyhow::Result<()> {
        let reads = process.request("reads")?;
        for (name, value) in reads.as_object().into_iter().flatten().filter(|(name, _)| name.ends_with("s")) {
            if name != "objects" {
                self.figures.put(&format!("read_{name}"), value.clone());
            }
        }
        Ok(())
    }

    /// Memory that is left after all objects were decoded and dropped: one by one, all at once, and all at once after the
    /// allocator released its free memory.
    fn decode(&mut self, process: &mut Process) -> anyhow::Result<()> {
        for mode in ["each", "all"] {
            let before = process.rss()? as f64;
            let [wall, left, trimmed] =
                ["s", "left_bytes", "trimmed_left_bytes"].map(|figure| format!("decode_{mode}_{figure}"));
            let decoded = match process.request(&format!("decode-{mode}")) {
                Ok(decoded) => decoded,
                Err(_) => {
                    self.figures.missing(&[&wall, &left], "all objects are stored decoded");
                    continue;
                }
            };
            sleep(self.idle());
            self.figures.put(&wall, number(&decoded, "wall_s")?);
            self.figures.put(&left, process.rss()? as f64 - before);
            if mode == "all" {
                process.request("trim")?;
                self.figures.put(&trimmed, process.rss()? as f64 - before);
            }
        }
        Ok(())
    }

    /// The writer with readers of its own informer, and with the same readers of another one.
    fn readers(&mut self, process: &mut Process) -> anyhow::Result<()> {
        process.request("other")?;
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS.0 {
            for (which, p99s) in [("same", &mut own), ("other", &mut other)] {
                process.request(&format!("readers {which} {READS}"))?;
                p99s.push(self.latencies(process, RATE.0, ROUNDS.1)?.1);
                process.request("stop-readers")?;
            }
        }
        let (own, other) = (median(own), median(other));
        self.figures.put("writer_p99_us_readers_same", own);
        self.figures.put("writer_p99_us_readers_other", other);
        self.figures.put("writer_p99_ratio", own / other);
        Ok(())
    }

    /// Memory growth with a handler that never returns.
    fn stall(&mut self) -> anyhow::Result<()> {
        print_progress("  Stall");
        let names = ["stall_bytes", "stall_events"];
        self.driver.request("churn 1000")?;
        let mut process = self.start("configmaps", Some("bench-churn"))?;
        process.request("start")?;
        if let Err(error) = process.request("stall") {
            self.figures.missing(&names, &format!("{error:#}"));
            return Ok(());
        }
        sleep(self.idle() / 3);
        process.request("settle")?;
        let before = process.rss()?;
        let churned = self.driver.request(&format!("churn {}", self.options.stall_events()))?;
        process.request(&format!("await {}", churned["version"]))?;
        sleep(self.idle() / 3);
        process.request("settle")?;
        self.figures.put(names[0], process.rss()? as f64 - before as f64);
        self.figures.put(names[1], self.options.stall_events());
        Ok(())
    }
}
